"""Highway value iteration: against the oracle, and what it reduces to."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import KEY, random_conv, same, small_conv

import hvin_jax

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


# Against the oracle ------------------------------------------------------------------------------


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"block_depth": 1},
        {"num_policies": 3},
        {"num_policies": 2, "epsilon": 0.5, "alpha": [0.5, -1.0], "alpha_tilde": [2.0, -0.3]},
        {"num_policies": 2, "alpha": 3.0, "alpha_tilde": -2.0, "filter_gate": False},
        {"epsilon": 0.3, "filter_gate": False, "block_depth": 4, "alpha": [-1.0, 2.0]},
        {"num_policies": 2, "key": None, "alpha": [0.5, -1.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["conv", "tabular"])
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
    asked = {"return_values": True, "return_actions": True}
    blocks = hvin_jax.highway_vi(key, mdp, num_blocks=5, block_depth=1, num_policies=2, **asked)
    plain = hvin_jax.value_iteration(mdp, num_iterations=5, **asked)
    same(blocks.values, plain.values)
    same(blocks.actions[:, 0], plain.actions)


@pytest.mark.parametrize("num_policies", [1, 2])
def test_epsilon_zero_is_greedy(num_policies):
    mdp = small_conv()
    settings = {"num_blocks": 3, "block_depth": 3, "num_policies": num_policies}
    asked = {"return_values": True, "return_actions": True}
    greedy = hvin_jax.highway_vi(None, mdp, **settings, **asked)
    assert greedy.actions.shape[1] == 1 + 2 * num_policies
    for epsilon in (0.0, 0, jnp.float32(0.0)):
        same(hvin_jax.highway_vi(KEY(0), mdp, epsilon=epsilon, **settings, **asked), greedy)
    same(hvin_jax.highway_vi(None, mdp, epsilon=0.5, **settings, **asked), greedy)


def test_epsilon_as_an_array_is_epsilon_as_a_float():
    plan = partial(
        *(hvin_jax.highway_vi, KEY(0), small_conv()),
        num_blocks=2,
        block_depth=4,
        num_policies=2,
        return_actions=True,
    )
    for epsilon in (0.3, 1.0):
        same(plan(epsilon=jnp.float32(epsilon)), plan(epsilon=epsilon))
    same(plan(epsilon=1), plan())


def test_a_chain_in_evaluation_is_value_iteration_layer_by_layer():
    """A gate that lets the last depth pass alone makes the blocks one long chain."""
    mdp = small_conv()

    def last(values, *, block):
        return jnp.zeros_like(values).at[-1].set(1.0)

    output = hvin_jax.highway_vi(
        None,
        mdp,
        num_blocks=3,
        block_depth=4,
        filter_gate=False,
        depth_gate=last,
        return_values=True,
        return_actions=True,
    )
    plain = hvin_jax.value_iteration(
        mdp, num_iterations=12, return_values=True, return_actions=True
    )
    same(output.values, plain.values[3::4])
    same(output.actions.reshape(plain.actions.shape), plain.actions)


@pytest.mark.parametrize("alpha_tilde", [-3.0, 0.0, 1.0, 10.0])
def test_copies_of_a_chain_change_nothing(alpha_tilde):
    """N_p chains with equal actions: here those of one constant policy, and greedy ones."""
    mdp = small_conv()
    for policy in (None, lambda q, **_: jnp.zeros_like(q).at[..., 1].set(1.0)):
        plan = partial(
            hvin_jax.highway_vi, None, mdp, num_blocks=2, block_depth=3, policy=policy, alpha=0.7
        )
        same(plan(num_policies=3, alpha_tilde=alpha_tilde).value, plan().value)


def test_outer_temperature_is_irrelevant_for_one_policy():
    plan = partial(hvin_jax.highway_vi, KEY(0), small_conv(), num_blocks=2, block_depth=3)
    same(plan(alpha_tilde=50.0).value, plan(alpha_tilde=-2.0).value)
    two = partial(plan, num_policies=2)
    assert jnp.abs(two(alpha_tilde=50.0).value - two(alpha_tilde=-2.0).value).max() > 1e-3


def test_temperatures_of_each_block():
    mdp = small_conv()
    plan = partial(hvin_jax.highway_vi, None, mdp, num_blocks=2, block_depth=3)
    same(plan(alpha=2.0).value, plan(alpha=jnp.array([2.0, 2.0])).value)
    same(plan(alpha=2.0).value, plan(alpha=jnp.float32(2.0)).value)
    # The second block's temperature leaves the value after the first block alone.
    first, second = (
        plan(alpha=jnp.array(alpha), return_values=True).values for alpha in ([2.0, 2], [2.0, -1])
    )
    same(first[0], second[0])
    assert jnp.abs(first[1] - second[1]).max() > 1e-3
