"""Jobs carried out one after another, or side by side on Ray Tune."""

import dataclasses
import math
import multiprocessing
import pathlib
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import jax
from absl import flags
from ml_collections import ConfigDict

from experiments.grids.estimate import duration, estimate
from experiments.grids.jobs import ELSEWHERE, FINISHED, Job
from experiments.grids.scratch import TUNE_PREFIX, clear_abandoned
from experiments.launch.console import say
from experiments.launch.exits import BUSY, INTERRUPTED, STOPPED
from experiments.launch.settings import model_of, recipe_of
from hvin_jax._words import counted

RESULTS = flags.DEFINE_string("results", "results", "Where the folders of the runs are.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")
DRY_RUN = flags.DEFINE_bool("dry_run", False, "Only say what there is to do and what it costs.")
_ADDRESS = flags.DEFINE_string(
    "address", None, "A Ray cluster to run on, HOST:PORT; by default this machine."
)
_MAX_CONCURRENT = flags.DEFINE_integer(
    "max_concurrent", None, "At most so many trials at a time.", lower_bound=1
)
_MINUTES = flags.DEFINE_float(
    "minutes", None, "Stop after so long, saving what is under way.", lower_bound=0.0
)


class Checked(NamedTuple):
    """What is known of a job before it runs.

    Attributes:
      config: the configuration.
      num_steps: training steps of each of its runs.
    """

    config: ConfigDict
    num_steps: int


@dataclasses.dataclass(frozen=True)
class Share:
    """What a job gets.

    Attributes:
      cpus: CPU cores.
      gpus: GPUs; may be a fraction of one.
      max_failures: so often it is started again after a failure.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    max_failures: int = 2

    def __post_init__(self) -> None:
        """Raises `ValueError` if it is nothing that Ray could give."""
        cpus, gpus, failures = self.cpus, self.gpus, self.max_failures
        if not (_is_number(cpus) and cpus > 0):
            raise ValueError(f"cpus of a run is {cpus!r}, expected a number above 0")
        if not (_is_number(gpus) and gpus >= 0 and (gpus < 1 or gpus == int(gpus))):
            raise ValueError(f"gpus of a run is {gpus!r}, expected 0, a fraction of 1 or 1, 2, ...")
        if type(failures) is not int or failures < 0:
            raise ValueError(f"max_failures is {failures!r}, expected a whole number from 0")


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x)


def check_jobs(jobs: Sequence[Job], *, gpus: float, folders: bool = True) -> dict[str, Checked]:
    """Checks jobs before any of them starts, in a process of its own.

    For JAX starts threads, and Ray forks.

    Args:
      jobs: which.
      gpus: GPUs that each will have.
      folders: whether to check that their folders are theirs.

    Returns:
      What is known of each, by its name.

    Raises:
      ValueError, TypeError: a configuration is wrong.
      WorkdirError: a folder belongs to another configuration.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_check_jobs, jobs, gpus, folders).result()


def _check_jobs(jobs: Sequence[Job], gpus: float, folders: bool) -> dict[str, Checked]:
    # The GPUs are for the trials: here CPU devices stand for them. CPU cores share any batch.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", max(int(gpus), 1))
    known: dict[str, Checked] = {}
    for job in jobs:
        if job.name not in known:
            config = job.load_config()
            model_of(config)
            recipe = recipe_of(config)
            known[job.name] = Checked(config, recipe.for_examples(config.data.train).num_steps)
        if folders:
            job.check_folder()
    return known


def show_cost(jobs: Sequence[Job], share: Share) -> None:
    """Says what there is to do, and how long it takes."""
    checked = check_jobs(jobs, gpus=share.gpus, folders=False)
    width = max((len(job.title) for job in jobs), default=0)
    total = 0.0
    for job in jobs:
        cost = estimate(job, *checked[job.name], cpus=share.cpus, gpus=share.gpus)
        total += cost.seconds
        time = f"{cost.steps:>7} steps, {duration(cost.seconds):<12} ({cost.source})"
        say(f"{job.title:<{width}}  {job.state:<16} {'' if cost.source == FINISHED else time}")
    each = f"{share.gpus:g} GPUs" if share.gpus else f"{share.cpus:g} CPUs"
    say(
        f"{counted(len(jobs), 'run')} on {each} each; one after another they would take about "
        f"{duration(total)}, compiling and testing not counted"
    )


def run_in_turn(jobs: Sequence[Job]) -> list[Job]:
    """Runs jobs one after another, until they are done or the time is up; returns what failed."""
    end = None if _MINUTES.value is None else time.monotonic() + 60 * _MINUTES.value
    failed = []
    for number, job in enumerate(jobs, 1):
        state = job.state
        say(f"[{number}/{len(jobs)}] {job.title}: {state}")
        if state in (FINISHED, ELSEWHERE):
            continue
        if end is not None and time.monotonic() > end:
            say("the time is up")
            break
        # A run that is told to stop before it has begun dies of the signal itself.
        if _run(job, end) not in (0, STOPPED, INTERRUPTED, -signal.SIGTERM, BUSY):
            failed.append(job)
    return failed


def _run(job: Job, end: float | None) -> int:
    """Runs a job until it is finished or the time is up, and returns its exit code."""
    process = job.start(pathlib.Path(_DATA_DIR.value))
    try:
        return process.wait(None if end is None else max(end - time.monotonic(), 1))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.terminate()
        return process.wait()


def run_side_by_side(
    jobs: Sequence[Job], checked: Mapping[str, Checked], share: Share
) -> list[Job]:
    """Runs jobs on Ray Tune, and says how that ended.

    Args:
      jobs: which.
      checked: what is known of them.
      share: what each of them gets.

    Returns:
      The jobs that failed.

    Raises:
      ImportError: Ray Tune is missing.
      ValueError: there is no room for a job, or no cluster.
    """
    left = [job for job in jobs if job.state != FINISHED]
    if not left:
        for parent in {job.results for job in jobs}:
            clear_abandoned(parent, TUNE_PREFIX)
        return []
    try:
        from experiments.grids import on_ray
    except ImportError as error:
        raise ImportError(
            f"jobs side by side need Ray Tune: pip install 'hvin_jax[sweep]' ({error})"
        ) from error
    failed = on_ray.run_jobs(
        left,
        {job.title: checked[job.name].num_steps for job in left},
        on_ray.Options(
            data_dir=pathlib.Path(_DATA_DIR.value).resolve(),
            cpus=share.cpus,
            gpus=share.gpus,
            max_failures=share.max_failures,
            max_concurrent=_MAX_CONCURRENT.value,
            address=_ADDRESS.value,
            end=None if _MINUTES.value is None else time.time() + 60 * _MINUTES.value,
        ),
    )
    for job in failed:
        say(f"{job.title} has failed; what it said: {on_ray.log_file(job)}")
    return failed
