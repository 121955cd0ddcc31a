"""Learning by reward: advantages by hand, walks as the environment has them, mistakes.

That it learns is in `tests/experiments/test_reward.py`.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hvin_jax.models import DTVIN, GPPN, init_params
from hvin_jax.tasks import MazeLaw, get_mechanism, make_mazes, transition_table
from hvin_jax.tasks.environment import MazeEnv
from hvin_jax.training import NotFiniteError, actor_critic
from hvin_jax.training.actor_critic import ActorCritic, Critic, Learner, Report, learn, make_update
from hvin_jax.training.walks import advantages, walk

NEWS = get_mechanism("news")


@pytest.fixture(scope="module")
def mazes():
    return make_mazes(law=MazeLaw((7, 7)), mechanism=NEWS, train=4, valid=0, test=0, seed=0)


def by_hand(reward, discount, last, value, next_value, trace):
    """A_t = Σ_k (Π γλ) δ_{t+k}, up to the end of the episode, from the equation."""
    result = np.zeros_like(reward)
    for start in range(len(reward)):
        weight = 1.0
        for t in range(start, len(reward)):
            result[start] += weight * (reward[t] + discount[t] * next_value[t] - value[t])
            if last[t]:
                break
            weight *= discount[t] * trace
    return result


@pytest.mark.parametrize("trace", [0.0, 0.7, 1.0])
def test_advantages_against_the_sum(trace):
    rng = np.random.default_rng(0)
    shape = (9, 40)
    terminated, truncated = rng.random(shape) < 0.15, rng.random(shape) < 0.15
    discount = np.where(terminated, 0.0, 0.9).astype(np.float32)
    reward, value, next_value = rng.normal(size=(3, *shape)).astype(np.float32)
    given = (reward, discount, terminated | truncated, value, next_value)
    found = advantages(*map(jnp.asarray, given), trace=trace)
    for column in range(shape[1]):
        expected = by_hand(*(x[:, column] for x in given), trace)
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("terrain", [True, False])
def test_planners_that_know_costs_see_them(mazes, terrain):
    """Here rewards do not depend on them."""
    env = MazeEnv.from_data(mazes.train, step_cost=0.0)
    settings = ActorCritic(num_maps=2, num_agents=2, num_steps=2, epochs=1)
    model, critic, optimizer = DTVIN(1, 4, depth=2, terrain=terrain), Critic(), optax.sgd(0.1)
    key = jax.random.key(0)
    params = {
        "planner": init_params(model, key),
        "critic": critic.init(key, jnp.zeros((1, 7, 7, 1))),
    }
    update = jax.jit(make_update(model, critic, optimizer, settings))
    costs = (jnp.ones(env.maze.shape).at[:, 1:4].set(cost) for cost in (1.0, 3.0))
    learned = [
        update(Learner(params, optimizer.init(params)), dataclasses.replace(env, cost=cost), key)
        for cost in costs
    ]
    weights = [jax.tree.leaves(learner.params) for learner, _ in learned]
    same = all(np.array_equal(*each) for each in zip(*weights, strict=True))
    assert same != terrain


def test_walks_are_those_of_the_policy(mazes):
    env = MazeEnv.from_data(mazes.train[:1], time_limit=6)
    logits = jax.random.normal(jax.random.key(1), (7, 7, 1, 4))
    walks = jax.jit(lambda key: walk(env, logits, key, num_agents=50, num_steps=20))(
        jax.random.key(2)
    )
    agent, action, last = (np.asarray(x) for x in (walks.agent, walks.action, walks.last))
    table = transition_table(mazes.train.maze[:1], mechanism=NEWS)[0]
    flat, flat_next = (7 * x[..., 0] + x[..., 1] for x in (agent, np.asarray(walks.next_agent)))
    np.testing.assert_array_equal(flat_next, table[flat, action])
    log_probs = np.asarray(jax.nn.log_softmax(logits))[..., 0, :]
    np.testing.assert_allclose(
        walks.log_prob, log_probs[agent[..., 0], agent[..., 1], action], rtol=1e-5
    )
    goal = mazes.train.goal[0, :2] @ [7, 1]
    np.testing.assert_array_equal(np.asarray(walks.discount) == 0, flat_next == goal)
    # An agent goes on from where it is, unless its episode is over.
    np.testing.assert_array_equal(agent[1:][~last[:-1]], walks.next_agent[:-1][~last[:-1]])
    assert (last & (flat_next != goal)).any()
    assert (flat != goal).all()


def test_a_loss_that_is_not_finite(mazes, monkeypatch):
    nan = jnp.array(jnp.nan)
    monkeypatch.setattr(
        actor_critic, "make_update", lambda *_: lambda x, env, key: (x, Report(nan, nan, nan))
    )
    model, env = DTVIN(1, 4, depth=2), MazeEnv.from_data(mazes.train)
    learning = learn(jax.random.key(0), model, env, ActorCritic(), num_updates=3, every=2)
    assert next(learning).updates == 0
    with pytest.raises(NotFiniteError, match="the loss is nan within the first 2 updates: try"):
        next(learning)


def test_mistakes(mazes):
    env = MazeEnv.from_data(mazes.train)
    counts = {"num_updates": 2, "every": 1}

    def begin(model=None, env=env, **options):
        model = model or DTVIN(1, 4, depth=2)
        settings = ActorCritic(num_maps=2, num_agents=2, num_steps=2, epochs=1)
        list(learn(jax.random.key(0), model, env, settings, **{**counts, **options}))

    with pytest.raises(ValueError, match="num_updates is 0, every 1: expected 1 or more"):
        begin(num_updates=0)
    with pytest.raises(ValueError, match="a GPPN has no value map, which the critic reads"):
        begin(GPPN(1, 4))
    with pytest.raises(ValueError, match="the model has num_actions = 8, but news has 4"):
        begin(DTVIN(1, 8, depth=2))
    with pytest.raises(ValueError, match="the environment has auto_reset=False"):
        begin(env=MazeEnv.from_data(mazes.train, auto_reset=False))
    for name, value in (("num_maps", 0), ("discount", 1.1), ("clip", -0.1)):
        with pytest.raises(ValueError, match=f"{name} is {value}, expected"):
            ActorCritic(**{name: value})
    with pytest.raises(
        ValueError, match=r"an update of 10,240,000,000,000 actions would take 419,840 GB"
    ):
        ActorCritic(num_agents=10**10)
