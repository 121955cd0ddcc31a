"""Families of chambers: rooms with doors, dungeons, caves, tunnels."""

import itertools

import numpy as np

from hvin_jax.tasks.generation.family import Rng, Size, one_by_one


@one_by_one
def rooms(size: Size, rng: Rng) -> np.ndarray:
    """Rooms with doors: the map is divided again and again, by walls with 1 or 2 doors."""
    maze = np.zeros(size, np.uint8)
    maze[1:-1, 1:-1] = 1
    least = int(rng.integers(1, max(2, min(size) // 4) + 1))  # the least side of a room
    stop, second_door = rng.uniform(0, 0.3), rng.random()
    todo = [(1, size[0] - 1, 1, size[1] - 1)]
    while todo:
        room = todo.pop()
        if maze.sum() < (size[0] - 2) * (size[1] - 2) and rng.random() < stop:
            continue
        todo += _divide(maze, room, least, second_door, rng)
    return maze


Room = tuple[int, int, int, int]  # its first row, the row after its last, the same of columns


def _divide(maze: np.ndarray, room: Room, least: int, second_door: float, rng: Rng) -> list[Room]:
    """Puts a wall with doors through a room, unless it is too small; the two rooms there are."""
    top, bottom, left, right = room
    level = rng.random() * (bottom - top + right - left) < bottom - top
    if not level:
        maze, top, bottom, left, right = maze.T, left, right, top, bottom
    # A wall must not end in a door.
    ends = maze[top + least : bottom - least, left - 1] + maze[top + least : bottom - least, right]
    places = np.flatnonzero(ends == 0)
    if not len(places):
        return []
    wall = top + least + int(places[rng.integers(len(places))])
    maze[wall, left:right] = 0
    maze[wall, rng.integers(left, right, size=1 + (rng.random() < second_door))] = 1
    parts = [(top, wall, left, right), (wall + 1, bottom, left, right)]
    return parts if level else [(left, right, top, bottom) for top, bottom, left, right in parts]


@one_by_one
def dungeons(size: Size, rng: Rng) -> np.ndarray:
    """Chambers in solid rock, each joined to the one before by a bent passage of 1 or 2 cells."""
    maze = np.zeros(size, np.uint8)
    sides = np.array(size)
    largest = rng.integers(2, max(3, min(size) // 3) + 1)
    count = rng.integers(2, 3 + sides.prod() // (4 * largest**2))
    extent = rng.integers(1, largest + 1, size=(count, 2))
    corner = 1 + (rng.random((count, 2)) * (sides - 1 - extent)).astype(int)
    for (row, column), (height, width) in zip(corner, extent, strict=True):
        maze[row : row + height, column : column + width] = 1
    centre = corner + extent // 2
    passage = rng.integers(1, 3)
    for first, second in itertools.pairwise(centre):
        (row, column), (r, c) = (first, second) if rng.random() < 0.5 else (second, first)
        maze[row : row + passage, min(column, c) : max(column, c) + 1] = 1
        maze[min(row, r) : max(row, r) + 1, c : c + passage] = 1
    maze[[0, -1]] = maze[:, [0, -1]] = 0
    return maze


@one_by_one
def caves(size: Size, rng: Rng) -> np.ndarray:
    """Caves: noise with 38 to 48 % of walls, smoothed 1 to 5 times by a cellular automaton."""
    height, width = size
    wall = np.ones((height + 2, width + 2), np.uint8)
    wall[2:-2, 2:-2] = rng.random((height - 2, width - 2)) < rng.uniform(0.38, 0.48)
    for _ in range(rng.integers(1, 6)):
        three = wall[:-2] + wall[1:-1] + wall[2:]
        around = three[:, :-2] + three[:, 1:-1] + three[:, 2:]
        wall[2:-2, 2:-2] = around[1:-1, 1:-1] >= 5
    return 1 - wall[1:-1, 1:-1]


@one_by_one
def tunnels(size: Size, rng: Rng) -> np.ndarray:
    """Tunnels that a random walk digs into rock, until 15 to 50 % of the cells are free."""
    inner = np.array(size) - 2
    steps = 6 * int(inner.prod())
    turns = rng.random(steps) < rng.uniform(0.1, 1)
    last_turn = np.maximum.accumulate(np.where(turns, np.arange(steps), 0))
    direction = rng.integers(0, 4, size=steps)[last_turn]
    way = np.array([(-1, 0), (0, 1), (0, -1), (1, 0)])[direction].cumsum(axis=0)
    # The walk is reflected at the border: a walk on a larger field, folded.
    place = (way + rng.integers(0, inner)) % (2 * inner - 2)
    row, column = np.minimum(place, 2 * inner - 2 - place).T + 1
    flat = row * size[1] + column
    cell, first = np.unique(flat, return_index=True)
    dug = cell[np.argsort(first)[: max(3, int(rng.uniform(0.15, 0.5) * inner.prod()))]]
    maze = np.zeros(size, np.uint8)
    maze.ravel()[dug] = 1
    return maze
