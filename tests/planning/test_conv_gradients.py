"""The latent MDP: gradients against plain autodiff of a network written without a trick."""

from functools import lru_cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads
from small_mdps import SHAPES, random_conv

import hvin_jax
from hvin_jax.planning import _conv_backup as conv_backup


def dense_q(q_reward, kernel, value):
    """All Q by XLA's own convolution."""
    b, h, w, o, a = q_reward.shape
    out = lax.conv_general_dilated(
        value,
        kernel.reshape(*kernel.shape[:3], o * a),
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    return q_reward + out.reshape(b, h, w, o, a)


def dense_highway_vi(
    q_reward, kernel, v0, alpha, alpha_tilde, actions, *, depth, num_policies, filter_gate
):
    """The same network without a trick: all Q in every layer, Python loops, plain autodiff."""
    value = v0
    for n in range(len(alpha)):
        first = dense_q(q_reward, kernel, value).max(-1)
        chains = []
        for p in range(num_policies):
            values = [first]
            for layer in range(depth - 1):
                q = dense_q(q_reward, kernel, values[-1])
                if actions is None:
                    values.append(q.max(-1))
                else:
                    action = actions[n, 1 + p * (depth - 1) + layer]
                    values.append(jnp.take_along_axis(q, action[..., None], -1)[..., 0])
            stack = jnp.stack(values)
            if filter_gate:
                stack = jnp.maximum(stack, first[None])
            chains.append(jnp.sum(jax.nn.softmax(alpha[n] * stack, axis=0) * stack, axis=0))
        stack = jnp.stack(chains)
        value = jnp.sum(jax.nn.softmax(alpha_tilde[n] * stack, axis=0) * stack, axis=0)
    return value


@partial(jax.jit, static_argnums=0)
def gradients(function, actions, args, weights):
    """(value, actions) of a function of `actions` and `args`, and gradients of a weighted sum."""

    def loss(args):
        value, taken = function(actions, *args)
        return jnp.sum(weights * value), (value, taken)

    grads, (value, taken) = jax.grad(loss, has_aux=True)(args)
    return (value, grads), taken


def assert_same_gradients(ours, plain, args, weights):
    """`ours` returns (value, actions), and `plain` gets the actions before the arguments.

    A `plain` that is one object in several tests is compiled in the first of them.
    """
    actual, actions = gradients(lambda _, *args: ours(*args), None, args, weights)
    expected, _ = gradients(plain, actions, args, weights)
    chex.assert_trees_all_close(actual, expected, rtol=1e-9, atol=1e-9)
    return actual[1]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", [SHAPES[0], SHAPES[3]], ids=str)
@pytest.mark.slow
def test_gradients_of_value_iteration(shape):
    args = [jnp.asarray(x) for x in random_conv(10, shape)]
    weights = jnp.asarray(np.random.default_rng(11).normal(size=(5, *shape[:4])))

    def ours(q_reward, kernel, v0):
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        output = hvin_jax.value_iteration(mdp, num_iterations=5, v0=v0, return_values=True)
        return output.values, None

    def plain(_, q_reward, kernel, v0):
        values = []
        for _ in range(5):
            v0 = dense_q(q_reward, kernel, v0).max(-1)
            values.append(v0)
        return jnp.stack(values), None

    assert_same_gradients(ours, plain, args, weights)


@lru_cache
def plain_highway_vi(depth, num_policies, filter_gate):
    """`dense_highway_vi` as one object for each of its settings, with the actions first."""

    def plain(actions, *args):
        settings = {"num_policies": num_policies, "filter_gate": filter_gate}
        return dense_highway_vi(*args, actions, depth=depth, **settings), None

    return plain


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("epsilon", "num_policies", "filter_gate", "share"),
    [
        (1.0, 2, True, False),
        (1.0, 1, False, False),
        (1.0, 2, True, True),
        (0.5, 2, True, True),
        ("array", 2, True, False),
        (None, 2, True, False),
    ],
)
@pytest.mark.slow
def test_gradients_of_highway_vi(epsilon, num_policies, filter_gate, share):
    shape, depth = (2, 3, 4, 2, 3, 3), 3
    rng = np.random.default_rng(12)
    temperatures = rng.uniform(-2, 2, (2, 2))
    args = [jnp.asarray(x) for x in (*random_conv(13, shape), *temperatures)]
    greedy = epsilon in (None, 0.0)
    settings = {"num_policies": num_policies, "filter_gate": filter_gate}

    def ours(q_reward, kernel, v0, alpha, alpha_tilde):
        output = hvin_jax.highway_vi(
            None if epsilon is None else jax.random.key(1),
            hvin_jax.ConvMDP(q_reward, kernel),
            num_blocks=2,
            block_depth=depth,
            alpha=alpha,
            alpha_tilde=alpha_tilde,
            v0=v0,
            epsilon={"array": jnp.asarray(0.5), None: 1.0}.get(epsilon, epsilon),
            return_actions=not greedy,
            share_exploration=share,
            **settings,
        )
        return output.value, output.actions

    plain = plain_highway_vi(depth, num_policies, filter_gate)
    grads = assert_same_gradients(ours, plain, args, jnp.asarray(rng.normal(size=shape[:4])))
    reached = [bool(jnp.any(grad != 0)) for grad in grads]
    # One chain, or chains that are all alike, leave the outer gate nothing to weigh.
    assert reached[:4] == [True] * 4
    assert greedy or reached[4] == (num_policies > 1)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("shape", "share"), [((1, 2, 2, 2, 4, 3), False), ((2, 1, 3, 1, 2, 5), True)], ids=str
)
@pytest.mark.slow
def test_gradients_through_values_and_many_blocks(shape, share):
    """Blocks deeper than the map, and cotangents that enter after every block."""
    blocks, depth = 3, 4
    rng = np.random.default_rng(14)
    args = [jnp.asarray(x) for x in (*random_conv(15, shape), rng.uniform(0, 2, blocks))]
    weights = jnp.asarray(rng.normal(size=(blocks, *shape[:4])))

    def ours(q_reward, kernel, v0, alpha):
        output = hvin_jax.highway_vi(
            jax.random.key(2),
            hvin_jax.ConvMDP(q_reward, kernel),
            num_blocks=blocks,
            block_depth=depth,
            alpha=alpha,
            v0=v0,
            share_exploration=share,
            return_values=True,
            return_actions=True,
        )
        return output.values, output.actions

    def plain(actions, q_reward, kernel, v0, alpha):
        values = []
        for n in range(blocks):
            one = slice(n, n + 1)
            v0 = dense_highway_vi(
                *(q_reward, kernel, v0, alpha[one], jnp.zeros(1), actions[one]),
                depth=depth,
                num_policies=1,
                filter_gate=True,
            )
            values.append(v0)
        return jnp.stack(values), None

    assert_same_gradients(ours, plain, args, weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("states_per_part", "depth"), [(0, 1), (4, 2), (5, 3)])
