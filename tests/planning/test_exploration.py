"""The noise of highway value iteration: whose it is, and its law."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from small_mdps import KEY, actions_of, plan, random_conv, same, small_conv

import hvin_jax
from hvin_jax.planning.policies import explore


def test_a_key_determines_the_result():
    mdp = small_conv()
    first = actions_of(KEY(0), mdp)
    np.testing.assert_array_equal(first, actions_of(KEY(0), mdp))
    other = actions_of(KEY(1), mdp)
    assert (first[:, 1:] != other[:, 1:]).mean() > 0.5


@pytest.mark.slow
def test_noise_belongs_to_the_example_and_not_to_its_place():
    q_reward, kernel, _ = random_conv(4, (4, 2, 3, 2, 5, 3), np.float32)
    index = np.array([7, 0, 3, 2])

    def plan_some(chosen, epsilon):
        mdp = hvin_jax.ConvMDP(q_reward[chosen], kernel)
        output = plan(KEY(0), mdp, epsilon=epsilon, example_index=index[chosen])
        return output.value, jnp.moveaxis(output.actions, 2, 0)

    for epsilon, parts in ((1.0, [[2, 3, 1, 0]]), (0.5, [[2, 3, 1, 0], [0, 1], [2, 3]])):
        whole = plan_some(np.arange(4), epsilon)
        for part in map(np.array, parts):
            same(plan_some(part, epsilon), jax.tree.map(lambda x, p=part: x[p], whole))


def test_default_example_index_counts_the_batch():
    mdp = small_conv()
    default = actions_of(KEY(0), mdp)
    np.testing.assert_array_equal(default, actions_of(KEY(0), mdp, example_index=np.arange(4)))
    shifted = actions_of(KEY(0), mdp, example_index=np.arange(4) + 1)
    np.testing.assert_array_equal(default[:, 1:, 1:], shifted[:, 1:, :-1])
    large = actions_of(KEY(0), mdp, example_index=np.array([2**31 - 1, 0, 0, 1]))
    np.testing.assert_array_equal(large[:, 1:, 1], large[:, 1:, 2])
    np.testing.assert_array_equal(large[:, 1:, 3], default[:, 1:, 1])
    assert (large[:, 1:, 0] != default[:, 1:, 0]).mean() > 0.5


@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_shared_exploration(epsilon):
    batch = 4
    q_reward, kernel, _ = random_conv(5, (1, 2, 3, 2, 5, 3), np.float32)
    mdp = hvin_jax.ConvMDP(np.repeat(q_reward, batch, 0), kernel)
    shared = actions_of(KEY(0), mdp, share_exploration=True, epsilon=epsilon)
    np.testing.assert_array_equal(shared, np.repeat(shared[:, :, :1], batch, axis=2))
    own = actions_of(KEY(0), mdp, epsilon=epsilon)[:, 1:]
    assert (own[:, :, 0] != own[:, :, 1]).mean() > 0.2
    # Layers, chains and blocks still differ from each other.
    layers = shared[:, 1:, 0].reshape(8, -1)
    assert all((x != y).any() for x, y in itertools.combinations(layers, 2))


NUM_ACTIONS = 5


def constant_q(batch=16):
    """Q that no value changes, with the best action known: for the statistics of choices."""
    q_reward = np.random.default_rng(6).normal(size=(batch, 5, 4, 2, NUM_ACTIONS))
    mdp = hvin_jax.ConvMDP(q_reward.astype(np.float32), np.zeros((1, 1, 2, 2, NUM_ACTIONS), "f4"))
    return mdp, q_reward.argmax(-1)


def chi_square(counts):
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("num_actions", [1, 2, 7, 700, 2**22, 2**31 - 1])
@pytest.mark.slow
def test_layers_that_share_random_words_stay_uniform(num_actions):
    """Means of the drawn actions, layer by layer, for bases of many digits, one and in between."""
    mdp = Size(num_actions)
    for length in (1, 2, 23):
        drawn = explore(KEY(0), mdp, length=length, epsilon=1.0, example_index=jnp.arange(16))
        actions = np.asarray(drawn.actions, np.float64)
        assert actions.shape == (length, 16, 16, 4, 4)
        assert actions.min() >= 0
        assert actions.max() < num_actions
        deviation = np.sqrt((num_actions**2 - 1) / 12 / actions[0].size)
        assert (np.abs(actions.mean((1, 2, 3, 4)) - (num_actions - 1) / 2) <= 5 * deviation).all()


@dataclasses.dataclass
class Size:
    """An MDP as far as its noise is concerned."""

    num_actions: int
    batched = True
    value_shape = (16, 16, 4, 4)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.slow
def test_drawn_actions_are_uniform_and_independent(share):
    mdp, _ = constant_q()
    actions = actions_of(KEY(1), mdp, num_blocks=3, block_depth=4, share_exploration=share)[:, 1:]
    if share:
        actions = actions[:, :, :1]
    # χ² of 4 degrees of freedom exceeds 18.5 once in a thousand.
    counts = np.bincount(actions.ravel(), minlength=NUM_ACTIONS)
    assert chi_square(counts) < 18.5
    # Pairs of actions along each axis: blocks, layers of a chain, chains, examples, cells,
    # orientations. χ² of 24 degrees of freedom exceeds 51.2 once in a thousand.
    chains = actions.reshape(3, 2, 3, *actions.shape[2:])
    for axis in range(chains.ndim):
        if chains.shape[axis] > 1:
            moved = np.moveaxis(chains, axis, 0)
            pairs = moved[:-1] * NUM_ACTIONS + moved[1:]
            assert chi_square(np.bincount(pairs.ravel(), minlength=NUM_ACTIONS**2)) < 51.2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_frequency_of_greedy_actions(epsilon):
    """P(best) = 1 - ε + ε / A, and the others are equally likely."""
    mdp, best = constant_q()
    # An array, so that one compilation serves all ε.
    actions = actions_of(KEY(2), mdp, epsilon=jnp.float32(epsilon), num_blocks=3)[:, 1:]
    greedy = actions == best
    probability = 1 - epsilon + epsilon / NUM_ACTIONS
    deviation = np.sqrt(probability * (1 - probability) / greedy.size)
    assert abs(greedy.mean() - probability) < 4 * deviation
    others = ((actions - best) % NUM_ACTIONS)[~greedy] - 1
    assert chi_square(np.bincount(others, minlength=NUM_ACTIONS - 1)) < 16.3  # 3 degrees


def test_greedy_actions_are_those_of_the_modules_own_q():
    """In a VE module, Q comes from the value of its own chain and not from that of the block."""
    q_reward, kernel, v0 = random_conv(7, (4, 4, 4, 1, 4, 3))
    q_reward *= 0.1  # so that values matter
    q, epsilon = oracle.conv_q(q_reward, kernel), 0.5
    output = hvin_jax.highway_vi(
        KEY(3),
        hvin_jax.ConvMDP(q_reward, kernel),
        num_blocks=1,
        block_depth=8,
        epsilon=epsilon,
        v0=v0,
        return_actions=True,
    )
    actions = np.asarray(output.actions[0])
    inputs = [v0, *oracle.follow(q, v0, actions)[:-1]]
    greedy = [actions[i] == q(inputs[i]).argmax(-1) for i in range(8)]
    assert np.mean(greedy[0]) == 1
    assert abs(np.mean(greedy[1:]) - (1 - epsilon + epsilon / 4)) < 0.08
