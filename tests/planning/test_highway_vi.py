"""Highway value iteration: against the oracle, and what it reduces to."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import KEY, plan, random_conv, same, small_conv

import hvin_jax

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


# Against the oracle ------------------------------------------------------------------------------


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("conv", {}),
        ("conv", {"block_depth": 1}),
        ("conv", {"num_policies": 3}),
        (
            "conv",
            {"num_policies": 2, "epsilon": 0.5, "alpha": [0.5, -1.0], "alpha_tilde": [2.0, -0.3]},
        ),
        (
            "conv",
            {"num_policies": 2, "alpha": 3.0, "alpha_tilde": -2.0, "filter_gate": False},
        ),
        ("conv", {"epsilon": 0.3, "filter_gate": False, "block_depth": 4, "alpha": [-1.0, 2.0]}),
        ("conv", {"num_policies": 2, "key": None, "alpha": [0.5, -1.0]}),
        ("tabular", {"num_policies": 2, "alpha": [0.5, -1.0], "alpha_tilde": [2.0, -0.3]}),
        ("tabular", {"epsilon": 0.3, "filter_gate": False, "block_depth": 4}),
        ("tabular", {"num_policies": 2, "key": None, "alpha": [0.5, -1.0]}),
    ],
    ids=str,
)
@pytest.mark.slow
def test_against_the_oracle(kind, settings):
    if kind == "conv":
        q_reward, kernel, v0 = random_conv(0)
        mdp, q = hvin_jax.ConvMDP(q_reward, kernel), oracle.conv_q(q_reward, kernel)
    else:
        table = oracle.random_tabular(np.random.default_rng(1), 6, 3)
        mdp, q = hvin_jax.TabularMDP(*table), oracle.tabular_q(*table)
        v0 = np.random.default_rng(2).normal(size=6)
    shape = {"num_blocks": 2, "block_depth": 3, "num_policies": 1}
    settings = shape | settings
    key, epsilon = settings.pop("key", KEY(3)), settings.pop("epsilon", 1.0)
    output = hvin_jax.highway_vi(
        key,
        mdp,
        v0=v0,
        return_values=True,
        return_actions=True,
        epsilon=epsilon,
        **{k: np.asarray(v) if isinstance(v, list) else v for k, v in settings.items()},
    )
    layers = 1 + settings["num_policies"] * (settings["block_depth"] - 1)
    assert output.actions.shape == (2, layers, *mdp.value_shape)
    assert output.values.shape == (2, *mdp.value_shape)
    assert output.value.shape == mdp.value_shape
    assert jnp.issubdtype(output.actions.dtype, jnp.integer)
    actions = np.asarray(output.actions)
    assert ((actions >= 0) & (actions < mdp.num_actions)).all()
    expected = oracle.highway_vi(q, v0, actions=actions, **settings)
    assert_close(output.values, expected)
    assert_close(output.value, expected[-1])
    starts = np.stack([v0, *expected[:-1]])
    np.testing.assert_array_equal(actions[:, 0], [q(start).argmax(-1) for start in starts])
    if key is None:
        assert_close(expected, oracle.highway_vi(q, v0, **settings))


def test_what_was_not_asked_for_is_not_returned():
    output = hvin_jax.highway_vi(None, small_conv(), num_blocks=1, block_depth=2)
    assert output.values is None
    assert output.actions is None


# Reductions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, KEY(0)])
def test_block_depth_one_is_value_iteration(key):
    mdp = small_conv()
    blocks = plan(key, mdp, num_blocks=5, block_depth=1)
    plain = hvin_jax.value_iteration(mdp, num_iterations=5, return_values=True, return_actions=True)
    same(blocks.values, plain.values)
    same(blocks.actions[:, 0], plain.actions)


def test_epsilon_zero_is_greedy():
    mdp = small_conv()
    greedy, one = plan(None, mdp), plan(None, mdp, num_policies=1)
    assert (greedy.actions.shape[1], one.actions.shape[1]) == (5, 3)
    for epsilon in (0.0, 0, jnp.float32(0.0)):
        same(plan(KEY(0), mdp, epsilon=epsilon), greedy)
    same(plan(KEY(0), mdp, epsilon=0.0, num_policies=1), one)
    same(plan(None, mdp, epsilon=0.5), greedy)


def test_epsilon_as_an_array_is_epsilon_as_a_float():
    mdp = small_conv()
    for epsilon in (0.5, 1.0):
        same(plan(KEY(0), mdp, epsilon=jnp.float32(epsilon)), plan(KEY(0), mdp, epsilon=epsilon))
    same(plan(KEY(0), mdp, epsilon=1), plan(KEY(0), mdp))


def last_depth(values, *, block):
    return jnp.zeros_like(values).at[-1].set(1.0)


def test_a_chain_in_evaluation_is_value_iteration_layer_by_layer():
    """A gate that lets the last depth pass alone makes the blocks one long chain."""
    mdp = small_conv()
    output = plan(None, mdp, num_blocks=3, num_policies=1, filter_gate=False, depth_gate=last_depth)
    plain = hvin_jax.value_iteration(mdp, num_iterations=9, return_values=True, return_actions=True)
    same(output.values, plain.values[2::3])
    same(output.actions.reshape(plain.actions.shape), plain.actions)


def second_action(q, *, block, chain, layer):
    return jnp.zeros_like(q).at[..., 1].set(1.0)


@pytest.mark.parametrize("alpha_tilde", [-3.0, 0.0, 1.0, 10.0])
def test_copies_of_a_chain_change_nothing(alpha_tilde):
    """N_p chains with equal actions: here those of one constant policy, and greedy ones."""
    mdp = small_conv()
    for policy in (None, second_action):
        several = plan(None, mdp, policy=policy, alpha=0.7, alpha_tilde=alpha_tilde)
        same(several.value, plan(None, mdp, policy=policy, alpha=0.7, num_policies=1).value)


def test_outer_temperature_is_irrelevant_for_one_policy():
    mdp = small_conv()
    one, two = (
        [plan(KEY(0), mdp, num_policies=n, alpha_tilde=x).value for x in (50.0, -2.0)]
        for n in (1, 2)
    )
    same(*one)
    assert jnp.abs(two[0] - two[1]).max() > 1e-3


def test_temperatures_of_each_block():
    mdp = small_conv()
    for alpha in (jnp.array([2.0, 2.0]), jnp.float32(2.0), [2.0, 2.0]):
        same(plan(None, mdp, alpha=2.0).value, plan(None, mdp, alpha=alpha).value)
    # The second block's temperature leaves the value after the first block alone.
    first, second = (plan(None, mdp, alpha=[2.0, last]).values for last in (2.0, -1.0))
    same(first[0], second[0])
    assert jnp.abs(first[1] - second[1]).max() > 1e-3


# What the filter gate lets through ---------------------------------------------------------------


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("key", [None, KEY(3)], ids=["greedy", "exploring"])
def test_what_passes_the_filter_gate(key):
    """The chains are walked again, along the actions that were taken."""
    table = oracle.random_tabular(np.random.default_rng(1), 6, 3)
    q, value = oracle.tabular_q(*table), np.random.default_rng(2).normal(size=6)
    shape = {"num_blocks": 4, "block_depth": 3, "num_policies": 2}
    wanted = {"return_values": True, "return_actions": True, "return_passed": True}
    mdp = hvin_jax.TabularMDP(*table)
    output = hvin_jax.highway_vi(key, mdp, v0=value, **shape, **wanted)
    states = np.arange(6)
    for block in range(4):
        actions = np.asarray(output.actions[block])
        first = q(value)[states, actions[0]]
        better = []
        for chain in actions[1:].reshape(2, 2, 6):
            explored = first
            for layer in chain:
                explored = q(explored)[states, layer]
                better.append(explored > first)
        assert_close(output.passed[block], np.mean(better, axis=0))
        value = np.asarray(output.values[block])
    assert 0 < np.mean(output.passed) < 1


@pytest.mark.parametrize("settings", [{"filter_gate": False}, {"block_depth": 1}], ids=str)
def test_nothing_passes_where_there_is_no_filter_gate(settings):
    table = oracle.random_tabular(np.random.default_rng(1), 6, 3)
    settings = {"num_blocks": 2, "block_depth": 3} | settings
    with pytest.raises(ValueError, match="return_passed needs a filter gate and a block_depth of"):
        hvin_jax.highway_vi(None, hvin_jax.TabularMDP(*table), **settings, return_passed=True)
