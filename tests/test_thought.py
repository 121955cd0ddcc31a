"""What planners think on the way to a plan, and how that is shown."""

import io
import sys

import jax
import maze_oracle as oracle
import numpy as np
import pytest
from PIL import Image

from hvin_jax import Planner, load_planner
from hvin_jax.models import init_params, make_model
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.mechanisms import get_mechanism

OWN = from_text("#######\n#S....#\n#.##..#\n#..#.G#\n#######")


def _untrained(kind, **settings):
    mechanism = get_mechanism("diffdrive")
    model = make_model(kind, num_orientations=4, num_actions=3, **settings)
    params = init_params(model, jax.random.key(0))
    own = {"kind": kind, "num_orientations": 4, "num_actions": 3, **settings}
    return Planner(own, params, mechanism, name=kind)


@pytest.fixture(scope="module")
def thought():
    """Of a highway VIN."""
    return load_planner("diffdrive-15").think(OWN.maze, OWN.goal, OWN.start)


def _follows(policy, path, goal):
    """Whether a path is what a policy leads to, by the rules in words."""
    for state, following in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
        action = policy[tuple(state)]
        if oracle.next_state("diffdrive", OWN.maze, tuple(state), action) != tuple(following):
            return False
    seen = path[:-1].tolist()
    return path[-1].tolist() in ([*goal[:2], o] for o in range(4)) or path[-1].tolist() in seen


def test_the_moments_of_a_highway_vin(thought):
    assert thought.depths.tolist() == list(range(5, 101, 5))
    assert thought.values.shape == thought.policies.shape == thought.passed.shape == (20, 5, 7, 4)
    for policy, path, reached in zip(thought.policies, thought.paths, thought.reached, strict=True):
        assert _follows(policy, path, thought.plan.goal)
        assert tuple(path[0].tolist()) == thought.plan.start
        assert reached == (path[-1].tolist() == list(thought.plan.goal))
    assert ((thought.passed >= 0) & (thought.passed <= 1)).all()
    assert len(np.unique((4 * thought.passed).round(4))) <= 5  # four exploring layers in a block


def test_the_last_moment_is_the_plan(thought):
    plan = load_planner("diffdrive-15").plan(OWN.maze, OWN.goal, OWN.start)
    assert thought.plan.reached
    assert thought.plan.length == plan.length == plan.shortest == len(thought.best_path) - 1
    np.testing.assert_allclose(thought.values[-1], plan.values, rtol=1e-4, atol=1e-4)
    assert thought.plan.path is thought.paths[-1]
    assert thought.settled in thought.depths
    stays = [len(path) for path in thought.paths[thought.depths.tolist().index(thought.settled) :]]
    assert set(stays) == {plan.length + 1}
    assert "20 moments up to 100 layers: the planner reaches the goal" in repr(thought)


def test_as_many_moments_as_asked_for():
    planner = load_planner("news")
    thought = planner.think(OWN.maze, OWN.goal, OWN.start, frames=7)
    deep = planner.plan(OWN.maze, OWN.goal, OWN.start).layers
    assert len(thought) == 7
    assert thought.depths[-1] == deep
    assert (np.diff(thought.depths) > 0).all()
    assert thought.passed is None
    few = planner.think(OWN.maze, OWN.goal, OWN.start, layers=3)
    assert few.depths.tolist() == [1, 2, 3]


def test_free_cells_at_the_edge_and_several_goals():
    planner = load_planner("news")
    inner = OWN.maze[1:-1, 1:-1]
    walled = planner.think(OWN.maze, [(3, 5), (3, 2)], OWN.start)
    bare = planner.think(inner, [(2, 4), (2, 1)], (0, 0))
    np.testing.assert_array_equal(bare.policies, walled.policies[:, 1:-1, 1:-1])
    assert bare.plan.goal[:2] == (2, 1)
    assert len(bare.best_path) == 4
    assert bare.reached[-1]


def test_costs():
    planner = _untrained("dtvin", depth=12, terrain=True)
    cost = np.where(OWN.maze != 0, 2.0, 1)
    thought = planner.think(OWN.maze, OWN.goal, OWN.start, cost=cost)
    assert thought.plan.least_cost == 2 * (len(thought.best_path) - 1)
    assert thought.plan.cost == sum(thought.plan.costs[r, c] for r, c, _ in thought.paths[-1][1:])


def test_models_without_values():
    thought = _untrained("gppn", depth=5, hidden=3).think(OWN.maze, OWN.goal, OWN.start)
    assert thought.depths.tolist() == [1, 2, 3, 4, 5]
    assert thought.values is None
    assert thought.settled is None or thought.reached[-1]
    assert len(thought.animate().frames) == 5
    assert thought.draw().axes


def test_no_path():
    maze = np.ones((5, 7), int)
    maze[:, 3] = 0
    thought = load_planner("news").think(maze, (2, 5), (2, 1))
    assert thought.best_path is None
    assert thought.settled is None
    assert thought.caption(0).endswith("there is no path")
    assert not thought.reached.any()


@pytest.mark.parametrize(
    ("maze", "frames", "message"),
    [
        (np.ones((2, 5, 5)), 4, r"thinks about one map at a time, got a batch \(2, 5, 5\)"),
        (np.ones((5, 5)), 0, "frames is 0, expected a whole number of 1 or more"),
        (np.ones((5, 5)), 1.5, "frames is 1.5, expected a whole number"),
    ],
)
def test_what_can_not_be_thought_about(maze, frames, message):
    with pytest.raises(ValueError, match=message):
        load_planner("news").think(maze, (1, 1), (1, 2), frames=frames)


def test_moving_pictures(thought, tmp_path):
    thought.animate(tmp_path / "thought.gif")
    with Image.open(tmp_path / "thought.gif") as image:
        assert image.n_frames == 20
    walk = thought.plan.animate(tmp_path / "walk.gif")
    assert len(walk.frames) == thought.plan.length + 1
    assert walk._repr_html_().startswith('<img alt="the planner reaches the goal')
    assert thought._repr_html_().count("data:image/gif;base64,") == 1
    with pytest.raises(ValueError, match=r"moving picture is written to a file \*\.gif"):
        walk.save(tmp_path / "walk.mp4")


def test_the_path_of_a_moment_is_in_its_picture(thought):
    """Films change where the path does."""
    pictures = [np.asarray(frame.convert("RGB")) for frame in thought.animate().frames]
    assert not np.array_equal(pictures[0], pictures[-1])
    same = thought.plan.animate().frames[-1].convert("RGB")
    assert len({picture.shape for picture in pictures}) == 1
    assert len(np.unique(np.asarray(same).reshape(-1, 3), axis=0)) > 8


def test_still_pictures(thought, tmp_path):
    figure = thought.draw(0, tmp_path / "first.png")
    assert "5 of 100 layers" in figure.get_suptitle()
    assert (tmp_path / "first.png").stat().st_size > 1000
    with Image.open(io.BytesIO(thought.plan._repr_png_())) as image:
        assert image.format == "PNG"
    with pytest.raises(ValueError, match="there are moments 0 to 19, not 20"):
        thought.draw(20)


def test_without_matplotlib_notebooks_show_a_text(thought, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("hvin_jax.report")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("hvin_jax.tasks.drawing", "hvin_jax.tasks._panels"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in ("matplotlib", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)
    assert thought.plan._repr_png_() is None
    assert thought._repr_html_() is None
    with pytest.raises(ImportError, match=r"needs \w+: pip install 'hvin_jax\[draw\]'$"):
        thought.animate()
