"""Training steps to be timed: sizes, data, parameters and compiled functions of contestants."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from hvin_jax.models import HighwayVIN
from hvin_jax.training.devices import split_mean


@dataclasses.dataclass(frozen=True)
class Size:
    """A network size, and what it should reach."""

    side: int
    latent_actions: int
    num_blocks: int
    block_depth: int
    against_vin: float | None
    memory_gb: float | None

    @property
    def depth(self) -> int:
        """`N`."""
        return self.num_blocks * self.block_depth


SIZES = {
    "cpu": Size(15, 40, 20, 5, None, None),
    "paper": Size(25, 100, 30, 10, 2.5, 0.5),
    "wide": Size(25, 600, 30, 10, 1.5, 1.0),
}


def highway_vin(size: Size, **changes: Any) -> HighwayVIN:
    """The highway VIN of a size."""
    return HighwayVIN(
        latent_actions=size.latent_actions,
        num_blocks=size.num_blocks,
        block_depth=size.block_depth,
        **changes,
    )


@dataclasses.dataclass(frozen=True)
class CompiledStep:
    """A training step (loss and gradient), compiled for one model and batch."""

    run: Callable[[], Any]
    compile_seconds: float
    gigabytes: float


def make_batch(batch: int, side: int) -> dict[str, jax.Array]:
    """Random maps, goals and labels; the time does not depend on what they are."""
    keys = jax.random.split(jax.random.key(0), 3)
    goal = jax.random.randint(keys[1], (batch,), 0, side * side * 4)
    return {
        "maze": jax.random.bernoulli(keys[0], 0.7, (batch, side, side)),
        "goal": jax.nn.one_hot(goal, side * side * 4).reshape(batch, side, side, 4),
        "label": jax.random.randint(keys[2], (batch, side, side, 4), 0, 3),
        "index": jnp.arange(batch),
    }


def make_params(model: Any, data: dict[str, jax.Array]) -> Any:
    """Parameters away from their zero start, with values that neither vanish nor explode.

    The value kernel's weights sum to about one. With smaller ones the filter gate would drop what
    explored layers find, and a comparison of gradients would say nothing about these layers.
    """
    key = jax.random.key(1)
    init = jax.jit(lambda: model.init({"params": key}, data["maze"], data["goal"], train=False))
    leaves, tree = jax.tree.flatten(init())
    keys = jax.random.split(key, len(leaves))
    noise = [0.002 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    params = jax.tree.unflatten(tree, [x + n for x, n in zip(leaves, noise, strict=True)])
    if "value_kernel" in params["params"]:
        kernel = params["params"]["value_kernel"]
        params["params"]["value_kernel"] = kernel + 1 / kernel[..., 0, 0].size
    return params


def loss_of(model: Any, params: Any, key: jax.Array, data: dict[str, jax.Array]) -> jax.Array:
    """The loss of a model in training."""
    return cross_entropy(output_of(model, params, key, data).logits, data["label"])


def output_of(
    model: Any, params: Any, key: jax.Array, data: dict[str, jax.Array], **options: Any
) -> Any:
    """The `PlannerOutput` of a model in training."""
    return model.apply(
        params,
        data["maze"],
        data["goal"],
        train=True,
        example_index=data["index"],
        rngs={"exploration": key},
        **options,
    )


def cross_entropy(logits: jax.Array, label: jax.Array) -> jax.Array:
    """Mean over all states."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), label[..., None], axis=-1).mean()


def compile_step(model: Any, data: dict[str, jax.Array], devices: int = 1) -> CompiledStep:
    """Compiles the training step of a model, the batch split evenly over some devices."""
    params, key = make_params(model, data), jax.random.key(1)

    def step(params: Any, key: jax.Array, data: dict[str, jax.Array]) -> Any:
        return jax.value_and_grad(lambda params: loss_of(model, params, key, data))(params)

    function: Any = jax.jit(step)
    if devices > 1:
        data = jax.tree.map(lambda x: x.reshape(devices, -1, *x.shape[1:]), data)
        function = split_mean(step, jax.local_devices()[:devices])
    lowered = function.lower(params, key, data)
    began = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - began
    memory = compiled.memory_analysis().temp_size_in_bytes / 1e9
    run = (
        (lambda: compiled(params, key, data))
        if devices == 1
        else (lambda: function(params, key, data))
    )
    return CompiledStep(run, seconds, memory)
