"""The latent MDP: backups against loops over the window."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import SHAPES, random_conv

import hvin_jax
from hvin_jax.planning import _conv_backup as conv_backup
from hvin_jax.planning._windows import unwindows, windows

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


@jax.jit
def backups(q_reward, kernel, value, other_kernel, actions, shared_actions):
    """All that a `ConvMDP` computes, in one compilation for each shape."""
    mdp = hvin_jax.ConvMDP(q_reward, kernel)
    tied = hvin_jax.ConvMDP.from_reward(value, kernel)
    separate = hvin_jax.ConvMDP.from_reward(value, kernel, other_kernel)
    rows = windows(value, kernel.shape[0])
    return {
        "q": mdp.q(value),
        "greedy": mdp.greedy(value),
        "optimality": hvin_jax.bellman_optimality(mdp, value),
        "q_of": mdp.q_of(value, actions[0]),
        "follow": mdp.follow(value, actions),
        "shared": mdp.sharing_actions().follow(value, shared_actions),
        "iterated": hvin_jax.value_iteration(
            mdp, num_iterations=3, v0=value, return_values=True
        ).values,
        "tied": (tied.q_reward, tied.kernel),
        "separate": (separate.q_reward, separate.kernel),
        "windows": rows,
        "unwindows": unwindows(rows**2, kernel.shape[0]),
    }


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.slow
def test_backups(shape):
    q_reward, kernel, value = random_conv(0, shape)
    rng = np.random.default_rng(1)
    other_kernel = rng.normal(size=kernel.shape)
    actions = rng.integers(0, shape[4], (4, *shape[:4]))
    shared_actions = actions[:, 0]
    actual = backups(q_reward, kernel, value, other_kernel, actions, shared_actions)
    q = oracle.conv_q(q_reward, kernel)
    assert_close(actual["q"], q(value))
    assert_close(actual["optimality"], oracle.best(q(value)))
    best, action = actual["greedy"]
    assert_close(best, oracle.best(q(value)))
    np.testing.assert_array_equal(action, q(value).argmax(-1))
    expected = oracle.follow(q, value, actions)
    assert_close(actual["q_of"], expected[0])
    assert_close(actual["follow"], expected)
    repeated = np.repeat(shared_actions[:, None], shape[0], axis=1)
    assert_close(actual["shared"], oracle.follow(q, value, repeated))
    assert_close(actual["iterated"], oracle.value_iteration(q, value, 3))
    for name, reward_kernel in (("tied", kernel), ("separate", other_kernel)):
        assert_close(actual[name][0], oracle.correlate(value, reward_kernel))
        assert_close(actual[name][1], kernel)
    # What a window holds; and ⟨windows(x), y⟩ = ⟨x, unwindows(y)⟩.
    size, orientations = shape[5], shape[3]
    each = np.eye(size * size * orientations).reshape(size, size, orientations, -1)
    rows = actual["windows"]
    assert_close(rows, oracle.correlate(value, each))
    assert_close(np.vdot(rows, rows**2), np.vdot(value, actual["unwindows"]))


def test_sizes_of_an_mdp():
    shape = SHAPES[0]
    mdp = hvin_jax.ConvMDP(*(x.astype(np.float32) for x in random_conv(0, shape)[:2]))
    assert (mdp.num_actions, mdp.value_shape, mdp.batched) == (shape[4], shape[:4], True)
    shared = mdp.sharing_actions()
    assert (shared.num_actions, shared.value_shape, shared.batched) == (
        shape[4],
        shape[1:4],
        False,
    )


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
@pytest.mark.slow
def test_tiles_change_nothing(monkeypatch, batch, examples_per_tile):
    q_reward, kernel, value = random_conv(9, (batch, 3, 2, 2, 4, 3))
    q_reward, kernel, value = (x.astype(np.float32) for x in (q_reward, kernel, value))
    mdp = hvin_jax.ConvMDP(q_reward, kernel)
    expected = oracle.conv_q(q_reward, kernel)(value)
    monkeypatch.setattr(conv_backup, "_TILE_BYTES", examples_per_tile * q_reward[0].nbytes)
    best, action = mdp.greedy(jnp.asarray(value))
    np.testing.assert_allclose(best, expected.max(-1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(action, expected.argmax(-1))
