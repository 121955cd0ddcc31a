"""The latent MDP: backups against loops over the window, gradients against plain autodiff."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from jax import lax
from jax.test_util import check_grads

import hvin_jax
from hvin_jax.planning import _conv_backup as conv_backup
from hvin_jax.planning._windows import unwindows, windows

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)

# (B, H, W, O, A, F): not square, one orientation, one example, one action, kernel beyond the map.
SHAPES = [
    (2, 3, 5, 4, 3, 3),
    (1, 4, 2, 1, 6, 5),
    (3, 1, 4, 2, 1, 3),
    (2, 2, 2, 3, 4, 5),
    (2, 3, 3, 2, 5, 1),
    (1, 1, 1, 1, 1, 1),
]


def random_mdp(seed, shape):
    b, h, w, o, a, f = shape
    rng = np.random.default_rng(seed)
    q_reward = rng.normal(size=(b, h, w, o, a))
    kernel = rng.normal(size=(f, f, o, o, a)) * 0.7 / (f * np.sqrt(o))
    return q_reward, kernel, rng.normal(size=(b, h, w, o))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
class TestBackups:
    def test_q_and_greedy(self, shape):
        q_reward, kernel, value = random_mdp(0, shape)
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        assert mdp.num_actions == shape[4]
        assert mdp.value_shape == shape[:4]
        assert mdp.batched
        expected = oracle.conv_q(q_reward, kernel)(value)
        assert_close(mdp.q(jnp.asarray(value)), expected)
        best, action = jax.jit(hvin_jax.ConvMDP.greedy)(mdp, value)
        assert_close(best, oracle.best(expected))
        np.testing.assert_array_equal(action, expected.argmax(-1))
        assert_close(hvin_jax.bellman_optimality(mdp, jnp.asarray(value)), oracle.best(expected))

    def test_q_of_chosen_actions_and_chains_of_them(self, shape):
        q_reward, kernel, value = random_mdp(1, shape)
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        actions = np.random.default_rng(2).integers(0, shape[4], (4, *shape[:4]))
        expected = oracle.follow(oracle.conv_q(q_reward, kernel), value, actions)
        q_of = jax.jit(hvin_jax.ConvMDP.q_of)(mdp, value, actions[0])
        assert_close(q_of, expected[0])
        assert_close(jax.jit(hvin_jax.ConvMDP.follow)(mdp, value, actions), expected)

    def test_chains_of_shared_actions(self, shape):
        q_reward, kernel, value = random_mdp(1, shape)
        shared = np.random.default_rng(2).integers(0, shape[4], (4, *shape[1:4]))
        actions = np.repeat(shared[:, None], shape[0], axis=1)
        expected = oracle.follow(oracle.conv_q(q_reward, kernel), value, actions)
        mdp = hvin_jax.ConvMDP(q_reward, kernel).sharing_actions()
        assert mdp.num_actions == shape[4]
        assert mdp.value_shape == shape[1:4]
        assert_close(jax.jit(type(mdp).follow)(mdp, value, shared), expected)

    def test_value_iteration(self, shape):
        q_reward, kernel, v0 = random_mdp(3, shape)
        output = hvin_jax.value_iteration(
            hvin_jax.ConvMDP(q_reward, kernel), num_iterations=3, v0=v0, return_values=True
        )
        expected = oracle.value_iteration(oracle.conv_q(q_reward, kernel), v0, 3)
        assert_close(output.values, expected)

    def test_reward_by_convolution(self, shape):
        _, kernel, reward = random_mdp(4, shape)
        other = np.random.default_rng(5).normal(size=kernel.shape)
        tied = hvin_jax.ConvMDP.from_reward(reward, kernel)
        assert_close(tied.q_reward, oracle.correlate(reward, kernel))
        assert_close(tied.kernel, kernel)
        separate = hvin_jax.ConvMDP.from_reward(reward, kernel, other)
        assert_close(separate.q_reward, oracle.correlate(reward, other))
        assert_close(separate.kernel, kernel)

    def test_windows_and_their_transpose(self, shape):
        """⟨windows(x), y⟩ = ⟨x, unwindows(y)⟩; and what a window holds."""
        *_, value = random_mdp(6, shape)
        size = shape[5]
        rows = jax.jit(windows, static_argnums=1)(value, size)
        expected = oracle.correlate(
            value, np.eye(size * size * shape[3]).reshape(size, size, shape[3], -1)
        )
        assert_close(rows, expected)
        y = np.random.default_rng(7).normal(size=rows.shape)
        back = jax.jit(unwindows, static_argnums=1)(y, size)
        assert_close(np.vdot(rows, y), np.vdot(value, back))


@pytest.mark.parametrize("num_actions", [1, 2, 5, 70])
def test_ties_go_to_the_first_action(num_actions):
    rng = np.random.default_rng(8)
    # Few distinct numbers, all of them exact: most maxima are attained by several actions.
    q_reward = rng.integers(-1, 2, (2, 3, 4, 2, num_actions)).astype(np.float32)
    kernel = rng.integers(-1, 2, (3, 3, 2, 2, num_actions)).astype(np.float32)
    value = rng.integers(-1, 2, (2, 3, 4, 2)).astype(np.float32)
    expected = oracle.conv_q(q_reward, kernel)(value)
    best, action = hvin_jax.ConvMDP(q_reward, kernel).greedy(jnp.asarray(value))
    np.testing.assert_array_equal(best, expected.max(-1))
    np.testing.assert_array_equal(action, expected.argmax(-1))
    assert jnp.issubdtype(action.dtype, jnp.integer)


@pytest.mark.parametrize(
    ("batch", "examples_per_tile"), [(1, 0), (4, 0), (4, 2), (4, 4), (6, 4), (6, 5), (7, 2), (7, 9)]
)
def test_tiles_change_nothing(monkeypatch, batch, examples_per_tile):
    q_reward, kernel, value = random_mdp(9, (batch, 3, 2, 2, 4, 3))
    q_reward, kernel, value = (x.astype(np.float32) for x in (q_reward, kernel, value))
    mdp = hvin_jax.ConvMDP(q_reward, kernel)
    expected = oracle.conv_q(q_reward, kernel)(value)
    monkeypatch.setattr(conv_backup, "_TILE_BYTES", examples_per_tile * q_reward[0].nbytes)
    best, action = mdp.greedy(jnp.asarray(value))
    np.testing.assert_allclose(best, expected.max(-1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(action, expected.argmax(-1))


# Gradients ---------------------------------------------------------------------------------------


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


def gradients(function, args, weights):
    """The result, the gradients of a random weighted sum of it, and a by-product."""

    def loss(*args):
        result, by_product = function(*args)
        return jnp.sum(weights * result), (result, by_product)

    argnums = tuple(range(len(args)))
    grads, (result, by_product) = jax.jit(jax.grad(loss, argnums, has_aux=True))(*args)
    return result, grads, by_product


def assert_same_gradients(ours, plain, args, weights):
    """`ours` returns (value, actions), and `plain` gets the actions before the arguments."""
    value, grads, actions = gradients(ours, args, weights)
    expected, expected_grads, _ = gradients(lambda *x: (plain(actions, *x), None), args, weights)
    assert_close(value, expected)
    for grad, expected_grad in zip(grads, expected_grads, strict=True):
        assert_close(grad, expected_grad)
    return grads


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_gradients_of_value_iteration(shape):
    args = [jnp.asarray(x) for x in random_mdp(10, shape)]
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
        return jnp.stack(values)

    assert_same_gradients(ours, plain, args, weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("epsilon", "num_policies", "filter_gate", "share"),
    [
        (1.0, 2, True, False),
        (1.0, 1, False, False),
        (1.0, 2, True, True),
        (1.0, 1, False, True),
        (0.5, 2, False, False),
        (0.5, 2, True, True),
        ("array", 2, True, False),
        (None, 1, False, False),
        (None, 2, True, False),
    ],
)
def test_gradients_of_highway_vi(epsilon, num_policies, filter_gate, share):
    shape, depth = (2, 3, 4, 2, 3, 3), 3
    rng = np.random.default_rng(12)
    temperatures = rng.uniform(-2, 2, (2, 2))
    args = [jnp.asarray(x) for x in (*random_mdp(13, shape), *temperatures)]
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

    def plain(actions, *args):
        return dense_highway_vi(*args, actions, depth=depth, **settings)

    grads = assert_same_gradients(ours, plain, args, jnp.asarray(rng.normal(size=shape[:4])))
    reached = [bool(jnp.any(grad != 0)) for grad in grads]
    # One chain, or chains that are all alike, leave the outer gate nothing to weigh.
    assert reached[:4] == [True] * 4
    assert greedy or reached[4] == (num_policies > 1)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("shape", "share"), [((1, 2, 2, 2, 4, 3), False), ((2, 1, 3, 1, 2, 5), True)], ids=str
)
def test_gradients_through_values_and_many_blocks(shape, share):
    """Blocks deeper than the map, and cotangents that enter after every block."""
    blocks, depth = 3, 5
    rng = np.random.default_rng(14)
    args = [jnp.asarray(x) for x in (*random_mdp(15, shape), *rng.uniform(0, 2, (2, blocks)))]
    weights = jnp.asarray(rng.normal(size=(blocks, *shape[:4])))

    def ours(q_reward, kernel, v0, alpha, alpha_tilde):
        output = hvin_jax.highway_vi(
            jax.random.key(2),
            hvin_jax.ConvMDP(q_reward, kernel),
            num_blocks=blocks,
            block_depth=depth,
            num_policies=2,
            alpha=alpha,
            alpha_tilde=alpha_tilde,
            v0=v0,
            share_exploration=share,
            return_values=True,
            return_actions=True,
        )
        return output.values, output.actions

    def plain(actions, q_reward, kernel, v0, alpha, alpha_tilde):
        values = []
        for n in range(blocks):
            one = slice(n, n + 1)
            v0 = dense_highway_vi(
                *(q_reward, kernel, v0, alpha[one], alpha_tilde[one], actions[one]),
                depth=depth,
                num_policies=2,
                filter_gate=True,
            )
            values.append(v0)
        return jnp.stack(values)

    assert_same_gradients(ours, plain, args, weights)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("states_per_part", [0, 4, 5, 100])
def test_gradients_with_many_actions_and_in_parts(monkeypatch, states_per_part):
    """More actions than a byte can count; the sums over states split in any way."""
    shape = (2, 2, 3, 2, 300, 3)
    args = [jnp.asarray(x) for x in random_mdp(21, shape)]
    weights = jnp.asarray(np.random.default_rng(22).normal(size=shape[:4]))
    update_of_a_state = 2 * (3 * 3 * 2) * 8
    monkeypatch.setattr(conv_backup, "_UPDATE_BYTES", states_per_part * update_of_a_state)
    jax.clear_caches()  # what was compiled does not know

    def ours(q_reward, kernel, v0):
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        return hvin_jax.value_iteration(mdp, num_iterations=3, v0=v0).value, None

    def plain(_, q_reward, kernel, v0):
        for _ in range(3):
            v0 = dense_q(q_reward, kernel, v0).max(-1)
        return v0

    assert_same_gradients(ours, plain, args, weights)


@pytest.mark.usefixtures("x64")
def test_gradients_of_tied_kernels():
    """The kernel of a tied MDP collects the gradient of both its roles."""
    shape = (2, 3, 3, 2, 3, 3)
    _, kernel, reward = random_mdp(16, shape)
    weights = jnp.asarray(np.random.default_rng(17).normal(size=shape[:4]))

    def ours(reward, kernel):
        mdp = hvin_jax.ConvMDP.from_reward(reward, kernel)
        return hvin_jax.value_iteration(mdp, num_iterations=3).value, None

    def plain(_, reward, kernel):
        q_reward = dense_q(jnp.zeros(shape[:5]), kernel, reward)
        value = jnp.zeros(shape[:4])
        for _ in range(3):
            value = dense_q(q_reward, kernel, value).max(-1)
        return value

    assert_same_gradients(ours, plain, [jnp.asarray(reward), jnp.asarray(kernel)], weights)


@pytest.mark.usefixtures("x64")
def test_gradients_numerically():
    """Along fixed actions a chain is smooth: differences must agree with the backward pass."""
    args = [jnp.asarray(x) for x in random_mdp(18, (2, 3, 2, 2, 3, 3))]

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
    q_reward, kernel, value = (x.astype(np.float32) for x in random_mdp(20, SHAPES[2]))
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
