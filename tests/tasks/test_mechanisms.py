import dataclasses

import maze_oracle
import numpy as np
import pytest

from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, get_mechanism, step, transition_table
from hvin_jax.tasks.rollouts import path_lengths
from hvin_jax.tasks.shortest_paths import shortest_paths


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("size", [(1, 1), (1, 6), (5, 1), (4, 7)])
def test_transitions_follow_the_rules(name, size):
    maze, _ = maze_oracle.random_maps(20, size, seed=1)
    mechanism = MECHANISMS[name]
    table = transition_table(maze, mechanism=mechanism)
    shape = (*size, mechanism.num_orientations)
    assert table.shape == (20, np.prod(shape), maze_oracle.ACTIONS[name])
    for index, one in enumerate(maze):
        for flat, state in enumerate(maze_oracle.states(name, one)):
            for action in range(mechanism.num_actions):
                expected = maze_oracle.next_state(name, one, state, action)
                assert table[index, flat, action] == np.ravel_multi_index(expected, shape)


def _go(name, drawing, state, *actions):
    own = from_text(drawing)
    mechanism = MECHANISMS[name]
    shape = (*own.maze.shape, mechanism.num_orientations)
    flat = np.array([[np.ravel_multi_index(state, shape)]])
    for action in actions:
        index = np.array([[mechanism.actions.index(action)]])
        flat = step(own.maze[None], flat, index, mechanism=mechanism)
    return tuple(int(i) for i in np.unravel_index(flat[0, 0], shape))


def test_differential_drive_by_hand():
    north, east, west, south = range(4)
    drawing = "...\n.#.\n..."
    assert _go("diffdrive", drawing, (2, 0, north), "forward", "forward") == (0, 0, north)
    assert _go("diffdrive", drawing, (0, 0, north), "turn right", "forward") == (0, 1, east)
    assert _go("diffdrive", drawing, (0, 0, north), "turn left", "turn left") == (0, 0, south)
    # Into the wall, and stuck there whatever is done.
    inside = _go("diffdrive", drawing, (1, 0, east), "forward")
    assert inside == (1, 1, east)
    assert _go("diffdrive", drawing, inside, "forward", "turn left", "turn right") == inside
    # The edge of the map holds the agent back and does not trap it.
    assert _go("diffdrive", drawing, (0, 0, west), "forward") == (0, 0, west)
    assert _go("diffdrive", drawing, (0, 0, west), "forward", "turn left") == (0, 0, south)


def test_news_and_moore_by_hand():
    drawing = "...\n.#.\n..."
    assert _go("news", drawing, (1, 0, 0), "E") == (1, 0, 0)
    assert _go("news", drawing, (0, 0, 0), "N", "W", "E", "S") == (0, 1, 0)
    assert _go("moore", drawing, (0, 1, 0), "SE", "SW", "NW") == (1, 0, 0)
    assert _go("moore", drawing, (0, 0, 0), "SE") == (0, 0, 0)
    # Diagonally between two walls there is a way.
    assert _go("moore", ".#\n#.", (0, 0, 0), "SE") == (1, 1, 0)


def test_one_entry_is_a_mechanism():
    """A one-way street with a side step: other code takes its tables as they are."""
    mechanism = Mechanism(
        name="bishop",
        orientations=("-",),
        actions=("NE", "SE"),
        moves=(((-1, 1, 0), (1, 1, 0)),),
        walls="block",
    )
    own = from_text("....\n.#..\n...G")
    spl, optimal = shortest_paths(own.maze[None], np.array([[2, 3, 0]]), mechanism=mechanism)
    far = 65535
    expected = [[far, 2, far, far], [3, far, 1, far], [far, 2, far, 0]]
    assert spl[0, ..., 0].tolist() == expected
    # Both places before (1, 2) have a single way, and there are two ways to get to them.
    assert optimal[0, 1, 0, 0] == 0b11
    assert optimal[0, 0, 1, 0] == 0b10
    assert optimal[0, 2, 1, 0] == 0b01
    policy = (optimal // 2).clip(0, 1)
    lengths = path_lengths(policy, own.maze[None], np.array([[2, 3, 0]]), mechanism=mechanism)
    assert lengths[0, 0, 1, 0] == 2


def test_mistakes_in_a_mechanism_are_named():
    news = MECHANISMS["news"]
    with pytest.raises(ValueError, match=r"moves have shape \(1, 4, 3\), expected \(1, 3, 3\)"):
        dataclasses.replace(news, actions=("N", "E", "W"))
    with pytest.raises(ValueError, match="has 33 actions"):
        dataclasses.replace(news, actions=tuple(map(str, range(33))))
    with pytest.raises(ValueError, match="a move spans 17 cells, expected at most 16"):
        dataclasses.replace(news, moves=(((17, 0, 0),) * 4,))
    least = np.iinfo(np.int64).min  # which has no absolute value
    with pytest.raises(ValueError, match="a move spans 9223372036854775808 cells"):
        dataclasses.replace(news, moves=np.array([[(least, 0, 0)] * 4]))
    with pytest.raises(ValueError, match="has no orientation; one that does not turn has one"):
        dataclasses.replace(news, orientations=())
    with pytest.raises(ValueError, match="orientations is None, expected a sequence of names"):
        dataclasses.replace(news, orientations=None)
    with pytest.raises(ValueError, match=r"are no table of whole numbers, expected .* three whole"):
        dataclasses.replace(news, moves=(((0.5, 0, 0),) * 4,))
    with pytest.raises(ValueError, match="between is 'fly', expected 'jump' or 'stop'"):
        dataclasses.replace(news, between="fly")
    with pytest.raises(ValueError, match="two actions have one name"):
        dataclasses.replace(news, actions=("N", "N", "W", "S"))
    with pytest.raises(ValueError, match="unknown orientation"):
        dataclasses.replace(news, moves=(((1, 0, 1),) * 4,))
    with pytest.raises(ValueError, match="walls is 'glass', expected 'trap' or 'block'"):
        dataclasses.replace(news, walls="glass")
    with pytest.raises(ValueError, match="'hexagonal': expected one of diffdrive, moore, news"):
        get_mechanism("hexagonal")
    assert get_mechanism("news") is get_mechanism(news) is news
