"""The gates of a highway block: soft maximum, filter gate and aggregate gate."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

# A learnable gate: `(values [D, ...], block=index) -> weights [D, ...]` that sum to one over axis 0.
Gate = Callable[..., jax.Array]


def smax(values: jax.Array, alpha: jax.Array | float) -> jax.Array:
    """The soft maximum over axis 0: smax^α f = Σ_x softmax(α f)(x) f(x).

    α → ∞ is the hard maximum, α = 0 the mean, α → -∞ the minimum.

    Args:
      values: `[D, ...]`.
      alpha: the temperature α, a scalar.

    Returns:
      The weighted mean of `values` over axis 0.
    """
    return jnp.sum(jax.nn.softmax(alpha * values, axis=0) * values, axis=0)


def filter_gate(values: jax.Array, baseline: jax.Array) -> jax.Array:
    """The filter gate: V' = max{V, V⁽ⁿ⁺¹⁾}, which drops whatever exploration made worse.

    Args:
      values: `[D, ...]`, the values along a chain.
      baseline: `[...]`, the value after the block's VI module.

    Returns:
      `[D, ...]`.
    """
    return jnp.maximum(values, baseline[None])


def aggregate(
    values: jax.Array, alpha: jax.Array | float, gate: Gate | None, block: jax.Array
) -> jax.Array:
    """The aggregate gate over axis 0: V'' = Σ_d A_d V'_d.

    Args:
      values: `[D, ...]`.
      alpha: the temperature of the default gate, A = softmax(α V').
      gate: a learnable gate that makes the weights A instead, or None for the default.
      block: the index of the highway block, handed to `gate`.

    Returns:
      `[...]`.
    """
    if gate is None:
        return smax(values, alpha)
    return jnp.sum(gate(values, block=block) * values, axis=0)
