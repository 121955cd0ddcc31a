"""Trained planners in use: as objects, from files, and by the planning command."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from launching import run
from PIL import Image

import hvin_jax
from hvin_jax import Planner, load_planner, save_planner
from hvin_jax.models import make_model
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import get_mechanism

DRAWING = "#######\n#S....#\n#.##..#\n#..#.G#\n#######\n"


@pytest.fixture(scope="module")
def planner():
    """The one that comes with the package."""
    return load_planner()


@pytest.fixture(scope="module")
def mazes(planner):
    """Unseen mazes."""
    law = MazeLaw((9, 13))
    return make_mazes(law=law, mechanism=planner.mechanism, train=0, valid=0, test=24, seed=99).test


def _starts(data):
    return [
        tuple(np.argwhere(start_states(data.spl)[index])[7].tolist()) for index in range(len(data))
    ]


def test_a_batch_of_unseen_mazes(planner, mazes):
    starts = _starts(mazes)
    plans = planner.plan(mazes.maze, mazes.goal, starts)
    for index, (plan, start) in enumerate(zip(plans, starts, strict=True)):
        assert plan.shortest == mazes.spl[index][start]
        assert plan.start == start == tuple(plan.path[0].tolist())
        assert plan.reached == (plan.path[-1].tolist() == mazes.goal[index].tolist())
        assert plan.optimal == (plan.reached and plan.length == plan.shortest)
        assert plan.policy.shape == plan.values.shape == (9, 13, 4)
        if plan.reached:
            assert plan.length >= plan.shortest
    assert np.mean([plan.reached for plan in plans]) > 0.9


def test_one_map_is_a_batch_of_one(planner, mazes):
    start = _starts(mazes)[0]
    alone = planner.plan(mazes.maze[0], mazes.goal[0], start)
    batch = planner.plan(mazes.maze[:2], mazes.goal[:2], _starts(mazes)[:2])
    np.testing.assert_array_equal(alone.path, batch[0].path)
    np.testing.assert_allclose(alone.values, batch[0].values, rtol=1e-4, atol=1e-4)


def test_orientation_left_out_is_the_best(planner, mazes):
    row, column, _ = mazes.goal[0].tolist()
    start = _starts(mazes)[0]
    each = [planner.plan(mazes.maze[0], (row, column, o), start) for o in range(4)]
    plan = planner.plan(mazes.maze[0], (row, column), start)
    assert plan.shortest == min(x.shortest for x in each)
    assert plan.length == min(x.length for x in each if x.reached)
    assert plan.goal[:2] == (row, column)


def test_free_cells_at_the_edge(planner):
    """A map without a border is planned on as if walls were around it."""
    inner = np.ones((6, 7), int)
    inner[2, 1:6] = 0
    bare = planner.plan(inner, (5, 5), (0, 0, 0))
    walled = planner.plan(np.pad(inner, 1), (6, 6), (1, 1, 0))
    np.testing.assert_array_equal(bare.path + np.array([[1, 1, 0]]), walled.path)
    mixed = planner.plan(
        np.stack([inner, np.pad(inner[1:-1, 1:-1], 1)]),
        [(5, 5), (3, 4)],
        [
            (0, 0, 0),
            (1, 1, 0),
        ],
    )
    np.testing.assert_array_equal(mixed[0].path, bare.path)


def test_no_path(planner):
    maze = np.ones((5, 7), int)
    maze[:, 3] = 0
    plan = planner.plan(maze, (2, 5), (2, 1))
    assert plan.shortest is None
    assert not plan.reached
    assert not plan.optimal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((5, 5)), (9, 1), (1, 1)), r"goal of maze 0 is \[9, 1, 0\], outside"),
        ((np.ones((5, 5)), (1, 1, 4), (1, 1)), "outside of"),
        ((np.ones((5, 5)), (1, 1), (1, 1, 1, 1)), r"start is \(1, 1, 1, 1\), expected"),
        ((np.eye(5), (1, 1), (1, 2)), r"start of maze 0, \[1, 2, 0\], is on a wall"),
        ((2 * np.ones((5, 5)), (1, 1), (1, 2)), "the map has values other than 0"),
        ((np.ones(5), (1, 1), (1, 2)), "expected .H, W. or a batch"),
        ((np.ones((2, 5, 5)), [(1, 1)], [(1, 2)]), "2 mazes need as many goals"),
    ],
)
def test_bad_plans(planner, arguments, message):
    with pytest.raises(ValueError, match=message):
        planner.plan(*arguments)


def test_shipped_planners_have_cards(planner):
    assert hvin_jax.shipped_planners()
    for name in hvin_jax.shipped_planners():
        card = load_planner(name).card
        assert card["test"]["ranges"]
        assert card["test"]["success_rate"] > 0.95
        assert card["config"]["model"]


@pytest.mark.parametrize(
    ("size", "name"),
    [
        ((5, 5), "diffdrive-15"),
        ((15, 9), "diffdrive-15"),
        ((9, 17), "diffdrive-25"),
        ((25, 25), "diffdrive-25"),
        ((60, 3), "diffdrive-25"),
    ],
)
def test_shipped_planner_for_a_size(size, name):
    assert hvin_jax.shipped_planner_for(size) == name


def test_bfloat16_acts_alike(planner, mazes):
    narrow = Planner({**planner.settings, "dtype": "bfloat16"}, planner.params, planner.mechanism)
    actions = [x.policy(mazes.maze, mazes.goal).logits.argmax(-1) for x in (planner, narrow)]
    reachable = mazes.spl != UNREACHABLE
    assert (np.asarray(actions[0] == actions[1]))[reachable].mean() > 0.99


@pytest.mark.parametrize("kind", ["gppn", "vin", "highway_network"])
@pytest.mark.parametrize("mechanism", ["news", "diffdrive"])
def test_written_and_read_again(tmp_path, kind, mechanism):
    motion = get_mechanism(mechanism)
    settings = {
        "kind": kind,
        "num_orientations": motion.num_orientations,
        "num_actions": motion.num_actions,
        "hidden": 4,
    }
    model = make_model(**settings)
    maze, goal = jnp.ones((1, 5, 5)), jnp.zeros((1, 5, 5, motion.num_orientations))
    params = jax.jit(lambda: model.init(jax.random.key(0), maze, goal, train=False))()
    first = Planner(settings, params, motion, {"why": "a test"})
    save_planner(tmp_path / "p", first)
    second = load_planner(tmp_path / "p")
    assert (second.settings, second.card) == (settings, {"why": "a test"})
    plans = [x.plan(np.ones((5, 5), int), (3, 3), (1, 1)) for x in (first, second)]
    np.testing.assert_array_equal(plans[0].path, plans[1].path)
    assert (plans[0].values is None) == (kind == "gppn")


def test_planners_that_are_not_sound(tmp_path, planner):
    with pytest.raises(ValueError, match="no planner there"):
        load_planner(tmp_path)
    save_planner(tmp_path / "p", planner)
    description = json.loads((tmp_path / "p/planner.json").read_text())
    for change, message in (
        ({"version": 9}, "version 9"),
        ({"mechanism": "tank"}, "unknown mechanism 'tank'"),
        ({"model": {**description["model"], "latent_actions": 7}}, "do not fit the model"),
        ({"model": {**description["model"], "colour": 7}}, "no setting 'colour'"),
    ):
        (tmp_path / "p/planner.json").write_text(json.dumps({**description, **change}))
        with pytest.raises(ValueError, match=message):
            load_planner(tmp_path / "p")
    (tmp_path / "p/planner.json").write_text(json.dumps(description))
    weights = tmp_path / "p/weights.npz"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="not a sound planner"):
        load_planner(tmp_path / "p")


def test_command_draws_and_says_what_it_did(tmp_path):
    (tmp_path / "map.txt").write_text(DRAWING)
    code, out, err = run("plan", "--map=map.txt", folder=tmp_path)
    assert code == 0, err
    assert "the planner reaches the goal in" in out
    assert "*" in out
    assert out.splitlines()[1].startswith("#S")
    with Image.open(tmp_path / "plan.png") as image:
        assert image.width > 500


def test_command_says_when_there_is_no_path(tmp_path):
    (tmp_path / "map.txt").write_text(DRAWING.replace("....#", "..#.#").replace("..#\n", ".##\n"))
    code, out, _ = run("plan", "--map=map.txt", "--out=", folder=tmp_path)
    assert code == 1
    assert "there is no path from the start to the goal" in out
    assert not (tmp_path / "plan.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--map=gone.txt"], "gone.txt: there is no such file"),
        (["--map=map.txt", "--goal=1,1,1,1"], "is not ROW,COLUMN"),
        (["--map=map.txt", "--start=0,0"], "is on a wall"),
        (["--map=map.txt", "--planner=nobody"], "nobody: no planner there"),
        (["--map=bare.txt"], "the map has no S: say where the start is"),
        (["--map=map.txt", "--out=x.docx"], "can't draw to 'docx'"),
    ],
)
def test_command_with_mistakes(tmp_path, arguments, message):
    (tmp_path / "map.txt").write_text(DRAWING)
    (tmp_path / "bare.txt").write_text(DRAWING.replace("S", ".").replace("G", "."))
    code, _, err = run("plan", *arguments, folder=tmp_path)
    assert code == 1
    assert err.startswith("plan: ")
    assert message in err
