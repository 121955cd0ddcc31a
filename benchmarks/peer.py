r"""A training step of a highway VIN, and the same network written plainly in PyTorch.

    python -m benchmarks.peer --torch=PYTHON [--sizes=cpu,paper,wide] [--json=FILE]

PYTHON is one that has torch and numpy; its highway VIN (benchmarks/highway_torch.py) gets our
parameters, the batch and the actions that our layers have drawn. First, with one map in float64,
values, logits, loss and all gradients are compared; then steps with a batch in float32 take turns.
A step is loss and gradients: PyTorch's on all cores, ours jitted on one device, and split over
devices as the training command does. Prints the table that stands in benchmarks/README.md.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags

from benchmarks.exchange import (
    for_torch,
    largest_difference,
    outcome_of,
    torch_step,
    torch_version,
)
from benchmarks.harness import Figure, best_seconds, note, report, shown
from benchmarks.steps import SIZES, compile_step, highway_vin, make_batch, make_params
from hvin_jax.training import devices

# Ours / PyTorch, as the training command runs it.
GOALS = {"cpu": 1 / 6, "paper": 1 / 15}
# In float64 more than this is no rounding.
ROUNDING = 1e-9

_TORCH = flags.DEFINE_string("torch", None, "Python with torch and numpy.", required=True)
_SIZES = flags.DEFINE_list("sizes", list(SIZES), f"Which of {', '.join(SIZES)} to measure.")
_REPEATS = flags.DEFINE_integer("repeats", 3, "Timed runs of each contestant.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 32, "Maps in a batch.", lower_bound=1)
_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")


def main(argv: list[str]) -> None:
    """Compares, measures and prints."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    if unknown := {*_SIZES.value} - {*SIZES}:
        raise app.UsageError(f"--sizes: {min(unknown)!r} is none of {', '.join(SIZES)}")
    version = torch_version(_TORCH.value)
    devices.use_cpu_devices(0, _BATCH.value)
    figures = []
    for name in _SIZES.value:
        note(f"{name} ...")
        figures += shown(agreement(name)) + shown(steps(name))
    report(figures, _JSON.value, torch=version)


def agreement(name: str) -> list[Figure]:
    """One map in float64, through all layers; ends the benchmark if they are not the same."""
    model = highway_vin(SIZES[name])
    data = make_batch(1, SIZES[name].side)
    params = make_params(model, data)
    with jax.enable_x64(True):
        params = jax.tree.map(lambda x: x.astype(jnp.float64), params)
        ours = outcome_of(model, params, data)
        with torch_step(_TORCH.value, for_torch(model, params, data, ours)) as (step, outcome):
            step()
            difference = largest_difference(ours, outcome())
    if not difference < ROUNDING:
        raise SystemExit(f"The implementations differ by {difference:.2g}: they are not timed.")
    label = f"{name}: largest relative difference to PyTorch, float64"
    return [Figure(label, difference, "", ROUNDING)]


def steps(name: str) -> list[Figure]:
    """Steps with a batch in float32."""
    model = highway_vin(SIZES[name])
    data = make_batch(_BATCH.value, SIZES[name].side)
    params = make_params(model, data)
    ours = outcome_of(model, params, data)
    counts = sorted({1, jax.local_device_count()})
    contestants: dict[Any, Callable[[], Any]] = {
        n: compile_step(model, data, n).run for n in counts
    }
    with torch_step(_TORCH.value, for_torch(model, params, data, ours)) as (step, outcome):
        seconds = best_seconds(contestants | {"torch": step}, _REPEATS.value)
        difference = largest_difference(ours, outcome())
    figures = [
        Figure(f"{name}: the same, float32, batch {_BATCH.value}", difference, ""),
        Figure(f"{name}: step in PyTorch", seconds["torch"], "s"),
    ]
    for n in counts:
        where = f"{name}, {n} device{'s' * (n > 1)}"
        goal = GOALS.get(name) if n == counts[-1] else None
        figures += [
            Figure(f"{where}: our step", seconds[n], "s"),
            Figure(f"{where}: ours / PyTorch", seconds[n] / seconds["torch"], "×", goal),
        ]
    return figures


if __name__ == "__main__":
    app.run(main)
