"""Errors for bad input: they name the value, what was expected and what to do.

Shapes are checked always, also under `jit`; values only where they are concrete.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def as_array(name: str, x: Any, dtype: Any = None) -> jax.Array:
    """`jnp.asarray(x, dtype)`, with an error that says what `x` is meant to be."""
    try:
        return jnp.asarray(x, dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array, got {_shown(x)}.") from error


def concrete(name: str, x: object) -> np.ndarray | None:
    """The value of `x`, numbers, as a numpy array, or None while it is being traced."""
    if isinstance(x, jax.core.Tracer):
        return None
    array = np.asarray(x)
    if array.dtype.kind in "OSU":
        raise TypeError(f"{name} must be a number or an array of numbers, got {_shown(x)}.")
    return array


def check_rank(name: str, x: jax.Array, ranks: int | Sequence[int], axes: str) -> None:
    """Raises unless `x` has one of `ranks` axes; `axes` says what they are, e.g. "[S, A]"."""
    allowed = (ranks,) if isinstance(ranks, int) else tuple(ranks)
    if x.ndim not in allowed:
        raise ValueError(f"{name} must have shape {axes}, got {tuple(x.shape)}.")


def check_shape(name: str, shape: Sequence[int], expected: Sequence[int], axes: str) -> None:
    """Raises unless `shape` is `expected`; `axes` says what the axes are."""
    if tuple(shape) != tuple(expected):
        raise ValueError(f"{name} must have shape {axes} = {tuple(expected)}, got {tuple(shape)}.")


def check_like(name: str, x: Any, like: jax.Array, whose: str) -> None:
    """Raises unless `x` is an array of the shape and type of `like`, which are those of `whose`."""
    if not isinstance(x, jax.Array | np.ndarray | np.generic):
        raise TypeError(f"{name} must be an array, got {_shown(x)}.")
    if x.shape != like.shape:
        raise ValueError(
            f"{name} must have the shape of {whose}, {tuple(like.shape)}, got {tuple(x.shape)}."
        )
    if x.dtype != like.dtype:
        raise TypeError(f"{name} must be {like.dtype}, the type of {whose}, got {x.dtype}.")


def check_callable(name: str, function: object) -> None:
    """Raises unless `function` can be called or is None."""
    if function is not None and not callable(function):
        raise TypeError(f"{name} must be a function or None, got {_shown(function)}.")


def check_floating(name: str, dtype: Any) -> None:
    """Raises unless `dtype` is a floating-point type."""
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"{name} must be of a floating-point type such as float32, got {dtype}.")


def check_not_empty(name: str, x: jax.Array) -> None:
    """Raises if an axis of `x` has length zero."""
    if x.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {tuple(x.shape)}.")


def check_at_least(name: str, value: int, minimum: int) -> None:
    """Raises unless `value` is a Python integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a Python int, got {_shown(value)}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")


def check_key(name: str, key: object) -> None:
    """Raises unless `key` is a typed PRNG key or None."""
    if key is None:
        return
    if not isinstance(key, jax.Array):
        raise TypeError(
            f"{name} must be a typed key such as jax.random.key(0), or None; got {_shown(key)}."
        )
    if not jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
        raise TypeError(
            f"{name} must be a typed key such as jax.random.key(0), got {key.dtype} of shape "
            f"{key.shape}; wrap an old one with jax.random.wrap_key_data."
        )


def check_unit_interval(name: str, value: object) -> None:
    """Raises if `value` is concrete and not (all) within [0, 1]."""
    array = concrete(name, value)
    if array is not None and not np.all((array >= 0) & (array <= 1)):
        raise ValueError(f"{name} must lie in [0, 1], got {array}.")


def check_finite(name: str, value: object) -> None:
    """Raises if `value` is concrete and not (all) finite."""
    array = concrete(name, value)
    if array is not None and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array}.")


def check_not_nan(name: str, value: object) -> None:
    """Raises if `value` is concrete and has a NaN."""
    array = concrete(name, value)
    if array is not None and np.isnan(array).any():
        raise ValueError(f"{name} must be a number, got {array}.")


def check_distribution(name: str, probabilities: object) -> None:
    """Raises if `probabilities` are concrete and do not form distributions over the last axis."""
    array = concrete(name, probabilities)
    if array is None:
        return
    if np.any(array < 0):
        raise ValueError(f"{name} must not be negative, got a minimum of {array.min()}.")
    sums = array.astype(np.float64).sum(-1)
    worst = sums.flat[np.argmax(np.abs(sums - 1))]
    # Of narrow types, not even what was rounded well sums to one.
    narrow = array.dtype.itemsize < 4
    if not np.abs(worst - 1) < (1e-4 + jnp.finfo(array.dtype).eps if narrow else 1e-4):
        raise ValueError(f"{name} must sum to one over the last axis, got a sum of {worst}.")


def check_odd(name: str, value: int) -> None:
    """Raises unless `value` is a positive odd integer."""
    check_at_least(name, value, 1)
    if value % 2 == 0:
        raise ValueError(f"{name} must be odd, so that a window has a centre; got {value}.")


def _shown(x: object) -> str:
    """Arrays by their shape, all else by its representation."""
    if isinstance(x, jax.Array | np.ndarray):
        return f"an array of {x.dtype} of shape {tuple(x.shape)}"
    return f"{x!r} of type {type(x).__name__}"
