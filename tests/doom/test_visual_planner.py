"""The visual planner that comes with the package, on views of levels that it never saw."""

import numpy as np
import pytest
from doom_helpers import small_levels

from hvin_jax.tasks.doom import compact, expand
from hvin_jax.tasks.doom.camera import maze_views
from hvin_jax.tasks.doom.engine import Engine
from hvin_jax.tasks.measures import farthest_start
from hvin_jax.visual_planner import load_visual_planner


@pytest.fixture(scope="module")
def level(tmp_path_factory):
    """A maze with labels, its views, and which is seen where."""
    data, wad, names = small_levels(tmp_path_factory.mktemp("levels"), 1, seed=9, size=(9, 13))
    with Engine(wad, first_map=names[0]) as engine:
        seen = compact(maze_views(engine, names[0], (9, 13)))
    return data, expand(seen.columns, seen.views), seen.index


@pytest.mark.engine
def test_it_sees_and_plans(level):
    data, views, index = level
    goal, start = tuple(data.goal[0].tolist()), farthest_start(data.spl[0])
    planner = load_visual_planner()
    assert planner.planner.name == "diffdrive"
    np.testing.assert_array_equal(planner.see(views, index) > 0.5, data.maze[0])
    plan = planner.plan(views, index, goal, start)
    assert plan.reached
    assert plan.length == data.spl[0][start] > 10
    np.testing.assert_array_equal(planner.decide(views, index, goal).policy, plan.policy)


@pytest.mark.engine
def test_another_planner(level):
    data, views, index = level
    planner = load_visual_planner(planner="vin-15")
    assert repr(planner).startswith("VisualPlanner(Planner('vin-15': vin for diffdrive, ")
    goal = data.goal[0].tolist()
    assert planner.plan(views, index, goal, goal, layers="own").length == 0


def test_bad_views():
    views, index = np.zeros((5, 24, 32, 3), np.uint8), np.full((3, 3, 4), 4)
    planner = load_visual_planner()
    assert planner.see(views, index).shape == (3, 3)
    with pytest.raises(ValueError, match=r"views must be uint8 \[U, 24, 32, 3\], got float64"):
        planner.see(views / 255, index)
    with pytest.raises(ValueError, match=r"index must have shape \[H, W, 4\], got \[4\]"):
        planner.see(views, index[0, 0])
    with pytest.raises(ValueError, match="index has numbers from 4 to 4, but there are 3 views"):
        planner.see(views[:3], index)
    with pytest.raises(TypeError, match="index must hold integers, got float64"):
        planner.see(views, index * 1.0)
    with pytest.raises(ValueError, match=r"the goal \(1, 1, 4\) is no .* below \(3, 3, 4\)"):
        planner.decide(views, index, (1, 1, 4))
    with pytest.raises(ValueError, match="elsewhere: no perception there"):
        load_visual_planner("elsewhere")
