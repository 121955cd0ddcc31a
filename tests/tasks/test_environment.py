"""Mazes as an environment: what moves, what is paid, how episodes begin and end; gymnasium."""

import dataclasses
import functools
import sys
from importlib import import_module

import gymnasium
import jax
import jax.numpy as jnp
import maze_oracle
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from hvin_jax.tasks.environment import EnvState, MazeEnv
from hvin_jax.tasks.gym_env import ID, GymMaze
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.maze_data import MazeSplits
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, get_mechanism, transition_table
from hvin_jax.tasks.shortest_paths import label_mazes

# A crab: walks sideways, turns round when it does, and is caught by walls.
CRAB = Mechanism(
    name="crab",
    orientations=("a", "b"),
    actions=("left", "right", "on"),
    moves=(((0, -1, 1), (0, 1, 1), (-1, 0, 0)), ((0, 1, 0), (0, -1, 0), (1, 1, 1))),
    walls="trap",
)
reset, step = jax.jit(MazeEnv.reset), jax.jit(MazeEnv.step)
# It leaps: over walls, or until something stops it.
LEAPS = (((0, -3, 1), (2, 2, 1), (0, 0, 1)), ((-2, 0, 0), (1, 2, 0), (0, 0, 0)))
EVERY_MECHANISM = [
    *MECHANISMS.values(),
    *(dataclasses.replace(CRAB, walls=walls) for walls in ("trap", "block")),
    dataclasses.replace(CRAB, moves=LEAPS),
    *(
        dataclasses.replace(CRAB, moves=LEAPS, walls=walls, between="stop")
        for walls in ("trap", "block")
    ),
]


def labelled(drawing, name="news", facing=0):
    """The one maze of a drawing, with its goal."""
    own = from_text(drawing)
    goal = np.array([[*own.goal[:2], facing]], np.int32)
    rng = np.random.default_rng(0)
    return label_mazes(own.maze[None], goal, rng, mechanism=get_mechanism(name)), own


@functools.cache
def some_mazes(name="diffdrive"):
    """Random maps with a start each."""
    maze, goal = maze_oracle.random_maps(60, (5, 6), seed=1)
    mechanism = get_mechanism(name)
    goal[:, 2] %= mechanism.num_orientations
    data = label_mazes(maze, goal, np.random.default_rng(0), mechanism=mechanism)
    return data[start_states(data.spl).any((1, 2, 3))]


def placed(agent):
    """The first state of an episode in the first maze."""
    nought = jnp.array(0, jnp.int32)
    return EnvState(jax.random.key(3), nought, jnp.array(agent, jnp.int32), nought)


@pytest.mark.parametrize(
    "mechanism", EVERY_MECHANISM, ids=lambda x: f"{x.name}-{x.reach}-{x.walls}-{x.between}"
)
def test_moves_are_those_of_the_mechanism(mechanism):
    """From every state, wall cells and the edge of the map included."""
    maze, goal = maze_oracle.random_maps(12, (4, 5), seed=2)
    env = MazeEnv(
        *map(jnp.asarray, (maze, goal, goal)), mechanism, 1, 0.0, 0.0, 0.0, auto_reset=False
    )
    shape = (4, 5, mechanism.num_orientations)
    states = jnp.asarray(np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), 1), jnp.int32)
    move = jax.vmap(env.move, (None, None, 0))  # actions
    move = jax.vmap(jax.vmap(move, (None, 0, None)), (0, None, None))  # states, mazes
    found = np.asarray(
        jax.jit(move)(jnp.arange(len(maze)), states, jnp.arange(mechanism.num_actions))
    )
    flat = np.ravel_multi_index(tuple(np.moveaxis(found, -1, 0)), shape)
    np.testing.assert_array_equal(flat, transition_table(maze, mechanism=mechanism))


def test_cells_cost_what_they_cost():
    """Who follows the labels of terrain pays what a cheapest path costs."""
    maze = np.ones((1, 2, 3), np.uint8)
    maze[0, 1, 1] = 0
    goal, cost = np.array([[1, 2, 0]], np.int32), np.arange(1.0, 7).reshape(1, 2, 3)
    rng, news = np.random.default_rng(0), get_mechanism("news")
    data = label_mazes(maze, goal, rng, mechanism=news, cost=cost)
    env = MazeEnv.from_data(data, step_cost=0.1, auto_reset=False).only(jnp.array(0))
    state, paid = placed((1, 0, 0)), 0.0
    for _ in range(4):
        state, timestep = env.step(state, jnp.asarray(data.label)[(0, *state.agent)])
        paid += float(timestep.reward)
    assert timestep.terminated
    assert paid == pytest.approx(1 - 0.1 * data.distance[0, 1, 0, 0])
    np.testing.assert_array_equal(timestep.observation.cost, np.where(maze[0], cost[0], 1))
    gym = GymMaze(data)
    seen, _ = gym.reset(seed=0)
    assert gym.observation_space.contains(seen)
    np.testing.assert_array_equal(seen["cost"], timestep.observation.cost)
    # A wall that blocks: the agent stays where it is, and pays for that.
    _, blocked = env.step(placed((1, 0, 0)), jnp.array(news.actions.index("E")))
    assert float(blocked.reward) == pytest.approx(-0.4)


