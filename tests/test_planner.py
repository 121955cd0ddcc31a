"""Trained planners in use: as objects and from files."""

import dataclasses
import itertools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flips import with_one_bit_flipped

import hvin_jax
from hvin_jax import Planner, _applied, load_planner, planner_files, save_planner
from hvin_jax.models import init_params, make_model
from hvin_jax.planner_files import SHIPPED, shipped_planners
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import get_mechanism

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="module")
def planner():
    """One that comes with the package."""
    return load_planner("diffdrive-15")


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


def test_goals_of_both_kinds(mazes):
    """One that may be faced in any way is worth no more than one that is to be faced in one."""
    planner = load_planner("diffdrive")
    for index, start in enumerate(_starts(mazes)):
        maze = mazes.maze[index]
        far = np.argwhere(maze == 1)[-1].tolist()
        goals = [mazes.goal[index].tolist(), far]
        plan = planner.plan(maze, goals, start)
        each = [planner.plan(maze, goal, start) for goal in goals]
        assert plan.length == min(x.length for x in each if x.reached)
        assert plan.optimal
        assert {tuple(x) for x in plan.every_goal[:, :2].tolist()} == {
            tuple(goal[:2]) for goal in goals
        }


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


OPEN, DIAGONAL = np.ones((5, 5)), np.eye(5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((OPEN, (9, 1), (1, 1)), r"the goal \(9, 1\) is outside of the 5×5 map"),
        ((OPEN, (-1, 1), (1, 1)), r"the goal \(-1, 1\) is outside"),
        ((OPEN, (1, 1, 4), (1, 1)), r"the goal has orientation 4, but diffdrive has 0 to 3 \(N, E"),
        ((OPEN, (1, 1), (1, 1, 1, 1)), r"the start is \(1, 1, 1, 1\), expected"),
        ((OPEN, (1, 1), (1,)), r"the start is \(1,\), expected"),
        ((OPEN, (1, 1), None), r"the start is None, expected whole numbers \(row, column\) or"),
        ((OPEN, "1,1", (1, 1)), r"the goal is '1,1', expected"),
        ((OPEN, (1, 1, "Q"), (1, 1)), r"the goal is \(1, 1, 'Q'\), .* one of N, E, W, S"),
        ((OPEN, (1, 1.5), (1, 1)), r"the goal is \(1, 1.5\), expected whole numbers"),
        ((OPEN, (1, 1), np.array([np.nan, 1])), r"the start is \[nan, 1.0\], expected"),
        ((OPEN, (1, 1), np.ones((1, 2))), r"the start is \[\[1.0, 1.0\]\], expected"),
        ((DIAGONAL, (1, 1), (1, 2)), r"the start \(1, 2\) is on a wall"),
        ((2 * OPEN, (1, 1), (1, 2)), "the map has values other than 0"),
        ((np.ones(5), (1, 1), (1, 2)), "expected .H, W. or a batch"),
        ((np.ones((0, 5)), (1, 1), (1, 2)), "expected .H, W. or a batch"),
        ((OPEN.astype(object), (1, 1), (1, 2)), "the map is an array of object, expected"),
        ((np.ones((2, 5, 5)), jnp.array([1, 1]), jnp.array([3, 3])), "needs a goal for each"),
        (("###", (1, 1), (1, 2)), "the map is a str, expected an array .*from_text"),
        ((None, (1, 1), (1, 2)), "the map is a NoneType"),
        (([OPEN, np.ones((5, 6))], 2 * [(1, 1)], 2 * [(1, 2)]), "differ in size"),
        ((np.ones((2, 5, 5)), [(1, 1)], [(1, 2)]), "2 maps need as many goals, got 1"),
        ((np.ones((2, 5, 5)), (1, 1), (1, 2)), "2 maps needs a goal for each of them"),
        ((np.ones((2, 5, 5)), 2 * [(1, 1)], (1, 2)), r"needs a start for each .* got \(1, 2\)"),
        ((np.ones((2, 5, 5)), 2 * [(1, 1)], None), "2 maps need as many starts, got none"),
        (
            (np.ones((2, 5, 5)), [(1, 1), (7, 1)], 2 * [(1, 2)]),
            r"the goal of map 1 \(7, 1\) is out",
        ),
    ],
)
def test_bad_plans(planner, arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        planner.plan(*arguments)
    assert "\n" not in str(error.value)


def test_states_as_people_write_them(planner):
    """Orientations by name, whole floats, numpy and JAX arrays."""
    plan = planner.plan(OPEN, (3, 3, "N"), (1, 1, "W"))
    assert (plan.start, plan.goal) == ((1, 1, 2), (3, 3, 0))
    assert plan == planner.plan(OPEN.tolist(), (3.0, 3, 0), np.array([1, 1, 2]))
    assert plan == planner.plan(OPEN, jnp.array([3, 3, 0]), [jnp.int32(1), np.int8(1), "W"])
    assert plan == planner.plan(jnp.asarray(OPEN, jnp.bfloat16), (3, 3, 0), (1, 1, 2))
    several = [(1, 3), (3, 1)]
    plan = planner.plan(OPEN, several, (1, 1))
    assert plan == planner.plan(OPEN, (goal for goal in several), (1, 1))
    assert plan == planner.plan(OPEN, several, (1, 1), layers=jnp.int32(planner.model.num_layers))
    assert planner.plan(np.ones((0, 5, 5)), [], []) == []


def test_policies_are_those_of_plans():
    """Of the same maps, with the same wall around those that end in free cells."""
    planner = load_planner("diffdrive-15")
    maps = np.random.default_rng(0).random((6, 9, 9)) > 0.2
    maps[:, 1, 1] = maps[:, 7, 7] = True
    goals = np.array(len(maps) * [(7, 7, 2)])
    policies = np.asarray(planner.policy(maps, goals).logits).argmax(-1)
    plans = planner.plan(maps, [tuple(goal) for goal in goals.tolist()], len(maps) * [(1, 1)])
    np.testing.assert_array_equal(policies, [plan.policy for plan in plans])


@pytest.mark.parametrize(
    ("maps", "goals", "message"),
    [
        (OPEN, [(1, 1, 0)], r"the maps have shape \(5, 5\), expected a batch"),
        (OPEN[None][:0], np.zeros((0, 3)), r"the maps have shape \(0, 5, 5\), expected a batch"),
        (255 * OPEN[None], [(1, 1, 0)], "values other than 0"),
        (np.full((1, 5, 5), np.nan), [(1, 1, 0)], "values other than 0"),
        (OPEN[None], (1, 1, 0), r"the goals have shape \(3,\), expected \(1, 3\) for 1 maps"),
        (OPEN[None], [(1, 1)], r"the goals have shape \(1, 2\)"),
        (OPEN[None].repeat(3, 0), 2 * [(1, 1, 0)], r"shape \(2, 3\), expected \(3, 3\)"),
        (OPEN[None], [(1, 1.5, 0)], "expected whole numbers"),
        (OPEN[None], [(1, np.nan, 0)], "expected whole numbers"),
        (OPEN[None], "goal", "expected whole numbers"),
        (OPEN[None], [(10, 1, 0)], r"the goal \(10, 1, 0\) of map 0 is outside of the 5×5 map"),
        (OPEN[None], [[(1, 1, 0), (1, 1, 4)]], r"\(1, 1, 4\) of map 0 has no orientation of diff"),
        (DIAGONAL[None], [(1, 2, 0)], r"the goal \(1, 2, 0\) of map 0 is on a wall"),
    ],
)
def test_bad_policies(planner, maps, goals, message):
    with pytest.raises(ValueError, match=message):
        planner.policy(maps, goals)


def test_plans_compare(planner):
    first, second = (planner.plan(OPEN, (3, 3, 0), (1, 1, 2)) for _ in range(2))
    assert first == second
    assert first is not second
    for change in (
        {"reached": False},
        {"start": (1, 1, 3)},
        {"path": first.path[:-1]},
        {"values": None},
        {"values": first.values + 1},
        {"shortest": None},
    ):
        assert first != dataclasses.replace(second, **change)
    assert first != "a plan"
    with pytest.raises(TypeError, match="unhashable type: 'Plan'"):
        hash(first)
    assert repr(first).startswith("Plan(5×5 map, (1, 1, 2) to (3, 3, 0): the planner reaches the")


def test_plans_in_words(planner):
    plan = planner.plan(OPEN, (3, 3, 0), (1, 1, 2))
    assert (
        plan.summary()
        == f"the planner reaches the goal in {plan.shortest} actions, as few as possible"
    )
    longer = dataclasses.replace(plan, shortest=plan.shortest - 2)
    assert f"2 more than the shortest path of {plan.shortest - 2}" in longer.summary()
    lost = dataclasses.replace(plan, reached=False)
    assert f"the planner fails: after {plan.length} actions it goes round" in lost.summary()
    nowhere = dataclasses.replace(lost, shortest=None)
    assert nowhere.summary() == "there is no path from the start to the goal"


def test_planners_of_equal_models_share_what_is_compiled(planner):
    """Parameters are an argument of what is compiled, not a part of it."""
    planner.policy(np.ones((1, 6, 5)), [(1, 1, 0)])
    other = Planner(
        planner.settings, jax.tree.map(jnp.zeros_like, planner.params), planner.mechanism
    )
    before = _applied.apply_stored._cache_size()
    output = other.policy(np.ones((1, 6, 5), np.int64), np.array([(1, 1, 0)], np.uint8))
    assert _applied.apply_stored._cache_size() == before
    assert not np.asarray(output.logits).any()


def test_new_sizes_are_not_compiled_for(planner):
    """Maps of many sizes are planned on in a few shapes."""
    before = _applied.apply_stored._cache_size()
    for height, width in itertools.product(range(9, 13), range(9, 13)):
        output = planner.policy(np.ones((1, height, width)), [(1, 1, 0)])
        assert output.logits.shape[1:3] == (height, width)
    assert _applied.apply_stored._cache_size() - before <= 2


def _serpentine(size):
    """One corridor, up and down all of the map."""
    maze = np.zeros((size, size), np.uint8)
    maze[1:-1:2, 1:-1] = 1
    for number, row in enumerate(range(2, size - 1, 2)):
        maze[row, 1 if number % 2 else size - 2] = 1
    return maze


@pytest.mark.filterwarnings("ignore::hvin_jax.UnmeasuredWarning")
def test_as_deep_as_the_map_needs():
    """A DT-VIN that was trained with 600 layers."""
    news = load_planner(ROOT / "results/dtvin/news-35-seed0")
    maze, end = _serpentine(41), (39, 39)
    plan, near = news.plan(np.stack([maze, maze]), [(1, 1), (1, 1)], [end, (1, 9)])
    assert plan.shortest == plan.length == 760
    assert plan.optimal
    assert 760 <= plan.layers == near.layers < 8 * maze.sum()
    trained = news.plan(maze, (1, 1), end, layers="own")
    assert (trained.reached, trained.layers) == (False, 600)
    small = news.plan(_serpentine(7), (1, 1), (5, 5))
    assert small.optimal
    assert small.layers <= 100


def test_layers_of_planners_with_shared_kernels(planner):
    """Their own number, unless another is asked for."""
    plans = {x: planner.plan(OPEN, (3, 3, 0), (1, 1, 2), layers=x) for x in (None, "own", 20)}
    assert [plan.layers for plan in plans.values()] == [100, 100, 20]
    assert plans[None] == plans["own"]
    with pytest.raises(ValueError, match=r"layers is 7, expected .* a multiple of 5"):
        planner.plan(OPEN, (3, 3, 0), (1, 1, 2), layers=7)


def test_shipped_planners_have_cards():
    what = {
        "diffdrive": "dtvin for diffdrive, 2,040 parameters",
        "diffdrive-15": "highway_vin for diffdrive, 41,460 parameters",
        "diffdrive-25": "highway_vin for diffdrive, 41,460 parameters",
        "moore": "dtvin for moore, 795 parameters",
        "news": "dtvin for news, 399 parameters",
        "vin-15": "vin for diffdrive, 41,420 parameters",
    }
    assert hvin_jax.shipped_planners() == list(what)
    for name, expected in what.items():
        planner = load_planner(name)
        assert planner.name == name
        assert repr(planner) == f"Planner('{name}': {expected})"
        card = planner.card
        assert card["test"]["ranges"]
        assert card["test"]["success_rate"] > 0.95
        assert card["config"]["model"]


@pytest.mark.parametrize("mechanism", ["diffdrive", "moore", "news"])
def test_for_each_mechanism_there_is_one_for_all_maps(mechanism):
    generalist = load_planner(mechanism=mechanism, size=99)
    assert generalist.name == generalist.mechanism.name == mechanism
    assert generalist.card["measured"]["sizes"] == [15, 25, 35, 51, 101]
    assert load_planner().name == "diffdrive"


@pytest.fixture
def of_one_size(tmp_path, monkeypatch):
    """As if only planners for maps of some size came with the package."""
    for name in ("diffdrive-15", "diffdrive-25"):
        (tmp_path / name).symlink_to(SHIPPED / name)
    monkeypatch.setattr(planner_files, "SHIPPED", tmp_path)


@pytest.mark.usefixtures("of_one_size")
@pytest.mark.parametrize(
    ("size", "name"),
    [
        ((5, 5), "diffdrive-15"),
        ((15, 9), "diffdrive-15"),
        ((9, 17), "diffdrive-25"),
        ((25, 25), "diffdrive-25"),
        ((60, 3), "diffdrive-25"),
        (15, "diffdrive-15"),
    ],
)
def test_shipped_planner_for_a_size(size, name):
    assert hvin_jax.shipped_planner_for(size) == load_planner(size=size).name == name


@pytest.mark.usefixtures("of_one_size")
def test_without_a_size_the_one_for_the_largest_maps():
    assert load_planner().name == "diffdrive-25"
    assert load_planner(size=11).name == "diffdrive-15"
    with pytest.raises(ValueError, match="both a path, diffdrive-15, and a size, 25"):
        load_planner("diffdrive-15", size=25)


@pytest.fixture
def with_generalist(tmp_path, of_one_size):
    """As if a planner for all maps came with them, measured up to 9×9; of no use at that."""
    motion = get_mechanism("news")
    settings = {"kind": "dtvin", "num_orientations": 1, "num_actions": 4}
    params = init_params(make_model(**settings), jax.random.key(0))
    card = {"measured": {"sizes": [7, 9]}, "test": {"data": {"size": 30}}}
    save_planner(tmp_path / "news", Planner(settings, params, motion, card))


@pytest.mark.usefixtures("with_generalist")
def test_which_planner_for_a_mechanism():
    assert hvin_jax.shipped_planners() == ["diffdrive-15", "diffdrive-25", "news"]
    assert load_planner(mechanism="news").name == "news"
    assert load_planner(mechanism=hvin_jax.tasks.get_mechanism("news")).name == "news"
    own = dataclasses.replace(hvin_jax.tasks.get_mechanism("news"), walls="trap")
    with pytest.raises(ValueError, match="news is a mechanism of your own, and none"):
        load_planner(mechanism=own)
    for size in ("15", (15, 15, 3), 0, 9.5):
        with pytest.raises(ValueError, match="expected the side of maps"):
            load_planner(size=size)
    assert load_planner(mechanism="news", size=99).name == "news"
    # Where there is none for all maps, it goes by size.
    assert load_planner(mechanism="diffdrive").name == load_planner().name == "diffdrive-25"
    assert load_planner(mechanism="diffdrive", size=9).name == "diffdrive-15"
    for arguments, message in (
        ({"mechanism": "moore"}, "no planner for moore comes with the package, which has: diff"),
        ({"mechanism": "tank"}, "unknown mechanism 'tank'"),
        ({"path": "news", "mechanism": "news"}, "both a path, news, and a mechanism, news"),
    ):
        with pytest.raises(ValueError, match=message):
            load_planner(**arguments)


@pytest.mark.usefixtures("with_generalist")
def test_maps_outside_of_what_the_card_has_measured():
    news = load_planner(mechanism="news")
    assert news.plan(np.ones((9, 4)), (1, 1), (1, 1)).reached
    sentence = "news was measured on maps of up to 9×9, and this one has 3×10: nobody knows"
    with pytest.warns(hvin_jax.UnmeasuredWarning, match=sentence):
        news.plan(np.ones((3, 10)), (1, 1), (1, 1))
    assert "diffdrive-15 was measured on maps of up to 15×15" in load_planner(size=9).caution(
        (9, 16)
    )
    for card in ({}, {"measured": 3}, {"measured": {"sizes": []}}, {"test": "good"}):
        of_card = Planner(news.settings, news.params, news.mechanism, card)
        assert of_card.caution((999, 999)) is None


@pytest.mark.slow
def test_bfloat16_acts_alike(planner, mazes):
    narrow = Planner({**planner.settings, "dtype": "bfloat16"}, planner.params, planner.mechanism)
    actions = [x.policy(mazes.maze, mazes.goal).logits.argmax(-1) for x in (planner, narrow)]
    reachable = mazes.spl != UNREACHABLE
    assert (np.asarray(actions[0] == actions[1]))[reachable].mean() > 0.99


@pytest.mark.parametrize("kind", ["gppn", "vin", "highway_network"])
@pytest.mark.parametrize("mechanism", ["news", "diffdrive"])
@pytest.mark.slow
def test_written_and_read_again(tmp_path, kind, mechanism):
    motion = get_mechanism(mechanism)
    settings = {
        "kind": kind,
        "num_orientations": motion.num_orientations,
        "num_actions": motion.num_actions,
        "hidden": 4,
        **({"num_blocks": 2, "block_depth": 2} if kind == "highway_network" else {"depth": 4}),
    }
    model = make_model(**settings)
    maze, goal = jnp.ones((1, 5, 5)), jnp.zeros((1, 5, 5, motion.num_orientations))
    params = jax.jit(lambda: model.init(jax.random.key(0), maze, goal, train=False))()
    first = Planner(settings, params, motion, {"why": "a test"})
    save_planner(tmp_path / "p", first)
    second = load_planner(tmp_path / "p")
    assert (second.settings, second.card) == (settings, {"why": "a test"})
    assert (first.name, second.name) == ("unnamed", str(tmp_path / "p"))
    plans = [x.plan(OPEN, (3, 3), (1, 1)) for x in (first, second)]
    assert plans[0] == plans[1]
    assert (plans[0].values is None) == (kind == "gppn")


def test_weights_of_a_planner_beside_it(tmp_path, planner):
    save_planner(tmp_path / "own", planner)
    description = json.loads((tmp_path / "own/planner.json").read_text())
    del description["sha256"]  # as one does who changes the settings
    deeper = {**description["model"], "block_depth": 2}
    (tmp_path / "deeper").mkdir()

    def describe(weights):
        content = {**description, "model": deeper, "weights": weights}
        (tmp_path / "deeper/planner.json").write_text(json.dumps(content))

    describe("own")
    found = load_planner(tmp_path / "deeper")
    assert found.settings["block_depth"] == 2
    assert jax.tree.all(jax.tree.map(np.array_equal, found.params, planner.params))
    for name in ("", "..", "../own", str(tmp_path / "own"), "a\\b", 3):
        describe(name)
        with pytest.raises(ValueError, match="expected the name of a folder beside it"):
            load_planner(tmp_path / "deeper")
    describe("gone")
    with pytest.raises(ValueError, match=r"deeper is not a sound planner: .*gone"):
        load_planner(tmp_path / "deeper")


def test_planners_that_are_not_sound(tmp_path, planner):
    with pytest.raises(ValueError, match="no planner there"):
        load_planner(tmp_path)
    save_planner(tmp_path / "p", planner)
    description = json.loads((tmp_path / "p/planner.json").read_text())
    del description["sha256"]
    for change, message in (
        ({"version": 9}, "version 9"),
        ({"mechanism": "tank"}, "unknown mechanism 'tank'"),
        ({"model": {**description["model"], "latent_actions": 7}}, "do not fit the model"),
        ({"model": {**description["model"], "colour": 7}}, "no setting 'colour'"),
        ({"model": {**description["model"], "num_block": 7}}, "did you mean num_blocks"),
    ):
        (tmp_path / "p/planner.json").write_text(json.dumps({**description, **change}))
        with pytest.raises(ValueError, match=message):
            load_planner(tmp_path / "p")
    save_planner(tmp_path / "p", planner)
    weights = tmp_path / "p/weights.npz"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="not a sound planner"):
        load_planner(tmp_path / "p")


