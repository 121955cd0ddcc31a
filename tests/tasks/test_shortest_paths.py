import functools

import jax
import jax.numpy as jnp
import maze_oracle
import numpy as np
import pytest

from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.maze_data import UNREACHABLE, action_sets, goal_maps
from hvin_jax.tasks.mechanisms import MECHANISMS
from hvin_jax.tasks.shortest_paths import BLOCK, draw_labels, label_mazes, shortest_paths


def _fit(goal, mechanism):
    goal = goal.copy()
    goal[:, 2] %= MECHANISMS[mechanism].num_orientations
    return goal


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    ("n", "size"),
    [(70, (6, 7)), (130, (4, 4)), (40, (1, 9)), (40, (9, 1)), (3, (1, 1)), (10, (15, 12))],
)
def test_against_plain_breadth_first_search(name, n, size):
    maze, goal = maze_oracle.random_maps(n, size, seed=size[1])
    goal = _fit(goal, name)
    spl, optimal = shortest_paths(maze, goal, mechanism=MECHANISMS[name])
    assert spl.dtype == np.uint16
    assert optimal.dtype == np.uint8
    for index in range(n):
        expected = maze_oracle.distances(name, maze[index], tuple(goal[index]))
        np.testing.assert_array_equal(spl[index], expected)
        sets = maze_oracle.optimal_sets(name, maze[index], expected)
        np.testing.assert_array_equal(optimal[index], sets)


def test_blocks_do_not_matter():
    maze, goal = maze_oracle.random_maps(BLOCK + 70, (5, 5), seed=0)
    mechanism = MECHANISMS["diffdrive"]
    spl, optimal = shortest_paths(maze, goal, mechanism=mechanism)
    for part in (slice(0, 1), slice(BLOCK - 1, BLOCK + 1), slice(BLOCK + 5, None)):
        part_spl, part_optimal = shortest_paths(maze[part], goal[part], mechanism=mechanism)
        np.testing.assert_array_equal(part_spl, spl[part])
        np.testing.assert_array_equal(part_optimal, optimal[part])


def _solve(name, drawing, orientation=0):
    own = from_text(drawing)
    goal = np.array([[*own.goal, orientation]])
    spl, optimal = shortest_paths(own.maze[None], goal, mechanism=MECHANISMS[name])
    return spl[0], optimal[0]


def test_dead_end_by_hand():
    drawing = "#####\n#...#\n#.#.#\n#.#G#\n#####"
    spl, _ = _solve("news", drawing)
    assert spl[3, 1, 0] == 6
    assert spl[0, 0, 0] == UNREACHABLE
    spl, _ = _solve("moore", drawing)
    assert spl[3, 1, 0] == 4  # both corners are cut
    south = 3
    spl, optimal = _solve("diffdrive", drawing, orientation=south)
    # Facing north at (3, 1): two up, right, two ahead, right, two down.
    assert spl[3, 1, 0] == 8
    assert optimal[3, 1, 0] == 0b001
    # Facing south there: two turns first, to either side.
    assert spl[3, 1, south] == 10
    assert optimal[3, 1, south] == 0b110
    # At the goal, facing south, both turns come back at once, the way ahead is a trap.
    assert optimal[3, 3, south] == 0b110


def test_isolated_regions_and_walls():
    drawing = "G.#..\n..#.."
    for name, full in (("diffdrive", 0b111), ("news", 0b1111), ("moore", 0b11111111)):
        spl, optimal = _solve(name, drawing)
        assert (spl[:, 2:] == UNREACHABLE).all()
        assert (optimal[:, 3:] == full).all()
    # Walls trap in differential drive: all actions tie. Elsewhere one may leave them.
    assert (_solve("diffdrive", drawing)[1][:, 2] == 0b111).all()
    assert _solve("news", drawing)[1][0, 2, 0] == 0b0100  # to the west
    # At the goal of NEWS, bumping into the edge (north, west) is as good as it gets.
    assert _solve("news", drawing)[1][0, 0, 0] == 0b0101


