"""Maps of one's own as a data set: sizes, goals, costs, mechanisms, and what is wrong with them."""

import dataclasses

import jax
import numpy as np
import pytest

from hvin_jax import load_planner
from hvin_jax.models import DTVIN, HighwayVIN, init_params
from hvin_jax.planner import Planner
from hvin_jax.planner_files import save_planner
from hvin_jax.tasks import MazeSplits, from_text, get_mechanism, load_mazes, save_mazes
from hvin_jax.tasks.labelling import label_maps, split_mazes
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.shortest_paths import shortest_paths, wrong_labels
from hvin_jax.tasks.symmetries import symmetries
from hvin_jax.training.maze_task import maze_forward, planner_arrays, training_arrays
from hvin_jax.training.objective import Imitation

SMALL = from_text("#####\n#S.G#\n#####").maze
LARGE = from_text("#######\n#.#...#\n#...#.#\n#######").maze
KING = Mechanism(
    name="long king",
    orientations=("-",),
    actions=tuple("abcdefghij"),
    moves=(tuple((k % 5 - 2, k // 5 - 1, 0) for k in range(10)),),
    walls="block",
)


def test_goals_of_all_kinds():
    maps = [SMALL, SMALL, SMALL]
    data = label_maps(maps, [(1, 1), (1, 3, "E"), [(1, 1), (1, 2, "N")]], mechanism="diffdrive")
    assert data.goal.tolist() == [
        [[1, 1, -1], [1, 1, -1]],
        [[1, 3, 1], [1, 3, 1]],
        [[1, 1, -1], [1, 2, 0]],
    ]
    assert (data.spl[0, 1, 1] == 0).all()
    assert data.spl[1, 1, 3].tolist() == [1, 0, 2, 1]
    one = label_maps(maps[:1], [(1, 1, 2)], mechanism="diffdrive")
    assert one.goal.tolist() == [[1, 1, 2]]


def test_goals_are_drawn_for_maps_without():
    data = label_maps([LARGE] * 2, mechanism="news", per_map=50, seed=1)
    assert len(data) == 100
    assert data.maze[np.arange(100), data.goal[:, 0], data.goal[:, 1]].all()
    assert len(np.unique(data.goal, axis=0)) == LARGE.sum()
    same = label_maps([LARGE] * 2, mechanism="news", per_map=50, seed=1)
    np.testing.assert_array_equal(data.goal, same.goal)
    free = label_maps([LARGE], mechanism="diffdrive", any_orientation=True)
    assert free.goal[0, 2] == -1


def test_goals_that_no_start_reaches_are_drawn_again():
    """Who goes east, and faces so from then on, never comes back."""
    to_the_east = ((0, 1, 1), (0, 0, 1))
    east = Mechanism("east", ("-", "E"), ("go", "face"), (to_the_east, to_the_east), walls="block")
    for options in ({}, {"any_orientation": True}):
        data = label_maps([SMALL, LARGE], mechanism=east, per_map=40, pad=True, **options)
        goals = {tuple(x) for x in data.goal[:40].tolist()}
        assert goals == ({(1, 2, -1), (1, 3, -1)} if options else {(1, k, 1) for k in (1, 2, 3)})
        again = shortest_paths(data.maze, data.goal, mechanism=east)
        np.testing.assert_array_equal(data.spl, again[0])
        np.testing.assert_array_equal(data.optimal, again[1])
        assert not wrong_labels(data.label, data.optimal).any()


def test_goals_of_data_are_goals_of_maps():
    data = label_maps([SMALL, LARGE], mechanism="diffdrive", pad=True, any_orientation=True)
    same = label_maps([SMALL, LARGE], list(data.goal), mechanism="diffdrive", pad=True)
    np.testing.assert_array_equal(data.goal, same.goal)
    planner = load_planner("diffdrive-15")
    goal = data.goal[0]
    assert planner.plan(SMALL, goal, (1, 1)) == planner.plan(SMALL, goal[:2], (1, 1))


def test_splits_have_one_size():
    data = label_maps([SMALL] * 2, mechanism="news")
    with pytest.raises(ValueError, match="the train mazes have 3×5 cells, the test mazes 4×7: "):
        MazeSplits(data, data, label_maps([LARGE], mechanism="news"))


def test_maps_of_one_kind_stay_together():
    rng = np.random.default_rng(0)
    maps = np.pad(rng.random((10, 4, 4)) < 0.9, ((0, 0), (1, 1), (1, 1))).astype(np.uint8)
    data = label_maps(maps, mechanism="news", per_map=3)
    mazes = split_mazes(data, (6, 2, 2), seed=3)
    parts = [mazes.train, mazes.valid, mazes.test]
    assert [len(part) for part in parts] == [18, 6, 6]
    sets = [{maze.tobytes() for maze in part.maze} for part in parts]
    assert sum(map(len, sets)) == len(set.union(*sets))
    with pytest.raises(ValueError, match="2 different maps are too few for three splits"):
        split_mazes(data[:6])
    with pytest.raises(ValueError, match="expected three numbers above 0"):
        split_mazes(data, (1, 0, 1))


@pytest.mark.parametrize("name", ["diffdrive", "news"])
def test_maps_of_different_sizes_are_what_they_are_alone(name):
    """Paths, policies of a model and its loss: nothing depends on what lies beyond the border."""
    goals = [(1, 3, 0), (1, 5, 0)]
    both = label_maps([SMALL, LARGE], goals, mechanism=name, pad=True)
    assert both.maze.shape == (2, 4, 7)
    assert both.extent.tolist() == [[3, 5], [4, 7]]
    alone = label_maps([SMALL], goals[:1], mechanism=name)
    np.testing.assert_array_equal(both.spl[0, :3, :5], alone.spl[0])
    mechanism = get_mechanism(name)
    model = HighwayVIN(
        num_orientations=mechanism.num_orientations,
        num_actions=mechanism.num_actions,
        latent_actions=5,
        hidden=4,
        num_blocks=2,
        block_depth=2,
    )
    params = init_params(model, jax.random.key(0))
    padded = maze_forward(model)(params, planner_arrays(both))
    plain = maze_forward(model)(params, planner_arrays(alone))
    np.testing.assert_allclose(padded.logits[0, :3, :5], plain.logits[0], atol=1e-5)
    for walls in (False, True):
        # A label beyond the border may be anything.
        arrays = training_arrays(both)
        arrays["label"] = np.where(both.inside()[..., None], arrays["label"], 1).astype(np.uint8)
        sums = [
            Imitation(walls=walls)(padded, jax.tree.map(jax.numpy.asarray, batch))
            for batch in (arrays, training_arrays(both))
        ]
        assert sums[0].loss == sums[1].loss
        inside = both.inside()[..., None] & (walls | (both.spl != UNREACHABLE))
        assert float(sums[0].weight) == inside.sum()


def test_turned_maps_of_different_sizes_keep_their_border():
    both = label_maps([SMALL, LARGE], mechanism="news", pad=True, size=(7, 7))
    moved = symmetries(both.mechanism, (7, 7)).transform(
        {name: jax.numpy.asarray(x) for name, x in training_arrays(both).items()},
        jax.numpy.array([5, 3]),
    )
    assert not (np.asarray(moved["maze"]).astype(bool) & ~np.asarray(moved["inside"])).any()
    spl, optimal = shortest_paths(
        np.asarray(moved["maze"]), np.asarray(moved["goal"]), mechanism=both.mechanism
    )
    np.testing.assert_array_equal(moved["spl"], spl)
    inside = np.asarray(moved["inside"])
    np.testing.assert_array_equal(np.asarray(moved["optimal"])[inside], optimal[inside])


def test_files_keep_everything(tmp_path):
    drawings = [from_text("#####\n#S3G#\n#.9.#\n#####"), from_text("####\n#.2#\n#G1#\n####")] * 2
    data = label_maps(drawings, mechanism=KING, pad=True)
    assert data.cost is not None
    mazes = MazeSplits(data[:2], data[2:3], data[3:])
    save_mazes(tmp_path / "mine.npz", mazes)
    again = load_mazes(tmp_path / "mine.npz")
    assert again.mechanism == KING
    for split in ("train", "valid", "test"):
        for name, array in getattr(mazes, split).arrays().items():
            np.testing.assert_array_equal(array, getattr(getattr(again, split), name))
            assert array.dtype == getattr(getattr(again, split), name).dtype
    changed = dataclasses.replace(mazes.train, distance=mazes.train.distance * np.float32(1.01))
    save_mazes(tmp_path / "wrong.npz", dataclasses.replace(mazes, train=changed))
    with pytest.raises(ValueError, match="train_distance is not what"):
        load_mazes(tmp_path / "wrong.npz")


def test_a_planner_keeps_its_mechanism(tmp_path):
    model = DTVIN(
        num_orientations=1, num_actions=10, depth=4, kernel_size=5, moves=KING.moves, terrain=True
    )
    settings = {"kind": "dtvin", **{x: getattr(model, x) for x in ("num_orientations",)}}
    settings |= {"num_actions": 10, "depth": 4, "kernel_size": 5, "terrain": True}
    settings["moves"] = KING.moves
    params = init_params(model, jax.random.key(0))
    save_planner(tmp_path, Planner(settings, params, KING, any_orientation=True))
    again = load_planner(tmp_path)
    assert (again.mechanism, again.any_orientation) == (KING, True)
    cost = np.where(LARGE, 2.0, 0)
    plan = again.plan(LARGE, [(1, 1), (2, 3)], (1, 5), cost=cost)
    assert plan.least_cost == 2 * plan.shortest
    assert plan.cost == 2 * plan.length


@pytest.mark.parametrize(
    ("maps", "options", "message"),
    [
        ([], {}, "there are no maps to label"),
        ([SMALL, LARGE], {}, r"map 0 has 3×5 cells, map 1 has 4×7: .* need padding"),
        ([SMALL], {"goals": [(0, 0)]}, r"the goal of map 0 \(0, 0\) is on a wall"),
        ([SMALL], {"goals": [(1, 9)]}, r"the goal of map 0 \(1, 9\) is outside"),
        ([SMALL], {"goals": [(1, 1), (1, 1)]}, "1 maps need as many goals, got 2"),
        (
            [SMALL],
            {"costs": [-1.0 * SMALL]},
            r"map 0: the cost of the free cell .* is -1, expected 1e-06 to 1e\+06",
        ),
        ([SMALL], {"costs": [LARGE]}, r"map 0: the cost is .* expected numbers of the map's shape"),
        ([SMALL], {"costs": [SMALL * 3e38]}, r"is 3e\+38, expected 1e-06 to 1e\+06"),
        ([SMALL], {"costs": [SMALL * 1e-300]}, r"is 1e-300, expected 1e-06 to 1e\+06"),
        ([SMALL], {"costs": 3}, "1 maps need as many costs, got a single int"),
        ([SMALL], {"goals": 5}, "1 maps need as many goals, got a single int"),
        (
            [SMALL],
            {"goals": [(1, 1, -2)]},
            "the goal of map 0 has orientation -2, but .* -1 for any",
        ),
        (None, {}, r"the maps are a NoneType, expected an array \[n, H, W\] or a sequence"),
        ([SMALL], {"per_map": 0}, "per_map is 0, expected a whole number of 1 or more"),
        ([SMALL], {"per_map": 10**15}, "1,000,000,000,000,000 labelled mazes of 3×5 would take"),
        ([SMALL * 3], {}, "map 0: the map has values other than 0"),
        ([SMALL, SMALL * 0], {"goals": [(1, 1), None]}, "map 1 has no free cell for a goal"),
        ([np.eye(3, dtype=int)], {"goals": [(1, 1)]}, "map 0 has no start from which news reaches"),
        ([np.eye(3, dtype=int)], {}, "map 0 has no start from which news reaches"),
        ([SMALL], {"mechanism": "hover"}, "unknown mechanism 'hover'"),
    ],
)
def test_bad_maps_are_explained(maps, options, message):
    with pytest.raises(ValueError, match=message):
        label_maps(maps, **{"mechanism": "news", **options})
