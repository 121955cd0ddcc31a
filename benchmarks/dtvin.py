r"""DT-VIN: memory and time of training and planning, and the same in PyTorch beside it.

    python -m benchmarks.dtvin [--torch=PYTHON] [--json=FILE]

PYTHON is one that has torch and numpy; its DT-VIN (benchmarks/dtvin_torch.py) is compared in loss
and gradients first, then in time: its loss and gradients with our training step, which is split
over devices as in training and has the optimiser besides. Memory is what the compiler reserves for
loss and gradients of a batch of 32 on one device.
"""

import pathlib
import subprocess
import tempfile
from typing import Any

import jax
import numpy as np
from absl import app, flags

from benchmarks.harness import Figure, best_seconds, note, report, shown
from hvin_jax.models import DTVIN, init_params
from hvin_jax.planner import Planner
from hvin_jax.tasks import MazeLaw, get_mechanism, make_mazes
from hvin_jax.tasks.maze_data import action_sets
from hvin_jax.training import devices
from hvin_jax.training.devices import usable_cores
from hvin_jax.training.maze_task import maze_forward, training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.step import create_state, make_train_step

_TORCH = flags.DEFINE_string("torch", None, "Python with torch, to compare with.")
_JSON = flags.DEFINE_string("json", None, "File for the figures.")
_REPEATS = flags.DEFINE_integer("repeats", 3, "Runs of each, of which the shortest counts.")

NEWS = get_mechanism("news")
FOUR_MOVES: dict[str, Any] = {"num_orientations": 1, "num_actions": 4}


def main(argv: list[str]) -> None:
    """Measures everything."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    devices.use_cpu_devices(0, 32)
    figures = [*shown(_memory()), *shown(_planning()), *shown(_mazes()), *shown(_steps())]
    report(figures, _JSON.value)


def _mazes_of(size: int, count: int) -> Any:
    law = MazeLaw((size, size))
    return make_mazes(
        law=law, mechanism=NEWS, train=count, valid=0, test=0, seed=0, workers=usable_cores()
    ).train


def _gradients(depth: int, every: int) -> Any:
    """A compiled function of parameters and a batch: the mean loss and its gradients."""
    model, objective = (
        DTVIN(**FOUR_MOVES, depth=depth),
        Imitation(any_optimal=True, policies_every=every),
    )
    forward = maze_forward(model)

    def loss(params: Any, batch: Any) -> jax.Array:
        key = jax.random.key(0)
        sums = objective(forward(params, batch, key=key, policies_every=every), batch)
        return sums.loss / sums.weight

    return jax.jit(jax.value_and_grad(loss))


def _memory() -> list[Figure]:
    figures = []
    for size, depth, every, goal in ((35, 600, 10, 0.25), (100, 5000, 50, 2.0)):
        note(f"compiling {size}×{size}, N = {depth}")
        data = _mazes_of(size, 32)
        params = init_params(DTVIN(**FOUR_MOVES), jax.random.key(0))
        compiled = _gradients(depth, every).lower(params, training_arrays(data)).compile()
        memory = compiled.memory_analysis()
        assert memory is not None
        name = f"temporaries of loss and gradients, {size}×{size}, N = {depth}, J = {every}"
        figures.append(Figure(name, memory.temp_size_in_bytes / 1e9, "GB", goal))
    return figures


def _planning() -> list[Figure]:
    model = DTVIN(**FOUR_MOVES, depth=5000)
    planner = Planner(
        {"kind": "dtvin", **FOUR_MOVES, "depth": 5000}, init_params(model, jax.random.key(0)), NEWS
    )
    data = _mazes_of(101, 1)
    plan = {"plan": lambda: planner.policy(data.maze, data.goal, layers="own").logits}
    seconds = best_seconds(plan, _REPEATS.value)["plan"]
    return [Figure("planning on a map of 101×101, N = 5000", seconds, "s", 2.0)]


def _mazes() -> list[Figure]:
    make = {"make": lambda: _mazes_of(101, 1000).spl}
    return [Figure("1,000 mazes of 101×101 with labels", best_seconds(make, 1)["make"], "s", 30.0)]


def _steps() -> list[Figure]:
    """A training step with a batch at 35×35, N = 600, J = 10."""
    depth, every = 600, 10
    data = _mazes_of(35, 32)
    model = DTVIN(**FOUR_MOVES, depth=depth)
    params = init_params(model, jax.random.key(0))
    batch = training_arrays(data)
    optimizer = make_optimizer("adam")
    objective = Imitation(any_optimal=True, policies_every=every)
    split_step = devices.split_train_step(
        make_train_step(maze_forward(model), objective, optimizer, axis_name=devices.BATCH_AXIS)
    )
    state = devices.replicate(create_state(jax.random.key(0), params, optimizer))
    on_devices: Any = devices.split(batch)

    def step() -> Any:
        nonlocal state
        state, metrics = split_step(state, on_devices)
        return metrics.loss

    name = f"training step, 35×35, N = {depth}, J = {every}, batch 32"
    ours = best_seconds({"ours": step}, _REPEATS.value)["ours"]
    figures = [Figure(name, ours, "s")]
    if _TORCH.value is None:
        return figures
    note("PyTorch")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "exchange.npz"
        sets = action_sets(data.optimal[..., 0], num_actions=4)
        arrays: dict[str, Any] = {
            "depth": depth,
            "every": every,
            "repeats": _REPEATS.value,
            "maze": data.maze.astype(np.float32),
            "goal": data.goal_maps()[..., 0].astype(np.float32),
            "optimal": np.moveaxis(np.asarray(sets), -1, 1),
            "spl": data.spl[..., 0].astype(np.int64),
        }
        np.savez(path, **arrays, **jax.tree.map(np.asarray, params["params"]))
        script = pathlib.Path(__file__).parent / "dtvin_torch.py"
        output = subprocess.run(
            [_TORCH.value, str(script), str(path)], check=True, capture_output=True, text=True
        )
        theirs = np.load(folder + "/exchange-torch.npz")
        loss, grads = _gradients(depth, every)(params, batch)
        difference = max(
            float(np.abs(theirs[x] - grad).max() / np.abs(grad).max())
            for x, grad in [("loss", np.asarray(loss)), *grads["params"].items()]
        )
    ours = min(ours, best_seconds({"ours": step}, _REPEATS.value)["ours"])
    figures = [Figure(name, ours, "s")]
    plain = float(output.stdout)
    return [
        *figures,
        Figure("largest relative difference to PyTorch, float32", difference, "", 1e-3),
        Figure("loss and gradients in PyTorch", plain, "s"),
        Figure("ours / PyTorch", ours / plain, "×", 1 / 3),
    ]


if __name__ == "__main__":
    app.run(main)