def test_ties_in_the_open():
    spl, optimal = _solve("news", "...\n...\n..G")
    assert spl[..., 0].tolist() == [[4, 3, 2], [3, 2, 1], [2, 1, 0]]
    assert optimal[0, 0, 0] == 0b1010  # east and south


@pytest.mark.parametrize("name", MECHANISMS)
def test_labels_are_optimal_and_ties_fair(name):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(0)
    maze, goal = maze_oracle.random_maps(400, (7, 7), seed=3)
    data = label_mazes(maze, _fit(goal, name), rng, mechanism=mechanism)
    sets = action_sets(data.optimal, num_actions=mechanism.num_actions)
    assert np.take_along_axis(sets, data.label[..., None], axis=-1).all()
    for bits in (0b11, 0b101, 0b111, 2**mechanism.num_actions - 1):
        n = 60_000
        drawn = draw_labels(np.full(n, bits, dtype=np.uint8), rng, mechanism=mechanism)
        counts = np.bincount(drawn, minlength=mechanism.num_actions)
        actions = [a for a in range(mechanism.num_actions) if bits >> a & 1]
        share = 1 / len(actions)
        assert counts.sum() == counts[actions].sum()
        assert np.abs(counts[actions] / n - share).max() < 5 * np.sqrt(share * (1 - share) / n)


def test_labels_come_from_the_generator_given():
    maze, goal = maze_oracle.random_maps(10, (7, 7), seed=3)
    first, second, other = (
        label_mazes(maze, goal, np.random.default_rng(s), mechanism=MECHANISMS["diffdrive"]).label
        for s in (5, 5, 6)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize("library", [np, jnp])
def test_action_sets_and_goal_maps(library):
    sets = action_sets(library.asarray(np.array([[0b101, 0b010]], np.uint8)), num_actions=3)
    assert sets.tolist() == [[[True, False, True], [False, True, False]]]
    goal = library.asarray(np.array([[1, 0, 3], [0, 2, 1]], np.int32))
    maps = goal_maps(goal, size=(2, 3), num_orientations=4)
    assert isinstance(maps, library.ndarray)
    assert maps.dtype == np.uint8
    assert maps.shape == (2, 2, 3, 4)
    assert maps.sum() == 2
    assert maps[0, 1, 0, 3] == maps[1, 0, 2, 1] == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_goal_maps_of_traced_and_narrow_goals(x64, dtype):
    goal = np.array([[14, 13, 3]], dtype)  # state 895, more than a byte holds
    make = functools.partial(goal_maps, size=(15, 15), num_orientations=4)
    assert make(goal).ravel().argmax() == 895
    np.testing.assert_array_equal(jax.jit(make)(goal), make(goal))
    assert make(goal[:0]).shape == (0, 15, 15, 4)
    with pytest.raises(ValueError, match=r"goal has shape \(3,\), expected \[n, 3\]"):
        make(goal[0])


@pytest.mark.parametrize(
    ("maze", "goal", "message"),
    [
        (np.ones((2, 3)), [[0, 0, 0]], r"maze has shape \(2, 3\), expected \[n, H, W\]"),
        (np.ones((1, 2, 3)), [[0, 0]], r"goal is int64 \(1, 2\), expected integers \(1, 3\)"),
        (np.ones((1, 2, 3)), [[0.0, 0, 0]], "goal is float64"),
        (np.full((1, 2, 3), 2), [[0, 0, 0]], "maze has values other than 0"),
        (np.ones((1, 2, 3)), [[0, 3, 0]], r"maze 0 is \[0, 3, 0\], outside of \(2, 3, 4\)"),
        (np.ones((1, 2, 3)), [[0, -1, 0]], "outside of"),
        (np.zeros((1, 2, 3)), [[1, 2, 0]], r"goal of maze 0, \[1, 2, 0\], is on a wall"),
    ],
)
def test_impossible_mazes_are_refused(maze, goal, message):
    with pytest.raises(ValueError, match=message):
        shortest_paths(maze, np.array(goal), mechanism=MECHANISMS["diffdrive"])
