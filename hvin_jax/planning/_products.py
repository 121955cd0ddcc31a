"""Matrix products, all of them in one precision: float32, or what JAX's own setting says.

By default GPUs multiply float32 numbers rounded to TF32, which has three digits, while sums of
other layers stay in float32; the filter gate compares the two. So products here are float32 unless

    jax.config.update("jax_default_matmul_precision", "tensorfloat32")

or the environment's `JAX_DEFAULT_MATMUL_PRECISION`, or the context `jax.default_matmul_precision`,
chooses otherwise, which then holds for every product of planners and models. CPUs know one only.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def precision() -> lax.Precision | None:
    """That of products; None: the one that was chosen."""
    config: Any = jax.config  # whose settings are no attributes in the types of older releases
    return lax.Precision.HIGHEST if config.jax_default_matmul_precision is None else None


def matmul(x: Any, y: Any) -> jax.Array:
    """`x @ y`."""
    return jnp.matmul(x, y, precision=precision())


def einsum(subscripts: str, *operands: Any) -> jax.Array:
    """`jnp.einsum`."""
    return jnp.einsum(subscripts, *operands, precision=precision())
