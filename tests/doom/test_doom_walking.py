"""Walking by real actions, in the real engine."""

import numpy as np
import pytest
from doom_helpers import small_levels
from PIL import Image

from hvin_jax.report.walks import Film
from hvin_jax.tasks.doom.engine import Engine, Pose
from hvin_jax.tasks.doom.levels import cell_centre
from hvin_jax.tasks.doom.walking import state_of, walk
from hvin_jax.tasks.measures import farthest_start
from hvin_jax.tasks.rollouts import path_of


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    return small_levels(tmp_path_factory.mktemp("levels"), seed=5)


@pytest.fixture(scope="module")
def engine(levels):
    _, wad, names = levels
    with Engine(wad, first_map=names[0], resolution=(320, 240)) as engine:
        yield engine


def _task(data, k):
    return farthest_start(data.spl[k]), tuple(int(x) for x in data.goal[k])


@pytest.mark.engine
@pytest.mark.parametrize("k", [0, 1, 2])
def test_optimal_policy_arrives(levels, engine, k):
    data, _, names = levels
    start, goal = _task(data, k)
    engine.open_level(names[k])
    result = walk(engine, data.label[k], start=start, goal=goal)
    assert result.reached
    assert not result.bumped
    assert result.length == data.spl[k][start]
    expected = path_of(data.label[k], data.maze[k], start, goal, mechanism=data.mechanism)
    np.testing.assert_array_equal(result.states, expected)
    # By its own account the engine is where the walk says it is, at the centre of the goal's cell.
    assert np.abs(np.array(engine.pose[:2]) - cell_centre(*goal[:2], 7)).max() < 1
    # It never leaps: an agent that runs makes less than 17 units in a tic.
    assert np.abs(np.diff(result.track, axis=0)).max() < 17


@pytest.mark.engine
def test_a_wall_stops_it(levels, engine):
    data, _, names = levels
    engine.open_level(names[0])
    start, goal = _task(data, 0)
    forward = np.zeros_like(data.label[0])
    result = walk(engine, forward, start=start, goal=goal)
    assert result.bumped
    assert not result.reached
    row, column, _ = result.states[-1]
    assert data.maze[0][row, column]  # it did not get into the wall


@pytest.mark.engine
def test_circles_end(levels, engine):
    data, _, names = levels
    engine.open_level(names[0])
    start, goal = _task(data, 0)
    turn = np.ones_like(data.label[0])
    result = walk(engine, turn, start=start, goal=goal)
    assert (result.reached, result.bumped, result.length) == (False, False, 4)


def test_states_of_poses():
    assert state_of(Pose(32, 32, 0.00001), 3) == (2, 0, 1)
    assert state_of(Pose(100, 170, 89.9), 3) == (0, 1, 0)
    assert state_of(Pose(100, 170, 180), 3) == (0, 1, 2)
    assert state_of(Pose(100, 170, 270.1), 3) == (0, 1, 3)
    assert state_of(Pose(100, 170, 359.9), 3) == (0, 1, 1)


@pytest.mark.engine
def test_film(levels, engine, tmp_path):
    data, _, names = levels
    engine.open_level(names[1])
    start, goal = _task(data, 1)
    film = Film(data.maze[1], data.maze[1] != 0, goal)
    result = walk(engine, data.label[1], start=start, goal=goal, watch=film)
    film.save(tmp_path / "walk.gif")
    with Image.open(tmp_path / "walk.gif") as gif:
        assert 1 < gif.n_frames <= len(result.track) // 3 + 1
        first = np.asarray(gif.convert("RGB")).copy()
        gif.seek(gif.n_frames - 1)
        assert (np.asarray(gif.convert("RGB")) != first).any()
