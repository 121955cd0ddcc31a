"""Strict settings for every test: what a careless user would trip over should fail here first."""

import os

# The tests compile much and compute little. Without the compiler's last optimisations they take
# half as long, the random numbers above all; read when JAX first touches a device.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0"

import jax
import pytest

# Eight CPU devices, so that the multi-device paths run on any machine.
jax.config.update("jax_num_cpu_devices", 8)
# No silent casts and no silent broadcasting between ranks.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Double precision, in which two ways to compute one thing agree to ten digits or more."""
    with jax.enable_x64(True):
        yield
