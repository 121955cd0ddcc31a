"""Learnable embedded policies and gates."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from jax.tree_util import Partial
from small_mdps import random_conv

import hvin_jax

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def table_policy(table, q, *, block, chain, layer):
    return table[block, chain, layer]


def table_gate(table, values, *, block):
    return table[block]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("filter_gate", [True, False])
def test_learnable_policy_and_gates_against_the_oracle(filter_gate):
    """Set to fixed random distributions, different for each layer, chain, block and state."""
    blocks, depth, chains = 2, 3, 2
    q_reward, kernel, v0 = random_conv(8)
    rng = np.random.default_rng(9)
    mixes = oracle.random_policies(rng, blocks, chains, depth - 1, *q_reward.shape)
    depth_weights = np.moveaxis(oracle.random_policies(rng, blocks, *v0.shape, depth), -1, 1)
    chain_weights = np.moveaxis(oracle.random_policies(rng, blocks, *v0.shape, chains), -1, 1)
    settings = {
        "num_blocks": blocks,
        "block_depth": depth,
        "num_policies": chains,
        "filter_gate": filter_gate,
    }
    output = hvin_jax.highway_vi(
        None,
        hvin_jax.ConvMDP(q_reward, kernel),
        v0=v0,
        policy=Partial(table_policy, jnp.asarray(mixes)),
        depth_gate=Partial(table_gate, jnp.asarray(depth_weights)),
        policy_gate=Partial(table_gate, jnp.asarray(chain_weights)),
        return_values=True,
        return_actions=True,
        **settings,
    )
    expected = oracle.highway_vi(
        oracle.conv_q(q_reward, kernel),
        v0,
        policy=lambda q, block, chain, layer: mixes[block, chain, layer],
        depth_gate=lambda values, block: depth_weights[block],
        policy_gate=lambda values, block: chain_weights[block],
        **settings,
    )
    assert_close(output.values, expected)
    likely = mixes.argmax(-1).reshape(blocks, chains * (depth - 1), *v0.shape)
    np.testing.assert_array_equal(output.actions[:, 1:], likely)


def softmax_policy(scale, q, *, block, chain, layer):
    return jax.nn.softmax(scale[block, chain, layer] * q, axis=-1)


def softmax_gate(scale, values, *, block):
    return jax.nn.softmax(scale[block] * values, axis=0)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_gradients_of_learnable_policies_and_gates():
    """Equal to autodiff of loops; they also reach the MDP, through VI and VE modules alike."""
    blocks, chains, layers = 2, 2, 2
    rng = np.random.default_rng(11)
    transition, reward, discount = oracle.random_tabular(rng, 4, 3)
    args = [
        jnp.asarray(x)
        for x in (
            (transition * reward).sum(-1),
            rng.uniform(-2, 2, (blocks, chains, layers)),
            rng.uniform(-2, 2, blocks),
            rng.uniform(-2, 2, blocks),
        )
    ]
    weights = jnp.asarray(rng.normal(size=4))

    def ours(reward, mix, over_depth, over_chains):
        output = hvin_jax.highway_vi(
            None,
            hvin_jax.TabularMDP(transition, reward, discount),
            num_blocks=blocks,
            block_depth=layers + 1,
            num_policies=chains,
            policy=Partial(softmax_policy, mix),
            depth_gate=Partial(softmax_gate, over_depth),
            policy_gate=Partial(softmax_gate, over_chains),
        )
        return jnp.vdot(weights, output.value)

    def plain(reward, mix, over_depth, over_chains):
        value = jnp.zeros(4)
        for n in range(blocks):
            first = (reward + discount * transition @ value).max(-1)
            outputs = []
            for p in range(chains):
                values = [first]
                for k in range(layers):
                    q = reward + discount * transition @ values[-1]
                    values.append(jnp.sum(jax.nn.softmax(mix[n, p, k] * q, axis=-1) * q, axis=-1))
                stack = jnp.maximum(jnp.stack(values), first[None])
                outputs.append(jnp.sum(jax.nn.softmax(over_depth[n] * stack, 0) * stack, 0))
            stack = jnp.stack(outputs)
            value = jnp.sum(jax.nn.softmax(over_chains[n] * stack, 0) * stack, 0)
        return jnp.vdot(weights, value)

    actual, expected = (
        jax.jit(jax.value_and_grad(f, argnums=(0, 1, 2, 3)))(*args) for f in (ours, plain)
    )
    chex.assert_trees_all_close(actual, expected, rtol=1e-9, atol=1e-9)
    assert all((np.asarray(grad) != 0).any() for grad in actual[1])
