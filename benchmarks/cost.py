r"""Measures what a training step costs at full size: memory, time, time to compile.

    python -m benchmarks.cost --cells=highway_vin-25-300,vin-25-300

A few real steps of each row of the paper's tables, on random batches, without training. Memory is
what the compiler reserves for one device with the whole batch; time is of the step as the training
command runs it, split over all devices. Results are added to --out, row by row; rows that it has
already are kept. `python -m experiments.report --name=cost` sets them beside the paper's.
"""

import json
import pathlib
import time
from typing import Any

import jax
import numpy as np
from absl import flags

from experiments.configs.paper import get_config
from experiments.launch.console import say
from experiments.launch.exits import readable_errors, run_main
from experiments.launch.settings import model_of
from hvin_jax._files import write_json
from hvin_jax.models import init_params
from hvin_jax.training import Imitation, devices, make_optimizer
from hvin_jax.training.evaluation import num_params
from hvin_jax.training.maze_task import maze_forward
from hvin_jax.training.results import environment, git_commit
from hvin_jax.training.step import TrainState, create_state, make_train_step

_CELLS = flags.DEFINE_list(
    "cells",
    [f"{model}-25-300" for model in ("vin", "gppn", "highway_network", "highway_vin")],
    "Rows of the paper's tables: MODEL-SIZE-DEPTH.",
)
_OUT = flags.DEFINE_string("out", "results/paper/cost.json", "Where the results are kept.")
_STEPS = flags.DEFINE_integer("steps", 2, "Timed steps; the shortest counts.", lower_bound=1)


def main() -> None:
    """Measures what is not there yet."""
    with readable_errors("cost"):
        devices.use_cpu_devices(0, get_config(_CELLS.value[0]).train.batch_size)
        path = pathlib.Path(_OUT.value)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        for cell in _CELLS.value:
            if cell not in rows:
                rows[cell] = measure(cell)
                write_json(path, rows)
            row = rows[cell]
            say(
                f"{cell}: {row['step_seconds']:.2f} s a step, {row['memory_gb']:.2f} GB, compiled "
                f"in {row['compile_seconds']:.0f} s"
                + ("" if row["finite"] else "; the loss was not finite after these steps")
            )


def measure(cell: str) -> dict[str, Any]:
    """The cost of one row of the paper's tables."""
    config = get_config(cell)
    model = model_of(config)
    optimizer = make_optimizer()
    side, batch_size = config.data.size, config.train.batch_size

    @jax.jit
    def init(key: jax.Array) -> TrainState:
        return create_state(key, init_params(model, key), optimizer)

    state, batch = init(jax.random.key(0)), _random_batch(batch_size, side, model.num_actions)

    def step_for(axis_name: str | None) -> Any:
        objective = Imitation(walls=True)
        return make_train_step(maze_forward(model), objective, optimizer, axis_name=axis_name)

    alone = jax.jit(step_for(None)).lower(state, batch).compile()
    memory: Any = alone.memory_analysis()
    split, parts = step_for(devices.BATCH_AXIS), devices.split(batch)
    step = devices.split_train_step(split)
    began = time.perf_counter()
    compiled = jax.jit(step).lower(state, parts).compile()
    compile_seconds = time.perf_counter() - began
    state, _ = jax.block_until_ready(compiled(state, parts))
    seconds = []
    for _ in range(_STEPS.value):
        began = time.perf_counter()
        state, metrics = jax.block_until_ready(compiled(state, parts))
        seconds.append(time.perf_counter() - began)
    return {
        "memory_gb": memory.temp_size_in_bytes / 1e9,
        "step_seconds": min(seconds),
        "compile_seconds": compile_seconds,
        "finite": bool(metrics.finite),
        "num_params": num_params(state.params),
        "batch_size": batch_size,
        "commit": git_commit(pathlib.Path(__file__).parent),
        **environment(),
    }


def _random_batch(count: int, side: int, num_actions: int) -> dict[str, np.ndarray]:
    """Arrays of the right shapes; what a step costs does not depend on what is in them."""
    rng = np.random.default_rng(0)
    states = (count, side, side, 4)
    label = rng.integers(0, num_actions, states).astype(np.uint8)
    return {
        "maze": rng.integers(0, 2, states[:3]).astype(np.uint8),
        "goal": np.stack([rng.integers(0, n, count) for n in states[1:]], axis=1).astype(np.int32),
        "label": label,
        "optimal": np.left_shift(1, label).astype(np.uint8),
        "spl": rng.integers(1, 50, states).astype(np.uint16),
    }


if __name__ == "__main__":
    run_main("cost", main)
