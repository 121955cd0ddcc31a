"""Single precision stays single when JAX's 64-bit flag is on, and nothing else changes."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import KEY, plan, same, small_conv

import hvin_jax


def tabular():
    table = oracle.random_tabular(np.random.default_rng(0), 5, 3)
    return hvin_jax.TabularMDP(*(np.asarray(x, np.float32) for x in table))


def operate(mdp):
    policies = np.full((2, *mdp.value_shape, mdp.num_actions), 1 / mdp.num_actions, np.float32)
    value = np.ones(mdp.value_shape, np.float32)
    return hvin_jax.highway_operator(mdp, value, policies, (1, 3), alpha=0.5, alpha_tilde=2.0)


CALLS = {
    "value_iteration": lambda mdp: hvin_jax.value_iteration(
        mdp, num_iterations=3, return_actions=True
    ),
    "highway_vi": lambda mdp: plan(KEY(0), mdp, epsilon=0.5, alpha=[0.5, 1.0]),
    "highway_operator": operate,
}


@pytest.mark.parametrize(
    ("make", "name"), [*((tabular, name) for name in CALLS), (small_conv, "highway_vi")]
)
@pytest.mark.slow
def test_planners(make, name):
    call = CALLS[name]
    expected = call(make())
    with jax.enable_x64(True):
        actual = call(make())
    chex.assert_trees_all_equal_dtypes(actual, expected)
    same(actual, expected)


def test_leaves_that_are_numpy_arrays_of_double_precision():
    """Without the flag JAX narrows them; the value must be of the type that comes out."""
    mdp = jax.tree.map(lambda x: np.asarray(x, np.float64), tabular())
    assert hvin_jax.value_iteration(mdp, num_iterations=1).value.dtype == jnp.float32
    with jax.enable_x64(True):
        assert hvin_jax.value_iteration(mdp, num_iterations=1).value.dtype == jnp.float64