def test_episodes_start_everywhere_alike():
    data = some_mazes()[:3]
    env = MazeEnv.from_data(data)
    state, first = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 30_000))
    np.testing.assert_array_equal(first.observation.agent, state.agent)
    assert not first.last.any()
    assert not first.reward.any()
    count = np.zeros(data.spl.shape)
    np.add.at(count, (state.index, *state.agent.T), 1)
    starts = start_states(data.spl)
    assert count[~starts].sum() == 0
    expected = starts * (10_000 / starts.sum((1, 2, 3)))[:, None, None, None]
    deviation = (count - expected)[starts] / np.sqrt(expected[starts])
    assert np.abs(deviation).max() < 4.5
    assert len(np.unique(jax.random.key_data(state.key), axis=0)) == 30_000


@pytest.mark.parametrize("name", ["diffdrive", "news"])
def test_labels_lead_to_the_reward(name):
    """Agents that follow the labels arrive after as many actions as the shortest path has."""
    data = some_mazes(name)
    env = MazeEnv.from_data(data, step_cost=0.125, goal_reward=3.0, auto_reset=False)
    label = jnp.asarray(data.label)

    def act(state, _):
        action = label[(state.index, *state.agent)]
        state, timestep = env.step(state, action)
        return state, timestep

    def walk(key):
        state, _ = env.reset(key)
        met = jax.lax.scan(act, state, None, length=40)[1]
        return state.index, state.agent, met._replace(observation=(), next_observation=())

    keys = jax.random.split(jax.random.key(1), 64)
    index, agent, met = jax.tree.map(np.asarray, jax.jit(jax.vmap(walk))(keys))
    spl = data.spl[(index, *agent.T)]
    np.testing.assert_array_equal(met.terminated.argmax(1) + 1, spl)
    for reward, terminated, discount, length in zip(
        met.reward, met.terminated, met.discount, spl, strict=True
    ):
        assert not terminated[: length - 1].any()
        assert (reward[: length - 1] == -0.125).all()
        assert reward[length - 1] == 2.875
        assert (discount == 1 - terminated).all()


def test_walls_that_are_traps_end_an_episode():
    data, own = labelled("#####\n#S.G#\n#####", "diffdrive", facing=1)
    env = MazeEnv.from_data(data, step_cost=0.25, wall_reward=-2.0, auto_reset=False)
    state = placed((*own.start[:2], 0))
    state, turned = step(env, state, jnp.array(1))
    assert not turned.last
    assert turned.reward == -0.25
    state, crashed = step(env, placed((*own.start[:2], 0)), jnp.array(0))
    assert crashed.terminated
    assert not crashed.truncated
    assert (crashed.reward, crashed.discount) == (-2.25, 0)
    assert crashed.observation.agent.tolist() == [0, 1, 0]


def test_time_is_over():
    data, own = labelled("#####\n#S.G#\n#####")
    env = MazeEnv.from_data(data, time_limit=2, auto_reset=False)
    north, east = jnp.array(0), jnp.array(1)
    state = placed((*own.start[:2], 0))
    state, one = step(env, state, north)
    assert not one.last
    late, two = step(env, state, north)
    assert two.truncated
    assert not two.terminated
    assert two.discount == 1
    assert late.steps == 2
    # The last action may still reach the goal, which is no truncation.
    state, _ = step(env, placed((*own.start[:2], 0)), east)
    _, there = step(env, state, east)
    assert there.terminated
    assert not there.truncated


