"""The soft maximum: its formula, its derivatives, and large values."""

import itertools
from functools import lru_cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest

import hvin_jax

pytestmark = pytest.mark.usefixtures("x64")
assert_close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def test_soft_maximum():
    values = np.random.default_rng(6).normal(size=(4, 2, 3))
    for alpha in (-3.0, 0.7, 1.0):
        assert_close(hvin_jax.smax(jnp.asarray(values), alpha), oracle.gate(list(values), alpha))
    assert_close(hvin_jax.smax(jnp.asarray(values), 0.0), values.mean(0))
    assert_close(hvin_jax.smax(jnp.asarray(values), 1e6), values.max(0))
    assert_close(hvin_jax.smax(jnp.asarray(values), -1e6), values.min(0))
    assert_close(hvin_jax.smax(jnp.asarray(values[:1]), 2.0), values[0])


def test_infinite_temperatures():
    """The hard maximum and minimum, and their gradients; also of values that are equal."""
    values = np.array([[1.0, 4.0, 2.0], [3.0, -4.0, 2.0]])
    for alpha, best in ((np.inf, values.max(0)), (-np.inf, values.min(0))):
        assert_close(hvin_jax.smax(jnp.asarray(values), alpha), best)
        gradient = jax.grad(lambda x, alpha=alpha: hvin_jax.smax(x, alpha).sum())(
            jnp.asarray(values)
        )
        assert_close(gradient, np.where(values == best, np.array([1, 1, 0.5]), 0))
    with pytest.raises(ValueError, match="alpha must be a number, got nan"):
        hvin_jax.smax(values, np.nan)


@lru_cache
def jacobians_of_the_soft_maximum(filtered):
    """Backwards and forwards, of `smax` and of its formula."""

    def rule(values, alpha, floor):
        return jnp.sin(hvin_jax.smax(values, alpha, floor=floor if filtered else None))

    def formula(values, alpha, floor):
        lifted = jnp.maximum(values, floor[None]) if filtered else values
        return jnp.sin(jnp.sum(jax.nn.softmax(alpha * lifted, axis=0) * lifted, axis=0))

    def jacobians(function, point):
        return [jac(function, argnums=(0, 1, 2))(*point) for jac in (jax.jacrev, jax.jacfwd)]

    return jax.jit(lambda *point: [jacobians(function, point) for function in (rule, formula)])


@pytest.mark.parametrize("alpha", [-2.0, 0.0, 1.5])
@pytest.mark.parametrize("filtered", [False, True])
def test_derivatives_of_the_soft_maximum_are_those_of_its_formula(alpha, filtered):
    rng = np.random.default_rng(8)
    values, floor = rng.normal(size=(4, 2, 3)), rng.normal(size=(2, 3))
    values[1, 0] = floor[0]  # a tie, as at the first depth of every block
    actual, expected = jacobians_of_the_soft_maximum(filtered)(values, np.asarray(alpha), floor)
    chex.assert_trees_all_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_soft_maximum_and_its_gradient_are_finite_at_any_scale():
    gradients = jax.jit(jax.value_and_grad(lambda *x: hvin_jax.smax(*x).sum(), argnums=(0, 1)))
    for scale, alpha in itertools.product([1e-30, 1.0, 1e4, 1e15], [-1.0, 0.0, 1.0]):
        values = scale * np.array([[-1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
        outputs = gradients(values.astype(np.float32), np.float32(alpha))
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(outputs))


@pytest.mark.parametrize("scale", [1.0, 1e5, 1e9, 1e20])
def test_soft_maximum_does_not_round_large_values(scale):
    """Products of α and values round by far more than exp can bear."""
    alpha = np.float32(0.97)
    steps = np.random.default_rng(7).integers(-3, 1, size=(5, 4000))
    values = np.float32(scale) + (steps * np.spacing(np.float32(scale))).astype(np.float32)
    gradient = jax.jit(jax.grad(lambda x: hvin_jax.smax(x, alpha).sum()))
    soft = jax.jit(hvin_jax.smax)(values, alpha)
    top = values.max(0).astype(np.float64)
    below = values - top
    weights = np.exp(alpha * below)
    weights /= weights.sum(0)
    mean = (weights * below).sum(0)
    np.testing.assert_allclose(soft, top + mean, rtol=1e-6)
    expected = weights * (1 + alpha * (below - mean))
    np.testing.assert_allclose(gradient(values), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.arange(3), "values must be of a floating-point type.*int"),
        (np.float32(1), "values must have an axis"),
        ("text", "values must be an array, got 'text'"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises((TypeError, ValueError), match=message):
        hvin_jax.smax(values, 1.0)