@pytest.mark.slow
def test_gradients_with_many_actions_and_in_parts(monkeypatch, states_per_part, depth):
    """More actions than a byte can count; the sums over states split in any way.

    A depth for each, so that what was compiled before, and does not know, is not used.
    """
    shape = (2, 2, 3, 2, 300, 3)
    args = [jnp.asarray(x) for x in random_conv(21, shape)]
    weights = jnp.asarray(np.random.default_rng(22).normal(size=shape[:4]))
    update_of_a_state = 2 * (3 * 3 * 2) * 8
    monkeypatch.setattr(conv_backup, "_UPDATE_BYTES", states_per_part * update_of_a_state)

    def ours(q_reward, kernel, v0):
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        return hvin_jax.value_iteration(mdp, num_iterations=depth, v0=v0).value, None

    def plain(_, q_reward, kernel, v0):
        for _ in range(depth):
            v0 = dense_q(q_reward, kernel, v0).max(-1)
        return v0, None

    assert_same_gradients(ours, plain, args, weights)


@pytest.mark.usefixtures("x64")
def test_gradients_of_tied_kernels():
    """The kernel of a tied MDP collects the gradient of both its roles."""
    shape = (2, 3, 3, 2, 3, 3)
    _, kernel, reward = random_conv(16, shape)
    weights = jnp.asarray(np.random.default_rng(17).normal(size=shape[:4]))

    def ours(reward, kernel):
        mdp = hvin_jax.ConvMDP.from_reward(reward, kernel)
        return hvin_jax.value_iteration(mdp, num_iterations=3).value, None

    def plain(_, reward, kernel):
        q_reward = dense_q(jnp.zeros(shape[:5]), kernel, reward)
        value = jnp.zeros(shape[:4])
        for _ in range(3):
            value = dense_q(q_reward, kernel, value).max(-1)
        return value, None

    assert_same_gradients(ours, plain, [jnp.asarray(reward), jnp.asarray(kernel)], weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.slow
def test_gradients_numerically():
    """Along fixed actions a chain is smooth: differences must agree with the backward pass."""
    args = [jnp.asarray(x) for x in random_conv(18, (2, 3, 2, 2, 3, 3))]

    @jax.jit
    def explore(q_reward, kernel, v0, alpha):
        # Uniform noise does not depend on the arrays, and the maxima are far from ties.
        return hvin_jax.highway_vi(
            jax.random.key(0),
            hvin_jax.ConvMDP(q_reward, kernel),
            num_blocks=1,
            block_depth=4,
            alpha=alpha,
            v0=v0,
        ).value

    args.append(jnp.asarray([0.7]))
    check_grads(explore, args, order=1, modes=["rev"], eps=1e-6, rtol=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("epsilon", [1.0, 0.5, np.float32(0.5)], ids=["1", "0.5", "array"])
def test_single_precision_stays_single(epsilon, share):
    q_reward, kernel, value = (x.astype(np.float32) for x in random_conv(20, SHAPES[2]))
    mdp = hvin_jax.ConvMDP(q_reward, kernel)

    def loss(mdp):
        output = hvin_jax.highway_vi(
            jax.random.key(0),
            mdp,
            num_blocks=2,
            block_depth=3,
            v0=value,
            epsilon=epsilon,
            share_exploration=share,
        )
        assert output.value.dtype == jnp.float32
        return output.value.sum()

    grads = jax.eval_shape(jax.grad(loss), mdp)
    assert {x.dtype for x in jax.tree.leaves(grads)} == {jnp.dtype("float32")}
