"""Families of obstacles in the open: scattered cells, blocks, barriers, slants, pillars, traps."""

import numpy as np

from hvin_jax.tasks.generation.family import Rng, Size, one_by_one


@one_by_one
def obstacles(size: Size, rng: Rng) -> np.ndarray:
    """Obstacles of one cell, anywhere: 5 to 45 % of the cells."""
    return _scattered(size, rng, rng.uniform(0.05, 0.45))


@one_by_one
def fields(size: Size, rng: Rng) -> np.ndarray:
    """Open fields: 0 to 5 % of the cells are obstacles."""
    return _scattered(size, rng, rng.uniform(0, 0.05))


@one_by_one
def blocks(size: Size, rng: Rng) -> np.ndarray:
    """Rectangles of up to a third of the map, which cover 10 to 45 % of it."""
    largest = int(rng.integers(2, max(3, min(size) // 3) + 1))
    mean = ((1 + largest) / 2) ** 2
    inner = (size[0] - 2) * (size[1] - 2)
    count = max(1, round(-np.log(1 - rng.uniform(0.1, 0.45)) * inner / mean))
    return _without(size, _placed(size, rng, rng.integers(1, largest + 1, size=(count, 2))))


@one_by_one
def barriers(size: Size, rng: Rng) -> np.ndarray:
    """Straight walls, level and upright, 1 or 2 cells thick and up to most of a side long."""
    count = rng.integers(1, 3 + (size[0] + size[1]) // 6)
    level = rng.random(count) < 0.5
    side = np.where(level, size[1], size[0]) - 2
    length = np.maximum(3, rng.uniform(0.2, 0.9, count) * side).astype(int)
    thick = rng.integers(1, 2 if min(size) < 12 else 3, size=count)
    extent = np.stack([np.where(level, thick, length), np.where(level, length, thick)], axis=1)
    return _without(size, _placed(size, rng, extent))


@one_by_one
def slants(size: Size, rng: Rng) -> np.ndarray:
    """Walls at any angle and discs, which are 1 cell to a fifth of the map thick."""
    maze = np.ones(size, np.uint8)
    row, column = np.indices(size)
    thick = rng.uniform(0.6, max(1.0, min(size) / 10))  # half of it
    for _ in range(rng.integers(1, 3 + size[0] * size[1] // int(60 * thick))):
        # A wall is what is near a segment; that of a disc is a point.
        length = rng.uniform(0, 0.3) * max(size) if rng.random() < 0.6 else 0.0
        angle, middle = rng.uniform(0, np.pi), rng.random(2) * size
        down, right = row - middle[0], column - middle[1]
        along = down * np.sin(angle) + right * np.cos(angle)
        across = right * np.sin(angle) - down * np.cos(angle)
        beyond = np.maximum(np.abs(along) - length, 0)
        maze[beyond**2 + across**2 <= thick**2] = 0
    return _walled(maze)


@one_by_one
def pillars(size: Size, rng: Rng) -> np.ndarray:
    """Rows of pillars of 1 to 4 cells a side with gaps of 1 to 5; 0 to 40 % of them are missing."""
    index, solid = [], []
    for side in size:
        pillar, gap = min(int(rng.integers(1, 5)), side - 4), int(rng.integers(1, 6))
        place = np.arange(side) + rng.integers(0, pillar + gap)
        index.append(place // (pillar + gap))
        solid.append(place % (pillar + gap) < pillar)
    there = rng.random([x[-1] + 1 for x in index]) >= rng.uniform(0, 0.4)
    maze = 1 - (solid[0][:, None] & solid[1] & there[np.ix_(*index)]).astype(np.uint8)
    return _walled(maze)


@one_by_one
def bug_traps(size: Size, rng: Rng) -> np.ndarray:
    """Boxes that are open on one side or have a narrow mouth there, facing any way."""
    inner = np.array(size) - 2
    count = int(rng.integers(1, 2 + inner.prod() // 64))
    extent = rng.integers(3, np.maximum(4, np.minimum(inner, 3 + inner.max() // 2) + 1), (count, 2))
    corner = _corners(size, rng, extent)
    thick = rng.integers(1, 2 if min(size) < 12 else 3)
    parts = []
    for (row, column), (height, width) in zip(corner, extent, strict=True):
        sides = [
            (row, column, min(thick, height - 2), width),
            (row, column, height, min(thick, width - 2)),
            (row + height - 1, column, 1, width),
            (row, column + width - 1, height, 1),
        ]
        mouth = sides.pop(rng.integers(4))
        if rng.random() < 0.5:  # a narrow mouth: the side stays but for a gap
            gap = rng.integers(1, max(mouth[2:]) - 1)
            parts += _with_gap(mouth, gap, rng)
        parts += sides
    return _without(size, np.array(parts))


def _with_gap(side: tuple[int, ...], gap: int, rng: Rng) -> list[tuple[int, ...]]:
    """A wall as two, with a gap between its corners."""
    row, column, height, width = side
    if height > width:
        return [(c, r, w, h) for r, c, h, w in _with_gap((column, row, width, height), gap, rng)]
    begin = int(rng.integers(1, width - gap))
    return [
        (row, column, height, begin),
        (row, column + begin + gap, height, width - begin - gap),
    ]


def _scattered(size: Size, rng: Rng, density: float) -> np.ndarray:
    return _walled((rng.random(size) >= density).astype(np.uint8))


def _walled(maze: np.ndarray) -> np.ndarray:
    maze[[0, -1]] = maze[:, [0, -1]] = 0
    return maze


def _corners(size: Size, rng: Rng, extent: np.ndarray) -> np.ndarray:
    """Where rectangles `[k, 2]` are put, anywhere within the border: `[k, 2]`."""
    room = np.array(size) - 1 - extent
    return 1 + (rng.random(extent.shape) * room).astype(int)


def _placed(size: Size, rng: Rng, extent: np.ndarray) -> np.ndarray:
    """Rectangles `[k, 4]`: (row, column, height, width)."""
    return np.concatenate([_corners(size, rng, extent), extent], axis=1)


def _without(size: Size, rectangles: np.ndarray) -> np.ndarray:
    """An open map with walls in place of rectangles `[k, 4]`."""
    maze = np.ones(size, np.uint8)
    for row, column, height, width in rectangles.tolist():
        maze[row : row + height, column : column + width] = 0
    return _walled(maze)
