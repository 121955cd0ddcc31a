"""Optimisers and schedules by name.

The protocol's optimiser is RMSprop as the baseline code has it: learning rate 1e-3, decay 0.99,
epsilon 1e-6 outside of the root, gradients clipped to a norm of 40.
"""

import difflib
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

PROTOCOL_RMSPROP: Mapping[str, Any] = {"decay": 0.99, "eps": 1e-6, "eps_in_sqrt": False}
SCHEDULES = ("constant", "cosine", "linear")


def make_optimizer(
    name: str = "rmsprop",
    *,
    learning_rate: float = 1e-3,
    options: Mapping[str, Any] | None = None,
    clip_norm: float | None = 40.0,
    plain_norm: bool = False,
    schedule: str = "constant",
    warmup_steps: int = 0,
    num_steps: int = 0,
) -> optax.GradientTransformation:
    """An optimiser with clipping and a schedule.

    Args:
      name: of a function of optax, such as "rmsprop", "adam" or "adamw".
      learning_rate: its peak, > 0.
      options: further arguments of that function; the protocol's for "rmsprop" by default.
      clip_norm: the largest norm of the gradient; None does not clip.
      plain_norm: whether to clip by the plain root of the sum of squares, as is usual (PyTorch,
        optax), which overflows above 1.8e19: such gradients become zero.
      schedule: what the learning rate does after the warm-up: "constant", or down to zero by
        "cosine" or "linear".
      warmup_steps: over how many steps it grows from zero first.
      num_steps: the length of the training, at whose end the schedule arrives.

    Returns:
      The optimiser.
    """
    if not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate is {learning_rate}, expected a number above 0")
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm is {clip_norm}, expected more than 0, or None not to clip")
    make = _find(name)
    if options is None:
        options = PROTOCOL_RMSPROP if name == "rmsprop" else {}
    unknown = set(options) - set(inspect.signature(make).parameters)
    if unknown:
        raise ValueError(f"optax.{name} has no option {', '.join(sorted(unknown))}")
    rate = make_schedule(schedule, learning_rate, warmup_steps, num_steps)
    optimizer = make(rate, **options)
    if clip_norm is None:
        return optimizer
    clip = optax.clip_by_global_norm if plain_norm else clip_by_norm
    return optax.chain(clip(clip_norm), optimizer)


def check_optimizer(arguments: Any) -> None:
    """Raises unless these are arguments of `make_optimizer` by name, but for `num_steps`."""
    if not isinstance(arguments, Mapping):
        raise TypeError(
            f"optimizer is {arguments!r}, expected arguments of make_optimizer by name, such as "
            '{"name": "adam", "learning_rate": 3e-3}'
        )
    known = [name for name in _parameters(make_optimizer) if name != "num_steps"]
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"optimizer has {name!r}, expected some of {', '.join(known)}{hint}")
    for name in ("learning_rate", "clip_norm"):
        value = arguments.get(name)
        if not (value is None or (isinstance(value, int | float | np.number))):
            raise TypeError(f"{name} of the optimizer is {value!r}, expected a number")


def clip_by_norm(largest: float) -> optax.GradientTransformation:
    """Scales gradients down to a norm, also those whose squares are beyond float32."""

    def update(grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        del params
        norm = tree_norm(grads)
        root = jnp.where(norm < largest, 1, largest**0.5 * lax.rsqrt(norm))
        return _multiply_twice(grads, root), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def tree_norm(tree: Any) -> jax.Array:
    """The Euclidean norm of all entries.

    Unlike `optax.tree.norm`, it takes the squares relative to the largest entry. Gradients of deep
    networks can be above 1e19, where squares overflow float32: clipped they do no harm, but their
    norm would seem infinite.
    """
    top = jax.tree.reduce(jnp.maximum, jax.tree.map(lambda x: jnp.abs(x).max(initial=0), tree))
    root = lax.rsqrt(jnp.where(top > 0, top, 1))
    return top * optax.tree.norm(_multiply_twice(tree, root))


def _multiply_twice(tree: Any, factor: jax.Array) -> Any:
    # By its square at once, or a division, which the compiler merges with others into one by their
    # product, would leave the range of float32 where gradients are largest.
    return jax.tree.map(lambda x: x * factor * factor, tree)


def make_schedule(
    name: str, learning_rate: float, warmup_steps: int, num_steps: int
) -> optax.Schedule:
    """The learning rate of each step; see `make_optimizer`."""
    if name not in SCHEDULES:
        raise ValueError(f"unknown schedule {name!r}: expected one of {', '.join(SCHEDULES)}")
    if not 0 <= warmup_steps < 2**31:
        raise ValueError(f"warmup_steps is {warmup_steps}, expected 0 to 2³¹ - 1")
    rest = num_steps - warmup_steps
    if name != "constant" and rest < 1:
        raise ValueError(
            f"a {name} schedule needs more steps than its warm-up of {warmup_steps}, "
            f"got {num_steps}"
        )
    after = {
        "constant": lambda: optax.constant_schedule(learning_rate),
        "cosine": lambda: optax.cosine_decay_schedule(learning_rate, rest),
        "linear": lambda: optax.linear_schedule(learning_rate, 0.0, rest),
    }[name]()
    if warmup_steps == 0:
        return after
    warmup = optax.linear_schedule(0.0, learning_rate, warmup_steps)
    return optax.join_schedules([warmup, after], [warmup_steps])


def _find(name: str) -> Callable[..., optax.GradientTransformation]:
    make = getattr(optax, name, None)
    if not callable(make) or "learning_rate" not in _parameters(make):
        raise ValueError(
            f"optax has no optimiser {name!r}: expected a name such as rmsprop, adam, adamw or sgd"
        )
    return make


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()
