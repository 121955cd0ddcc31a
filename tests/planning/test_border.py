"""The value beyond the border of a `ConvMDP`: against loops over a padded map."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import random_conv

import hvin_jax

# (B, H, W, O, A, F): not square, several orientations, kernels beyond the map, no neighbours.
SHAPES = [(2, 3, 4, 2, 3, 3), (1, 2, 5, 1, 4, 5), (2, 1, 2, 1, 3, 5), (1, 2, 2, 2, 3, 1)]
OUTSIDE = -3.7


def padded_q(q_reward, kernel, outside):
    """All Q, where each map lies in a larger one that is `outside` all around."""
    margin = len(kernel) // 2
    height, width = q_reward.shape[1:3]

    def q(value):
        around = ((0, 0), (margin, margin), (margin, margin), (0, 0))
        padded = np.pad(np.asarray(value), around, constant_values=outside)
        whole = oracle.correlate(padded, kernel)
        return q_reward + whole[:, margin : margin + height, margin : margin + width]

    return q


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.slow
def test_against_a_padded_map(shape):
    q_reward, kernel, v0 = random_conv(0, shape)
    mdp = hvin_jax.ConvMDP(q_reward, kernel, outside=OUTSIDE)
    q = padded_q(q_reward, kernel, OUTSIDE)
    np.testing.assert_allclose(mdp.q(jnp.asarray(v0)), q(v0), atol=1e-9)
    output = hvin_jax.value_iteration(mdp, num_iterations=3, v0=v0, return_values=True)
    np.testing.assert_allclose(output.values, oracle.value_iteration(q, v0, 3), atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_of_a_reward_map():
    _, kernel, reward = random_conv(1)
    mdp = hvin_jax.ConvMDP.from_reward(reward, kernel, 2 * kernel, outside=OUTSIDE)
    q = padded_q(oracle.correlate(reward, 2 * kernel), kernel, OUTSIDE)
    np.testing.assert_allclose(mdp.q(jnp.asarray(reward)), q(reward), atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_gradients():
    """Of rewards, kernel and the value beyond the border itself, against autodiff of padding."""
    shape = SHAPES[0]
    q_reward, kernel, v0 = map(jnp.asarray, random_conv(2, shape))
    weights = np.random.default_rng(3).normal(size=shape[:4])

    def plan(q_reward, kernel, outside):
        mdp = hvin_jax.ConvMDP(q_reward, kernel, outside=outside)
        return jnp.sum(weights * hvin_jax.value_iteration(mdp, num_iterations=3, v0=v0).value)

    def padded(q_reward, kernel, outside):
        value = v0
        for _ in range(3):
            around = jnp.pad(value - outside, ((0, 0), (1, 1), (1, 1), (0, 0))) + outside
            maps = [around[:, i : i + shape[1], j : j + shape[2]] for i, j in np.ndindex(3, 3)]
            neighbours = jnp.stack(maps).reshape(3, 3, *value.shape)
            value = (q_reward + jnp.einsum("ijbyxp,ijpoa->byxoa", neighbours, kernel)).max(-1)
        return jnp.sum(weights * value)

    args = q_reward, kernel, jnp.asarray(OUTSIDE)
    actual, expected = (jax.jit(jax.grad(f, argnums=(0, 1, 2)))(*args) for f in (plan, padded))
    chex.assert_trees_all_close(actual, expected, rtol=1e-9, atol=1e-9)
    assert abs(actual[2]) > 1e-3


def test_zero_is_the_default_and_changes_no_bit():
    q_reward, kernel, _ = random_conv(4, dtype=np.float32)
    plain = hvin_jax.ConvMDP(q_reward, kernel)
    np.testing.assert_array_equal(plain.q_reward, q_reward)
    for zero in (0, 0.0):
        mdp = hvin_jax.ConvMDP(q_reward, kernel, outside=zero)
        chex.assert_trees_all_equal(mdp, plain)
    jaxpr = jax.make_jaxpr(hvin_jax.ConvMDP)(q_reward, kernel)
    assert not jaxpr.eqns


def test_states_whose_window_is_within_the_map_do_not_change():
    q_reward, kernel, _ = random_conv(5, (1, 5, 6, 1, 2, 3), np.float32)
    moved = hvin_jax.ConvMDP(q_reward, kernel, outside=1e6).q_reward
    np.testing.assert_array_equal(moved[:, 1:-1, 1:-1], q_reward[:, 1:-1, 1:-1])
    assert (moved[:, 0] != q_reward[:, 0]).all()


def test_leaving_the_map_does_not_pay():
    """A row of cells at -1 a step with the goal at its end; one may step off either end."""
    kernel = np.zeros((3, 3, 1, 1, 3), np.float32)
    kernel[1, 0, 0, 0, 0] = kernel[1, 2, 0, 0, 1] = kernel[1, 1, 0, 0, 2] = 1  # west, east, stay
    q_reward = np.full((1, 1, 4, 1, 3), -1, np.float32)
    q_reward[0, 0, 3] = [-1, -1, 0]
    inside, outside = (
        hvin_jax.value_iteration(
            hvin_jax.ConvMDP(q_reward, kernel, outside=value), num_iterations=9
        ).value[0, 0, :, 0]
        for value in (-100.0, 0.0)
    )
    np.testing.assert_array_equal(inside, [-3, -2, -1, 0])
    np.testing.assert_array_equal(outside, [-1, -2, -1, 0])


@pytest.mark.parametrize(
    ("outside", "message"),
    [
        (np.zeros(2), r"outside must be a scalar, got shape \(2,\)"),
        (-np.inf, "outside must be finite, got -inf"),
        (None, "outside must be a number.*None"),
    ],
)
def test_bad_values(outside, message):
    q_reward, kernel, _ = random_conv(6, dtype=np.float32)
    with pytest.raises((TypeError, ValueError), match=message):
        hvin_jax.ConvMDP(q_reward, kernel, outside=outside)
    with pytest.raises((TypeError, ValueError), match=message):
        hvin_jax.ConvMDP.from_reward(q_reward[..., 0], kernel, outside=outside)
