"""Time and memory of the planners.

    python -m benchmarks.planner [--sizes=cpu,paper,wide] [--parts=...] [--json=FILE]

Takes about 15 minutes on 2 cores with all sizes and parts. Contestants take turns within one run,
the shortest of several runs counts, and before anything is timed their outputs and gradients are
compared. Prints the table that stands in benchmarks/README.md.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

from benchmarks.dense import dense_logits
from benchmarks.harness import Figure, best_seconds, note, report, shown
from hvin_jax.models import GPPN, VIN, HighwayVIN
from hvin_jax.planning.conv_backup import convolve, greedy, kernel_matrix
from hvin_jax.planning.windows import windows


@dataclasses.dataclass(frozen=True)
class Size:
    """A network size, and what it should reach."""

    side: int
    latent_actions: int
    num_blocks: int
    block_depth: int
    dense_batch: int
    dense_blocks: int
    against_vin: float | None
    against_dense: float
    memory_gb: float | None

    @property
    def depth(self) -> int:
        """`N`."""
        return self.num_blocks * self.block_depth


SIZES = {
    "cpu": Size(15, 40, 20, 5, 32, 20, None, 1 / 4, None),
    "paper": Size(25, 100, 30, 10, 4, 30, 2.5, 1 / 8, 0.5),
    "wide": Size(25, 600, 30, 10, 4, 3, 1.5, 1 / 20, 1.0),
}
PARTS = ("step", "dense", "module", "gppn", "depth")

_SIZES = flags.DEFINE_list("sizes", list(SIZES), f"Which of {', '.join(SIZES)} to measure.")
_PARTS = flags.DEFINE_list("parts", list(PARTS), f"Which of {', '.join(PARTS)} to measure.")
_REPEATS = flags.DEFINE_integer("repeats", 4, "Timed runs of each contestant.", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch", 32, "Maps in a batch.", lower_bound=1)
_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")


def main(argv: list[str]) -> None:
    """Measures what was asked for and prints it."""
    del argv
    figures = []
    for name in _SIZES.value:
        for part in ("step", "dense", "module"):
            if part in _PARTS.value:
                note(f"{part}, {name} ...")
                figures += shown({"step": step, "dense": dense, "module": module}[part](name))
    if "gppn" in _PARTS.value:
        note("memory of GPPN ...")
        figures += shown(gppn())
    if "depth" in _PARTS.value:
        note("cost of depth ...")
        figures += shown(depth())
    report(figures, _JSON.value)


def step(name: str) -> list[Figure]:
    """A training step of highway VIN against VIN, and of VIN against its bare matrix products."""
    size, batch = SIZES[name], _BATCH.value
    data = make_batch(batch, size.side)
    vin = VIN(latent_actions=size.latent_actions, depth=size.num_blocks)
    highway, shared = highway_vin(size), highway_vin(size, share_exploration=True)
    compiled = {
        "vin": compile_step(vin, data),
        "highway": compile_step(highway, data),
        "shared": compile_step(shared, data),
    }
    rows = windows(jnp.ones((batch, size.side, size.side, 4)), 5).reshape(-1, 100)
    matrix = jnp.ones((100, 4 * size.latent_actions))
    product = jax.jit(jnp.matmul)
    contestants = {key: one.run for key, one in compiled.items()}
    seconds = best_seconds(contestants | {"product": lambda: product(rows, matrix)}, _REPEATS.value)
    layers, products = f"N = {size.depth}", size.num_blocks * seconds["product"]
    vin_name = f"VIN N = {size.num_blocks}"
    return [
        Figure(f"{name}: step of {vin_name}", seconds["vin"], "s"),
        Figure(f"{name}: step of highway VIN {layers}", seconds["highway"], "s"),
        Figure(f"{name}: the same, exploration shared by the batch", seconds["shared"], "s"),
        Figure(
            f"{name}: highway VIN {layers} / {vin_name}",
            seconds["highway"] / seconds["vin"],
            "×",
            size.against_vin,
        ),
        Figure(
            f"{name}: the same, exploration shared by the batch",
            seconds["shared"] / seconds["vin"],
            "×",
        ),
        Figure(f"{name}: {vin_name} / its bare products", seconds["vin"] / products, "×", 4.0),
        Figure(
            f"{name}: temporary memory of highway VIN {layers}",
            compiled["highway"].gigabytes,
            "GB",
            size.memory_gb,
        ),
        Figure(f"{name}: temporary memory of {vin_name}", compiled["vin"].gigabytes, "GB"),
    ]


def dense(name: str) -> list[Figure]:
    """A training step against the plain dense way to write the same network."""
    size = dataclasses.replace(SIZES[name], num_blocks=SIZES[name].dense_blocks)
    where = f"B = {size.dense_batch}, N = {size.depth}"
    model = highway_vin(size)
    data = make_batch(size.dense_batch, size.side)
    ours = compile_step(model, data)
    key = jax.random.key(1)
    output: Any = model.apply(
        ours.params,
        data["maze"],
        data["goal"],
        train=True,
        diagnostics=True,
        rngs={"exploration": key},
    )
    layers = output.actions.reshape(size.num_blocks, size.block_depth, *data["goal"].shape)

    def dense_loss(params: Any, actions: jax.Array) -> jax.Array:
        logits = dense_logits(model, params["params"], data["maze"], data["goal"], actions)
        return cross_entropy(logits, data["label"])

    dense_step = jax.jit(jax.value_and_grad(dense_loss))
    contestants: dict[str, Callable[[], Any]] = {
        "ours": ours.run,
        "dense": lambda: dense_step(ours.params, layers[:, 1:]),
    }
    difference = largest_difference(*(run() for run in contestants.values()))
    seconds = best_seconds(contestants, 1, warm_up=False)
    return [
        Figure(f"{name}: largest relative difference to dense", difference, "", 0.02),
        Figure(f"{name}: step written densely, {where}", seconds["dense"], "s"),
        Figure(f"{name}: our step, {where}", seconds["ours"], "s"),
        Figure(
            f"{name}: ours / dense, {where}",
            seconds["ours"] / seconds["dense"],
            "×",
            size.against_dense,
        ),
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


@dataclasses.dataclass(frozen=True)
class CompiledStep:
    """A training step (loss and gradient), compiled for one model and batch."""

    run: Callable[[], Any]
    params: Any
    compile_seconds: float
    gigabytes: float


def highway_vin(size: Size, **changes: Any) -> HighwayVIN:
    """The highway VIN of a size."""
    return HighwayVIN(
        latent_actions=size.latent_actions,
        num_blocks=size.num_blocks,
        block_depth=size.block_depth,
        **changes,
    )


def make_batch(batch: int, side: int) -> dict[str, jax.Array]:
    """Random maps, goals and labels; the time does not depend on what they are."""
    keys = jax.random.split(jax.random.key(0), 3)
    goal = jax.random.randint(keys[1], (batch,), 0, side * side * 4)
    return {
        "maze": jax.random.bernoulli(keys[0], 0.7, (batch, side, side)),
        "goal": jax.nn.one_hot(goal, side * side * 4).reshape(batch, side, side, 4),
        "label": jax.random.randint(keys[2], (batch, side, side, 4), 0, 3),
    }


def compile_step(model: Any, data: dict[str, jax.Array]) -> CompiledStep:
    """Compiles the training step of a model with parameters away from their zero start."""
    key = jax.random.key(1)
    init = jax.jit(lambda: model.init({"params": key}, data["maze"], data["goal"], train=False))
    params = init()
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(key, len(leaves))
    # Values should neither vanish nor explode over hundreds of layers.
    noise = [0.002 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    params = jax.tree.unflatten(tree, [x + n for x, n in zip(leaves, noise, strict=True)])

    def loss(params: Any, key: jax.Array) -> jax.Array:
        output = model.apply(
            params, data["maze"], data["goal"], train=True, rngs={"exploration": key}
        )
        return cross_entropy(output.logits, data["label"])

    lowered = jax.jit(jax.value_and_grad(loss)).lower(params, key)
    began = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - began
    analysis: Any = compiled.memory_analysis()
    memory = analysis.temp_size_in_bytes / 1e9
    return CompiledStep(lambda: compiled(params, key), params, seconds, memory)


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """Mean over all states."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), label[..., None], axis=-1).mean()


def largest_difference(ours: Any, theirs: Any) -> float:
    """The largest difference in the loss or a gradient, relative to the largest entry of each.

    Stops if it is more than rounding: over hundreds of layers, a near-tie that a maximum breaks
    the other way can change a gradient by some thousandths.
    """
    worst = 0.0
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        scale = float(jnp.abs(other).max()) + 1e-12
        worst = max(worst, float(jnp.abs(mine - other).max()) / scale)
    if not worst < 0.02:
        raise SystemExit(f"The implementations differ by {worst:.2g}: they are not timed.")
    return worst


if __name__ == "__main__":
    app.run(main)
