import maze_oracle
import numpy as np
import pytest

from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import MECHANISMS
from hvin_jax.tasks.rollouts import BLOCK, path_lengths, path_of
from hvin_jax.tasks.shortest_paths import label_mazes


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    ("n", "size"), [(BLOCK + 6, (5, 6)), (30, (1, 7)), (30, (7, 1)), (4, (1, 1))]
)
def test_against_walks_step_by_step(name, n, size):
    mechanism = MECHANISMS[name]
    maze, goal = maze_oracle.random_maps(n, size, seed=size[0])
    goal[:, 2] %= mechanism.num_orientations
    rng = np.random.default_rng(0)
    data = label_mazes(maze, goal, rng, mechanism=mechanism)
    # Half of the mazes follow noise, the others the labels with faults.
    noise = rng.integers(0, mechanism.num_actions, data.label.shape)
    faults = rng.random(data.label.shape) < 0.1
    faults[: n // 2] = True
    policy = np.where(faults, noise, data.label)
    lengths = path_lengths(policy, maze, goal, mechanism=mechanism)
    for index in range(n):
        for state in maze_oracle.states(name, maze[index]):
            expected = maze_oracle.walk(name, maze[index], tuple(goal[index]), policy[index], state)
            assert lengths[(index, *state)] == expected


@pytest.mark.parametrize("name", MECHANISMS)
def test_labels_lead_along_shortest_paths(name):
    mechanism = MECHANISMS[name]
    maze, goal = maze_oracle.random_maps(300, (9, 11), seed=5)
    goal[:, 2] %= mechanism.num_orientations
    data = label_mazes(maze, goal, np.random.default_rng(1), mechanism=mechanism)
    np.testing.assert_array_equal(
        path_lengths(data.label, maze, goal, mechanism=mechanism), data.spl
    )


def test_the_longest_possible_path():
    """A policy that visits every cell once: no path is cut short, whatever its length."""
    height, width = 9, 14
    own = from_text("\n".join(["." * width] * height))
    policy = np.zeros((1, height, width, 1), dtype=int)
    north, east, west, south = range(4)
    policy[0, ::2] = east
    policy[0, 1::2] = west
    policy[0, ::2, -1] = policy[0, 1::2, 0] = south
    goal = np.array([[height - 1, width - 1, 0]])
    lengths = path_lengths(policy, own.maze[None], goal, mechanism=MECHANISMS["news"])
    assert lengths[0, 0, 0, 0] == lengths.max() == height * width - 1
    policy[0, 4, 6] = north  # bumps back and forth between two cells from here on
    policy[0, 3, 6] = south
    lengths = path_lengths(policy, own.maze[None], goal, mechanism=MECHANISMS["news"])
    assert lengths[0, 0, 0, 0] == UNREACHABLE
    assert lengths[0, 4, 7, 0] == height * width - 1 - (4 * width + 7)


def test_path_by_hand():
    own = from_text("S..\n.#.\n..G")
    mechanism = MECHANISMS["diffdrive"]
    north, east, _, south = range(4)
    policy = np.zeros((3, 3, 4), dtype=int)
    policy[:, :2, north] = policy[0, 2, east] = 1
    path = path_of(policy, own.maze, (0, 0, north), (2, 2, south), mechanism=mechanism)
    expected = [(0, 0, north), (0, 0, east), (0, 1, east), (0, 2, east), (0, 2, south)]
    assert [tuple(state) for state in path.tolist()] == [*expected, (1, 2, south), (2, 2, south)]
    # Turning left and right for ever: the path ends when it repeats itself.
    policy[0, 0] = [1, 2, 0, 0]
    path = path_of(policy, own.maze, (0, 0, north), (2, 2, south), mechanism=mechanism)
    assert path[:, 2].tolist() == [north, east, north]
    # A start at the goal is a path of no action.
    assert len(path_of(policy, own.maze, (2, 2, 0), (2, 2, 0), mechanism=mechanism)) == 1


def test_unfit_policies_are_refused():
    mechanism = MECHANISMS["diffdrive"]
    maze, goal = maze_oracle.random_maps(2, (3, 3), seed=0)

    def lengths(policy):
        return path_lengths(policy, maze, goal, mechanism=mechanism)

    with pytest.raises(ValueError, match=r"shape \(2, 4, 3, 3\), expected \(2, 3, 3, 4\)"):
        lengths(np.zeros((2, 4, 3, 3), dtype=int))
    with pytest.raises(ValueError, match="float32, expected indices of actions: take the argmax"):
        lengths(np.zeros((2, 3, 3, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="actions from 3 to 3, but diffdrive has actions 0 to 2"):
        lengths(np.full((2, 3, 3, 4), 3))
    for state in ((0, 3, 0), (0, 0, 4), (0, 0)):
        with pytest.raises(ValueError, match=r"is not a \(row, column, orientation\) within"):
            path_of(np.zeros((3, 3, 4), dtype=int), maze[0], state, (0, 0, 0), mechanism=mechanism)
