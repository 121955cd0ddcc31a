"""New arrays do not compile a planner again."""

import importlib

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from jax.tree_util import Partial
from small_mdps import KEY, plan, small_conv

import hvin_jax

# By name: `hvin_jax.planning.value_iteration` is the function.
value_iteration, highway, operator = (
    importlib.import_module(f"hvin_jax.planning.{name}")
    for name in ("value_iteration", "highway", "operator")
)
TABULAR = hvin_jax.TabularMDP(*oracle.random_tabular(np.random.default_rng(0), 5, 3))


@pytest.fixture(autouse=True)
def one_trace(monkeypatch):
    """What the planners compile may be traced once in a test."""
    chex.clear_trace_counter()
    for module, name, static in (
        (value_iteration, "_value_iteration", {"static_argnums": (2, 3, 4)}),
        (highway, "_highway_vi", {"static_argnames": highway._STATIC}),
        (operator, "_highway_operator", {"static_argnums": (5, 6)}),
    ):
        function = chex.assert_max_traces(getattr(module, name).__wrapped__, n=1)
        monkeypatch.setattr(module, name, jax.jit(function, **static))


def scaled_policy(scale, q, **_):
    return jax.nn.softmax(scale * q, axis=-1)


def scaled_gate(scale, values, **_):
    return jax.nn.softmax(scale * values, axis=0)


CALLS = {
    "value_iteration": lambda mdp, x: hvin_jax.value_iteration(
        mdp, num_iterations=3, v0=jnp.full(mdp.value_shape, x)
    ),
    "temperatures": lambda mdp, x: plan(KEY(int(x)), mdp, alpha=x, alpha_tilde=np.float64(x)),
    "epsilon": lambda mdp, x: plan(KEY(int(x)), mdp, epsilon=jnp.float32(x / 9)),
    "any epsilon in evaluation": lambda mdp, x: plan(None, mdp, epsilon=x / 9),
    "policy and gate": lambda mdp, x: plan(
        None,
        mdp,
        policy=Partial(scaled_policy, jnp.float32(x)),
        depth_gate=Partial(scaled_gate, jnp.float32(x)),
    ),
    "highway_operator": lambda mdp, x: hvin_jax.highway_operator(
        mdp,
        jnp.full(mdp.value_shape, x),
        jnp.full((1, *mdp.value_shape, mdp.num_actions), 1 / mdp.num_actions),
        (1, 2),
        alpha=x,
        alpha_tilde=x,
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.slow
def test_new_values_do_not_compile_again(call):
    for x in (1.0, 2.0, 3.0):
        call(jax.tree.map(lambda array, x=x: array * x, TABULAR), x)


def test_new_arrays_of_a_batch_do_not_compile_again():
    for seed in (0, 1):
        mdp = small_conv(seed)
        plan(KEY(seed), mdp, example_index=np.arange(4) + seed, epsilon=jnp.float32(0.5))


def test_the_fixture_finds_a_second_compilation():
    plan(KEY(0), TABULAR, num_blocks=2)
    with pytest.raises(AssertionError, match="traced > 1"):
        plan(KEY(0), TABULAR, num_blocks=3)
