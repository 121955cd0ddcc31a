"""Time and memory of the planners.

    python -m benchmarks.planner [--sizes=cpu,paper,wide] [--parts=...] [--json=FILE]

Contestants take turns within one run, and the shortest of several runs counts. Prints the table
that stands in benchmarks/README.md.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from benchmarks.harness import Figure, best_seconds, note, report, shown
from benchmarks.steps import SIZES, compile_step, highway_vin, make_batch
from hvin_jax.models import GPPN, VIN
from hvin_jax.planning._conv_backup import convolve, greedy, kernel_matrix
from hvin_jax.planning._windows import windows
from hvin_jax.training.devices import usable_cores, use_cpu_devices

PARTS = ("step", "module", "gppn", "depth")

_SIZES = flags.DEFINE_list("sizes", list(SIZES), f"Which of {', '.join(SIZES)} to measure.")
_PARTS = flags.DEFINE_list("parts", list(PARTS), f"Which of {', '.join(PARTS)} to measure.")
_REPEATS = flags.DEFINE_integer("repeats", 4, "Timed runs of each contestant.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 32, "Maps in a batch.", lower_bound=1)
_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")


def main(argv: list[str]) -> None:
    """Measures what was asked for and prints it."""
    del argv
    # Several CPU devices, as in training: on one device, loops that the compiler does not split
    # leave the other cores idle.
    use_cpu_devices(0, _BATCH.value)
    figures = []
    for name in _SIZES.value:
        for part in ("step", "module"):
            if part in _PARTS.value:
                note(f"{part}, {name} ...")
                figures += shown({"step": step, "module": module}[part](name))
    if "gppn" in _PARTS.value:
        note("memory of GPPN ...")
        figures += shown(gppn())
    if "depth" in _PARTS.value:
        note("cost of depth ...")
        figures += shown(depth())
    report(figures, _JSON.value)


def step(name: str) -> list[Figure]:
    """A training step of highway VIN against VIN, and of VIN against its bare matrix products.

    Each on one device, and with the batch split: a device a core, and as in training.
    """
    size, batch = SIZES[name], _BATCH.value
    data = make_batch(batch, size.side)
    models = {
        "vin": VIN(latent_actions=size.latent_actions, depth=size.num_blocks),
        "highway": highway_vin(size),
        "shared": highway_vin(size, share_exploration=True),
    }
    counts = sorted({1, usable_cores(), jax.local_device_count()})
    compiled = {(m, n): compile_step(models[m], data, n) for m in models for n in counts}
    rows = windows(jnp.ones((batch, size.side, size.side, 4)), 5).reshape(-1, 100)
    matrix = jnp.ones((100, 4 * size.latent_actions))
    product = jax.jit(jnp.matmul)
    contestants: dict[Any, Callable[[], Any]] = {key: one.run for key, one in compiled.items()}
    seconds = best_seconds(contestants | {"product": lambda: product(rows, matrix)}, _REPEATS.value)
    vin, highway = f"VIN N = {size.num_blocks}", f"highway VIN N = {size.depth}"
    shared = "the same, exploration shared by the batch"
    figures = []
    for n in counts:
        where = f"{name}, {n} device{'s' * (n > 1)}"
        ratios = {m: seconds[m, n] / seconds["vin", n] for m in models}
        figures += [
            Figure(f"{where}: step of {vin}", seconds["vin", n], "s"),
            Figure(f"{where}: step of {highway}", seconds["highway", n], "s"),
            Figure(f"{where}: {shared}", seconds["shared", n], "s"),
            Figure(f"{where}: {highway} / {vin}", ratios["highway"], "×", size.against_vin),
            Figure(f"{where}: {shared}", ratios["shared"], "×", size.against_vin),
        ]
    products = size.num_blocks * seconds["product"]
    memory = {m: compiled[m, 1].gigabytes for m in models}
    return [
        *figures,
        Figure(f"{name}: {vin} / its bare products", seconds["vin", 1] / products, "×", 4.0),
        Figure(f"{name}: temporary memory of {highway}", memory["highway"], "GB", size.memory_gb),
        Figure(f"{name}: {shared}", memory["shared"], "GB", size.memory_gb),
        Figure(f"{name}: temporary memory of {vin}", memory["vin"], "GB"),
    ]


def module(name: str) -> list[Figure]:
    """The forward pass of one VI module against the bare matrix product of the same shapes."""
    size, batch = SIZES[name], _BATCH.value
    keys = jax.random.split(jax.random.key(0), 3)
    value = jax.random.normal(keys[0], (batch, size.side, size.side, 4))
    q_reward = jax.random.normal(keys[1], (*value.shape, size.latent_actions))
    kernel = 0.1 * jax.random.normal(keys[2], (5, 5, 4, 4, size.latent_actions))
    rows, matrix = windows(value, 5).reshape(-1, 100), kernel_matrix(kernel)
    with_actions, product = jax.jit(greedy), jax.jit(jnp.matmul)
    vi_module = jax.jit(lambda *x: greedy(*x)[0])
    best = vi_module(q_reward, kernel, value)
    np.testing.assert_allclose(best, (q_reward + convolve(value, kernel)).max(-1), atol=1e-4)
    contestants: dict[str, Callable[[], object]] = {
        "vi": lambda: vi_module(q_reward, kernel, value),
        "actions": lambda: with_actions(q_reward, kernel, value),
        "product": lambda: product(rows, matrix),
    }
    seconds = best_seconds(contestants, 5 * _REPEATS.value)
    ratio, ratio_with_actions = (seconds[x] / seconds["product"] for x in ("vi", "actions"))
    return [
        Figure(f"{name}: VI module forward", 1e3 * seconds["vi"], "ms"),
        Figure(f"{name}: VI module / bare product", ratio, "×", 2.0),
        Figure(f"{name}: the same with the actions, as in training", ratio_with_actions, "×"),
    ]


def gppn() -> list[Figure]:
    """The memory of a deep GPPN, from the compiler; it is not run."""
    compiled = compile_step(GPPN(depth=300), make_batch(_BATCH.value, 25))
    return [Figure("GPPN N = 300, 25×25: temporary memory", compiled.gigabytes, "GB", 4.0)]


def depth() -> list[Figure]:
    """Time per step and time to compile against `N_B` and `N_b`, at the cpu size."""
    size = SIZES["cpu"]
    data = make_batch(_BATCH.value, size.side)
    figures, steps = [], {}
    for blocks, deep in ((5, 5), (10, 5), (20, 5), (40, 5), (20, 1), (20, 2), (20, 10), (20, 50)):
        shape = dataclasses.replace(size, num_blocks=blocks, block_depth=deep)
        compiled = compile_step(highway_vin(shape), data)
        label = f"cpu: N_B = {blocks}, N_b = {deep}, N = {blocks * deep}"
        figures.append(Figure(f"{label}: compile", compiled.compile_seconds, "s"))
        steps[f"{label}: step"] = compiled.run
    for label, seconds in best_seconds(steps, _REPEATS.value).items():
        figures.append(Figure(label, seconds, "s"))
    return figures


if __name__ == "__main__":
    app.run(main)
