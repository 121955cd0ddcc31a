"""The gates of a highway block: the soft maximum, the filter gate and the aggregate gate.

Sums over depth are written as `lax.scan`: the loop over states inside is then contiguous, which the
CPU compiler turns into code some ten times faster than its reduction over a leading axis.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._platforms import scan


class Gate(Protocol):
    """A learnable gate; wrap its parameters with `jax.tree_util.Partial`, as for `Policy`."""

    def __call__(self, values: jax.Array, /, *, block: jax.Array) -> jax.Array:
        """Weights, of the shape and type of `values`, which sum to one over axis 0.

        Args:
          values: `[D, ...]`, filtered values of all depths, or those of all chains.
          block: the index of the highway block, a traced integer.
        """


def smax(
    values: jax.Array, alpha: jax.Array | float, *, floor: jax.Array | None = None
) -> jax.Array:
    """The soft maximum over axis 0: smax^α f = Σ_x softmax(α f)(x) f(x).

    α → ∞ is the hard maximum, α = 0 the mean, α → -∞ the minimum.

    Args:
      values: `[D, ...]`, finite.
      alpha: the temperature α, a scalar.
      floor: `[...]`; if given, `max{values, floor}` stands in for `values`.

    Returns:
      The weighted mean of `values` over axis 0.
    """
    values = checks.as_array("values", values)
    checks.check_floating("values", values.dtype)
    if values.ndim == 0:
        raise ValueError("values must have an axis to take the maximum over, got a number.")
    alpha = checks.as_array("alpha", alpha, values.dtype)
    checks.check_not_nan("alpha", alpha)
    return _smax(values, without_infinities(alpha), floor)


def without_infinities(alpha: jax.Array) -> jax.Array:
    """Temperatures with large ones for infinite ones, whose product with zero would be NaN."""
    most = jnp.asarray(jnp.finfo(alpha.dtype).max ** 0.5, alpha.dtype)
    return jnp.where(jnp.isinf(alpha), jnp.sign(alpha) * most, alpha)


@jax.custom_jvp
def _smax(values: jax.Array, alpha: jax.Array, floor: jax.Array | None) -> jax.Array:
    top, weights, weighted = _relative_sums(values, alpha, floor)
    return top + weighted / weights


def _relative_sums(
    values: jax.Array, alpha: jax.Array, floor: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The value with the largest weight, and Σ_d w_d and Σ_d w_d (V_d - that) for w = exp(α ·).

    Everything is relative to that value: of large ones, an ulp is too much for exp.
    """
    sign = jnp.where(alpha < 0, -1, 1).astype(values.dtype)

    def largest(so_far: jax.Array, value: jax.Array) -> tuple[jax.Array, None]:
        return jnp.maximum(so_far, sign * _lift(value, floor)), None

    def add(sums: tuple[jax.Array, jax.Array], value: jax.Array) -> tuple[tuple, None]:
        distance = _lift(value, floor) - top
        weight = jnp.exp(alpha * distance)
        return (sums[0] + weight, sums[1] + weight * distance), None

    top = sign * scan(largest, sign * _lift(values[0], floor), values[1:])[0]
    zero = jnp.zeros_like(top)
    (weights, weighted), _ = scan(add, (zero, zero), values)
    return top, weights, weighted


def _lift(value: jax.Array, floor: jax.Array | None) -> jax.Array:
    return value if floor is None else jnp.maximum(value, floor)


@_smax.defjvp
def _smax_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
    """With p = softmax(α V') and y = Σ p V': ∂y/∂V'_d = p_d (1 + α (V'_d - y)), ∂y/∂α = Var_p V'.

    The rule is linear in the tangents with factors made in one pass over depth; the backward pass,
    its transpose, is a product with them. Plain autodiff takes more than twice as long.
    """
    values, alpha, floor = primals
    values_dot, alpha_dot, floor_dot = tangents
    top, weights, weighted = _relative_sums(values, alpha, floor)
    mean = weighted / weights

    def factor(sums: tuple[jax.Array, jax.Array], value: jax.Array) -> tuple[tuple, jax.Array]:
        variance, of_floor = sums
        distance = _lift(value, floor) - top
        share = jnp.exp(alpha * distance) / weights
        slope = share * (1 + alpha * (distance - mean))
        variance += share * distance * (distance - mean)
        if floor is None:
            return (variance, of_floor), slope
        # Where both are equal, each has a half, as for `jnp.maximum`.
        own = slope * jnp.where(value > floor, 1.0, jnp.where(value == floor, 0.5, 0.0))
        return (variance, of_floor + slope - own), own

    zero = jnp.zeros_like(top)
    (variance, of_floor), slopes = scan(factor, (zero, zero), values)
    change = jnp.sum(slopes * values_dot, axis=0) + variance * alpha_dot
    if floor is not None:
        change += of_floor * floor_dot
    return top + mean, change


def aggregate(
    values: jax.Array,
    alpha: jax.Array | float,
    *,
    floor: jax.Array | None = None,
    gate: Gate | None = None,
    block: jax.Array,
) -> jax.Array:
    """Filter gate and aggregate gate over axis 0: V'' = Σ_d A_d max{V_d, floor}.

    Args:
      values: `[D, ...]`, the values along a chain (or of several chains).
      alpha: the temperature of the default gate, A = softmax(α V'), not infinite.
      floor: `[...]`, the value below which the filter gate drops what exploration made worse;
        None for no filter gate.
      gate: a learnable gate that makes the weights A instead; None for the default.
      block: the index of the highway block, handed to `gate`.

    Returns:
      `[...]`.
    """
    if gate is None:
        return _smax(values, checks.as_array("alpha", alpha, values.dtype), floor)
    if floor is not None:
        values = jnp.maximum(values, floor[None])
    weights = gate(values, block=block)
    checks.check_like("the output of a gate", weights, values, "the values that it got")
    return jnp.sum(weights * values, axis=0)
