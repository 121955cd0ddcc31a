"""Compiled programs are shared by all processes of a session, and tests kill some of those."""

import os
import pathlib

import jax
import jax.numpy as jnp


def test_a_program_that_was_written_in_part_is_compiled_again():
    folder = pathlib.Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    expected = jax.jit(_unlike_any_other)(jnp.arange(3.0))
    (file,) = folder.glob("jit__unlike_any_other-*-cache")
    file.write_bytes(file.read_bytes()[:100])
    jax.clear_caches()
    assert jnp.array_equal(jax.jit(_unlike_any_other)(jnp.arange(3.0)), expected)


def _unlike_any_other(x):
    return 7.25 * x + 3.5
