"""The gates of a highway block: the soft maximum, the filter gate and the aggregate gate.

Sums over depth are written as `lax.scan`: the loop over states inside is then contiguous, which the
CPU compiler turns into code some ten times faster than its reduction over a leading axis.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning import checks

# A learnable gate: `(values [D, ...], block=index) -> weights [D, ...]`, which sum to one over
# axis 0. Wrap parameters with `jax.tree_util.Partial`, as for `hvin_jax.Policy`.
Gate = Callable[..., jax.Array]


def smax(
    values: jax.Array, alpha: jax.Array | float, *, floor: jax.Array | None = None
) -> jax.Array:
    """The soft maximum over axis 0: smax^α f = Σ_x softmax(α f)(x) f(x).

    α → ∞ is the hard maximum, α = 0 the mean, α → -∞ the minimum.

    Args:
      values: `[D, ...]`.
      alpha: the temperature α, a scalar.
      floor: `[...]`; if given, `max{values, floor}` stands in for `values`.

    Returns:
      The weighted mean of `values` over axis 0.
    """

    def lifted(value: jax.Array) -> jax.Array:
        return value if floor is None else jnp.maximum(value, floor)

    def largest(so_far: jax.Array, value: jax.Array) -> tuple[jax.Array, None]:
        return jnp.maximum(so_far, sign * lifted(value)), None

    def add(sums: tuple[jax.Array, jax.Array], value: jax.Array) -> tuple[tuple, None]:
        distance = lifted(value) - top
        weight = jnp.exp(alpha * distance)
        return (sums[0] + weight, sums[1] + weight * distance), None

    # Everything is relative to the value with the largest weight: of large values, an ulp is too
    # much for exp. The result does not depend on what it is relative to: that needs no gradient.
    sign = jnp.where(alpha < 0, -1, 1).astype(values.dtype)
    top, _ = lax.scan(largest, sign * lifted(values[0]), values[1:])
    top = lax.stop_gradient(sign * top)
    zero = jnp.zeros_like(top)
    (weights, weighted), _ = lax.scan(add, (zero, zero), values)
    return top + weighted / weights


def aggregate(
    values: jax.Array,
    alpha: jax.Array | float,
    *,
    floor: jax.Array | None = None,
    gate: Gate | None = None,
    block: jax.Array | int = 0,
) -> jax.Array:
    """Filter gate and aggregate gate over axis 0: V'' = Σ_d A_d max{V_d, floor}.

    Args:
      values: `[D, ...]`, the values along a chain (or of several chains).
      alpha: the temperature of the default gate, A = softmax(α V').
      floor: `[...]`, the value below which the filter gate drops what exploration made worse;
        None for no filter gate.
      gate: a learnable gate that makes the weights A instead; None for the default.
      block: the index of the highway block, handed to `gate`.

    Returns:
      `[...]`.
    """
    if gate is None:
        return smax(values, alpha, floor=floor)
    if floor is not None:
        values = jnp.maximum(values, floor[None])
    weights = gate(values, block=block)
    checks.check_shape("the output of a gate", weights.shape, values.shape, "that of its values")
    return jnp.sum(weights * values, axis=0)
