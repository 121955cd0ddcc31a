r"""Measures the gradients of the first training steps at full size, where deep networks overflow.

    python -m benchmarks.first_steps --cells=vin-15-60,vin-15-80 --seeds=0,1,2

The first steps of rows of the paper's tables, on the batches that the training command would take,
with gradients clipped by the plain norm, as is usual (`config.optimizer.plain_norm`). Where that
norm overflows, parameters stand still, and if they do so for every batch, for good. Results are
added to --out, run by run; runs that it has already are kept. `python -m experiments.report
--name=first_steps` sets them beside the paper's success rates.
"""

import json
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from absl import flags
from jax.flatten_util import ravel_pytree
from ml_collections import ConfigDict

from experiments.configs.paper import get_config
from experiments.grids.studies import DEPTHS
from experiments.launch.console import say
from experiments.launch.exits import integers, readable_errors, run_main
from experiments.launch.mazes import configured_mazes
from experiments.launch.settings import model_of, recipe_of
from hvin_jax._files import write_json
from hvin_jax.training import batches, devices, maze_task
from hvin_jax.training.results import git_commit
from hvin_jax.training.step import TrainState, create_state, make_train_step

_CELLS = flags.DEFINE_list(
    "cells",
    [
        *(f"vin-15-{depth}" for depth in DEPTHS[15]),
        *(f"vin-25-{depth}" for depth in DEPTHS[25][:3]),
        *(f"highway_network-15-{depth}" for depth in (40, 100, 200)),
        "highway_vin-15-200",
        "highway_vin-25-300",
    ],
    "Rows of the paper's tables: MODEL-SIZE-DEPTH.",
)
_SEEDS = flags.DEFINE_list("seeds", ["0", "1", "2"], "One run of each cell for each of these.")
_LATENT_ACTIONS = flags.DEFINE_integer(
    "latent_actions", 100, "How many; the paper does not say.", lower_bound=1
)
_STEPS = flags.DEFINE_integer("steps", 5, "How many steps.", lower_bound=1)
_OUT = flags.DEFINE_string("out", "results/paper/first_steps.json", "Where results are kept.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")

# As what a norm counts that is beyond float32, however it is computed.
LARGEST = float(np.finfo(np.float32).max)


def main() -> None:
    """Measures what is not there yet."""
    with readable_errors("first_steps"):
        seeds = integers("seeds", _SEEDS.value)
        configs = {cell: _configuration(cell) for cell in _CELLS.value}
        path = pathlib.Path(_OUT.value)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        devices.use_cpu_devices(0, next(iter(configs.values())).train.batch_size)
        for cell, config in configs.items():
            names = {seed: f"{cell}-{config.model.latent_actions}-seed{seed}" for seed in seeds}
            missing = [seed for seed, name in names.items() if name not in rows]
            for seed, row in measure(config, missing, _STEPS.value):
                rows[names[seed]] = row
                write_json(path, rows)
            for name in names.values():
                say(f"{name}: {_in_words(rows[name])}")


def _configuration(cell: str) -> ConfigDict:
    config = get_config(cell)
    if config.model.latent_actions is None:
        raise ValueError(f"{cell} has no latent actions")
    config.model.latent_actions = _LATENT_ACTIONS.value
    config.optimizer.plain_norm = True
    return config


def measure(
    config: ConfigDict, seeds: Sequence[int], steps: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The first steps of a configuration, seed by seed.

    Yields:
      The seed; the norms of the gradients before clipping, and the step from which on parameters
      stay as they are, if there is one.
    """
    if not seeds:
        return
    mazes = configured_mazes(config.data, pathlib.Path(_DATA_DIR.value))
    task = maze_task(model_of(config), mazes)
    recipe = recipe_of(config).for_examples(task.num_examples)
    optimizer = recipe.make_optimizer()
    train_step = devices.split_train_step(
        make_train_step(task.forward, recipe.loss, optimizer, axis_name=devices.BATCH_AXIS)
    )

    @jax.jit
    def first_state(key: jax.Array) -> TrainState:
        params_key, noise_key = jax.random.split(key)
        return create_state(noise_key, task.init(params_key), optimizer)

    for seed in seeds:
        state = devices.replicate(first_state(jax.random.key(seed)))
        order = batches.batch_indices(
            num_examples=task.num_examples, batch_size=recipe.batch_size, seed=seed, first_step=0
        )
        norms, moved = [], []
        for _, index in zip(range(steps), order, strict=False):
            before = _flat(state)
            batch: Any = devices.split({name: x[index] for name, x in task.train.items()})
            state, metrics = jax.block_until_ready(train_step(state, batch))
            norm = float(metrics.grad_norm)
            norms.append(norm if math.isfinite(norm) else LARGEST)
            moved.append(not np.array_equal(before, _flat(state)))
        last_move = max((step for step, x in enumerate(moved, 1) if x), default=0)
        yield (
            seed,
            {
                "norms": norms,
                "stands_still_from": last_move + 1 if last_move < steps else None,
                "commit": git_commit(pathlib.Path(__file__).parent),
            },
        )


def _flat(state: TrainState) -> np.ndarray:
    return np.array(ravel_pytree(state.params)[0])


def _in_words(row: dict[str, Any]) -> str:
    norms = " ".join(f"{norm:.1e}" for norm in row["norms"])
    since = row["stands_still_from"]
    return f"norms {norms}" + (f"; stands still from step {since}" if since else "")


if __name__ == "__main__":
    run_main("first_steps", main)
