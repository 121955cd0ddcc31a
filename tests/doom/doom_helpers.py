"""Small mazes and levels for the tests with the Doom engine."""

import numpy as np

from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.doom.levels import draw_looks, write_levels
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism

# Rows N, E, W, S of differential drive: (down, right).
STEPS = {"N": (-1, 0), "E": (0, 1), "W": (0, -1), "S": (1, 0)}


def small_mazes(count, size=(7, 7), seed=0):
    """Mazes with goals and labels."""
    return make_mazes(
        law=MazeLaw(size),
        mechanism=get_mechanism("diffdrive"),
        train=count,
        valid=0,
        test=0,
        seed=seed,
    ).train


def small_levels(folder, count=3, seed=0, size=(7, 7)):
    """Mazes, the file with their levels, and the levels' names."""
    data = small_mazes(count, size, seed)
    wad = folder / "levels.wad"
    return data, wad, write_levels(wad, list(data.maze), draw_looks(seed, count))


def free_distance(maze, row, column, direction):
    """How many free cells lie ahead of a cell, in plain Python."""
    down, right = STEPS[direction]
    count = 0
    while True:
        row, column = row + down, column + right
        inside = 0 <= row < maze.shape[0] and 0 <= column < maze.shape[1]
        if not inside or not maze[row, column]:
            return count
        count += 1


def assert_same(first, second):
    """Two `CompactViews` are equal."""
    for name in ("columns", "views", "index"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