def test_another_episode_begins():
    data = some_mazes("news")
    env = MazeEnv.from_data(data, time_limit=3)
    plain = dataclasses.replace(env, auto_reset=False)
    state, _ = reset(env, jax.random.key(5))
    ends, indices = 0, set()
    for number in range(30):
        action = jnp.array(number % 4)
        expected, met = step(plain, state, action)
        state, timestep = step(env, state, action)
        # What the action has led to is told either way.
        for name in ("reward", "discount", "terminated", "truncated", "next_observation"):
            jax.tree.map(np.testing.assert_array_equal, getattr(timestep, name), getattr(met, name))
        if timestep.last:
            ends += 1
            assert state.steps == 0
            assert start_states(data.spl)[(state.index, *state.agent)]
            expected, _ = reset(env, expected.key)
        assert same(state, expected)
        assert same(timestep.observation.agent, state.agent)
        assert same(timestep.observation.maze, data.maze[state.index])
        indices.add(int(state.index))
    assert ends >= 10
    assert len(indices) > 5  # of other mazes, too


def same(one, other):
    if isinstance(one, EnvState):
        one, other = (dataclasses.replace(x, key=jax.random.key_data(x.key)) for x in (one, other))
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, one, other)))


def test_many_maps_side_by_side():
    """`only` under `vmap`: an environment for each of some maps."""
    data = some_mazes("news")
    env = MazeEnv.from_data(data)
    index = jnp.array([4, 0, 4])
    maps = jax.jit(jax.vmap(MazeEnv.only, (None, 0)))(env, index)
    state, first = jax.jit(jax.vmap(MazeEnv.reset))(maps, jax.random.split(jax.random.key(0), 3))
    assert state.index.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(first.observation.maze, data.maze[np.array(index)])
    assert start_states(data.spl)[(np.array(index), *np.array(state.agent).T)].all()


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda data: data[:0], {}, "there are no mazes"),
        (lambda data: MazeSplits(data, data, data), {}, "made of MazeData, .* not of a MazeSplits"),
        (lambda data: "file.npz", {}, "made of MazeData, such as load_mazes.* not of a str"),
        (lambda data: data, {"time_limit": 2.5}, r"time_limit is 2\.5, .*, a whole number"),
        (lambda data: data, {"step_cost": "a"}, "step_cost is 'a', expected a finite number"),
        (lambda data: data, {"time_limit": 0}, "time_limit is 0, expected 1"),
        (lambda data: data, {"step_cost": float("nan")}, "step_cost is nan, expected a finite"),
        (
            lambda data: dataclasses.replace(data, spl=data.spl * 0),
            {},
            "maze 0 has no start: no state leads to its goal",
        ),
    ],
)
def test_mistakes(change, settings, message):
    for kind in (MazeEnv.from_data, GymMaze):
        with pytest.raises(ValueError, match=message):
            kind(change(some_mazes()), **settings)


def test_an_action_is_a_single_number():
    env = MazeEnv.from_data(some_mazes())
    for take in (MazeEnv.step, step):
        with pytest.raises(ValueError, match=r"the action has shape \(2,\), expected a single"):
            take(env, placed((1, 1, 0)), jnp.zeros(2, jnp.int32))


def test_gymnasium_finds_no_fault():
    env = gymnasium.make(ID, data=some_mazes(), render_mode="rgb_array")
    check_env(env.unwrapped)
    env.close()


def test_an_episode_of_gymnasium():
    data, own = labelled("#####\n#S.G#\n#####")
    env = GymMaze(data, time_limit=5, step_cost=0.5)
    assert env.render() is None
    with pytest.raises(ValueError, match="no episode yet: call reset"):
        env.step(0)
    starts = set()
    for seed in range(8):
        observation, info = env.reset(seed=seed)
        again, _ = env.reset(seed=seed)
        assert same(observation, again)
        starts.add(tuple(observation["agent"].tolist()))
        assert info == {"maze": 0}
    assert starts == {(1, 1, 0), (1, 2, 0)}
    with pytest.raises(ValueError, match="action 4 is not in Discrete"):
        env.step(4)
    steps = 2 if observation["agent"][1] == 1 else 1
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(1)
    assert (reward, terminated, truncated) == (0.5, True, False)
    np.testing.assert_array_equal(observation["agent"], [*own.goal[:2], 0])
    np.testing.assert_array_equal(observation["maze"], data.maze[0])
    np.testing.assert_array_equal(observation["goal"], data.goal_maps()[0])
    with pytest.raises(ValueError, match="render_mode is 'human', expected 'rgb_array' or None"):
        GymMaze(data, render_mode="human")


def test_a_picture_follows_the_agent():
    data = some_mazes()[:1]
    env = GymMaze(data, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    assert before.dtype == np.uint8
    assert before.shape[2] == 3
    assert np.array_equal(before, env.render())
    env.step(1)
    assert not np.array_equal(before, env.render())


def test_gymnasium_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "hvin_jax.tasks.gym_env")
    with pytest.raises(ImportError, match=r"pip install 'hvin_jax\[gymnasium\]'$"):
        import_module("hvin_jax.tasks.gym_env")
