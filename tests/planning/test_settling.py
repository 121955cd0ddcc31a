"""Planning until nothing changes: on corridors, where it is known how long news takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hvin_jax.planning import DynamicConvMDP, until_settled

WEST, HERE, EAST = range(3)
PLACES = ((0, -1, 0), (0, 0, 0), (0, 1, 0))


def _corridors(length, goals, *, mirrored=0, walls=(), weight=1.0):
    """Action 0 goes west and 1 east, the other way round in the last cells; staying at the goal.

    A step costs 1, the goal pays 1.
    """
    to = np.tile(np.array([WEST, EAST]), (length, 1))
    if mirrored:
        to[-mirrored:] = [EAST, WEST]
    to[0][to[0] == WEST] = to[-1][to[-1] == EAST] = HERE
    for wall in walls:
        to[wall - 1][to[wall - 1] == EAST] = to[wall + 1][to[wall + 1] == WEST] = HERE
    kernel = np.zeros((3, 2, len(goals), 1, 1, length), np.float32)
    reward = np.full((len(goals), 1, 1, length), -1, np.float32)
    for example, goal in enumerate(goals):
        own = to.copy()
        own[goal] = HERE
        for action in range(2):
            kernel[own[:, action], action, example, 0, 0, np.arange(length)] = weight
        reward[example, ..., goal] = 1
    return DynamicConvMDP(reward, kernel, PLACES)


@pytest.fixture(scope="module")
def settle():
    @jax.jit
    def settled(mdp, watched, limit):
        def look(value):
            return jnp.moveaxis(value, 1, -1), jnp.moveaxis(mdp.q(value), 1, -2)

        value, layers = until_settled(
            lambda value, _: mdp.greedy(value)[0],
            look,
            jnp.zeros(mdp.value_shape, jnp.float32),
            watched=watched,
            check_every=10,
            limit=limit,
        )
        return value, layers, look(value)[1].argmax(-1)[:, 0, :, 0]

    def run(mdp, *, limit=10_000, walls=()):
        watched = np.ones((mdp.value_shape[0], *mdp.value_shape[2:]), bool)
        watched[..., list(walls)] = False
        return settled(mdp, watched, np.full(len(watched), limit, np.int32))

    return run


def test_news_on_its_way_shows_where_the_policy_stands_still(settle):
    """It is right by chance for 1,500 layers, and wrong beyond until news of the goal comes."""
    _, layers, policy = settle(_corridors(1505, [0], mirrored=5))
    np.testing.assert_array_equal(policy[0, 1:], [0] * 1499 + [1] * 5)
    assert 1505 <= layers[0] <= 1550


def test_each_example_as_if_it_were_alone(settle):
    goals = [0, 20, 40]
    together = settle(_corridors(100, goals))
    assert len(set(np.asarray(together[1]).tolist())) == 3
    for example, goal in enumerate(goals):
        alone = settle(_corridors(100, [goal]))
        for mine, ours in zip(alone, together, strict=True):
            np.testing.assert_array_equal(mine[0], ours[example])


def test_states_that_no_news_reaches_do_not_keep_it_going(settle):
    _, layers, policy = settle(_corridors(100, [20], walls=[50]), walls=[50])
    assert layers[0] <= 80
    np.testing.assert_array_equal(policy[0, :50], [1] * 20 + [0] * 30)


def test_the_limit(settle):
    _, layers, _ = settle(_corridors(100, [0]), limit=30)
    assert layers[0] == 30


def test_values_that_would_overflow_end_before(settle):
    value, layers, _ = settle(_corridors(50, [0], weight=3.0))
    assert np.isfinite(value).all()
    assert 50 <= layers[0] < 100
