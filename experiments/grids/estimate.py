"""How long jobs will take: measured on finished runs where there are any, else by counting."""

import dataclasses
import json
import math
import pathlib
import statistics
from collections.abc import Iterable

from ml_collections import ConfigDict

from experiments.grids.jobs import FINISHED, Job
from experiments.launch.settings import depth_of
from hvin_jax._words import counted
from hvin_jax.training.workdir import read_metrics

# Operations a second where nothing has been measured: what a CPU core does on planners of the
# paper's size, and a guess for a GPU.
CPU_SPEED, GPU_SPEED = 2e11, 5e12
# A layer that explores looks up the kernel of one action for each state. With 100 latent actions
# it takes a quarter of the time of a layer that compares them all.
_LOOKED_UP = 25


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What is left to do of a job.

    Attributes:
      steps: training steps.
      seconds: how long they take.
      source: where that is known from.
    """

    steps: int
    seconds: float
    source: str


def operations(config: ConfigDict) -> float:
    """Operations (additions and multiplications) of one training step, roughly.

    The backward pass costs twice as much as the forward pass.
    """
    model = config.model
    window, orientations = model.kernel_size**2, 4
    layers = depth_of(config)
    if model.kind == "gppn":
        per_cell = layers * 2 * (window * model.hidden + 4 * model.hidden**2)
    else:
        # 0: as many as the task has, at most eight.
        actions = model.latent_actions or 8
        explores = model.value_exploration and model.epsilon == 1
        exploring = layers - model.num_blocks if explores else 0
        compared = (layers - exploring) * actions + exploring * min(actions, _LOOKED_UP)
        per_cell = compared * 2 * window * orientations**2
    return 3 * config.train.batch_size * config.data.size**2 * per_cell


def estimate(job: Job, config: ConfigDict, num_steps: int, *, cpus: float, gpus: float) -> Estimate:
    """What is left to do of a job, and how long that takes.

    Args:
      job: the job.
      config: its configuration.
      num_steps: its training steps.
      cpus: CPU cores that it gets.
      gpus: GPUs that it gets.
    """
    if job.state == FINISHED:
        return Estimate(0, 0.0, FINISHED)
    left = num_steps - _steps_made(job.folder)
    same = _seconds_per_step(job.results.glob(f"{job.name}-seed[0-9]*/result.json"))
    if same:
        return Estimate(
            left, left * statistics.fmean(same), f"{counted(len(same), 'finished run')} of it"
        )
    speed = gpus * GPU_SPEED if gpus else cpus * CPU_SPEED
    work = operations(config)
    source = f"{work / 1e9:.3g} GFLOP a step, {speed / 1e12:g} TFLOP/s assumed"
    return Estimate(left, left * work / speed, source)


def _steps_made(folder: pathlib.Path) -> int:
    return max((line["step"] for line in read_metrics(folder)), default=0)


def _seconds_per_step(paths: Iterable[pathlib.Path]) -> list[float]:
    results = [json.loads(path.read_text()) for path in paths]
    return [x["wall_seconds"] / x["steps"] for x in results if x["steps"]]


def duration(seconds: float) -> str:
    """A duration in words, to two digits or so."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{math.ceil(seconds)} seconds"