def _behaviour(planner):
    """All that decides what a planner does, to the last bit."""
    weights = [(x.dtype, np.asarray(x).tobytes()) for x in jax.tree.leaves(planner.params)]
    return planner.settings, planner.mechanism.name, weights


def _with_card(planner, params=None):
    params = planner.params if params is None else params
    return Planner(planner.settings, params, planner.mechanism, {"why": "a test"})


def test_a_changed_bit_never_gives_another_planner(tmp_path, planner):
    save_planner(tmp_path / "p", _with_card(planner))
    refused = 0
    files = [[tmp_path / "p/planner.json"], [tmp_path / "p/weights.npz"]]
    for _ in itertools.chain(*(with_one_bit_flipped(x, 60) for x in files)):
        try:
            assert _behaviour(load_planner(tmp_path / "p")) == _behaviour(planner)
        except ValueError:
            refused += 1
    assert refused > 90


def test_the_checksum_of_a_planner(tmp_path, planner):
    save_planner(tmp_path / "p", _with_card(planner))
    path = tmp_path / "p/planner.json"
    description = json.loads(path.read_text())
    # The card may be edited, and earlier versions had no checksum.
    path.write_text(json.dumps({**description, "card": {"why": "another reason"}}))
    assert load_planner(tmp_path / "p").card == {"why": "another reason"}
    deeper = {**description, "model": {**planner.settings, "block_depth": 6}}
    path.write_text(json.dumps(deeper))
    with pytest.raises(ValueError, match='if you changed it, remove the line "sha256"'):
        load_planner(tmp_path / "p")
    del deeper["sha256"]
    path.write_text(json.dumps(deeper))
    assert load_planner(tmp_path / "p").settings["block_depth"] == 6
    # Weights that belong to another description, though they fit.
    path.write_text(json.dumps(description))
    other = _with_card(planner, jax.tree.map(lambda x: x + 1, planner.params))
    save_planner(tmp_path / "other", other)
    (tmp_path / "other/weights.npz").rename(tmp_path / "p/weights.npz")
    with pytest.raises(ValueError, match=r"its checksum is not that of planner.json and weights"):
        load_planner(tmp_path / "p")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(tmp_path, planner, value):
    params = jax.tree.map(lambda x: np.full_like(x, value), planner.params)
    save_planner(tmp_path, _with_card(planner, params))
    with pytest.raises(ValueError, match=r"weights.npz: array \w+ has values that are not finite"):
        load_planner(tmp_path)


@pytest.mark.parametrize("name", shipped_planners())
def test_shipped_planners_have_their_checksum(name):
    assert len(json.loads((SHIPPED / name / "planner.json").read_text())["sha256"]) == 64
    load_planner(name)
