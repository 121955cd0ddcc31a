"""Random mazes of the protocol: depth-first carving, decimation, goals.

All mazes of a call are carved at once, each operation being one numpy call over all of them. This
is possible because every maze takes the same number of steps: a pair of neighbouring cells is
pushed on the stack exactly once, by the one that is visited first.
"""

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hvin_jax.tasks.generation.law import check_paths
from hvin_jax.tasks.mechanisms import COMPASS


@dataclasses.dataclass(frozen=True)
class MazeLaw:
    """What mazes to draw.

    Carved cells lie at odd rows and columns. If a size is even, its last inner row or column is
    opened by decimation alone; the outermost cells are walls at every size.

    Attributes:
      size: `(H, W)`.
      decimation: (lowest, highest): each maze draws its own probability of freeing an inner cell
        between these.
    """

    size: tuple[int, int]
    decimation: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        height, width = self.size
        if min(height, width) < 3 or max(height, width) < 4:
            raise ValueError(
                f"a maze of {height}×{width} has no room for a goal besides (1, 1) within its "
                "border of walls: both sides must be at least 3 and one at least 4"
            )
        check_paths(self.size)
        low, high = self.decimation
        if not 0 <= low <= high <= 1:
            raise ValueError(
                f"decimation is ({low}, {high}), expected two probabilities, the lower one first"
            )

    @property
    def about(self) -> str:
        """What maps these are, for messages."""
        return f"mazes with decimation {self.decimation[0]} to {self.decimation[1]}"

    @property
    def kept(self) -> Mapping[str, Any]:
        """What a data set keeps of the law."""
        return {"decimation": self.decimation}

    def draw(
        self, n: int, *, num_orientations: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `draw_mazes`; a goal is an inner cell other than (1, 1), freed."""
        height, width = self.size
        maze = decimated(n, size=self.size, decimation=self.decimation, rng=rng)
        inner = rng.integers(1, (height - 2) * (width - 2), size=n)  # inner cell 0 is (1, 1)
        row, column = 1 + inner // (width - 2), 1 + inner % (width - 2)
        maze[np.arange(n), row, column] = 1
        orientation = rng.integers(0, num_orientations, size=n)
        return maze, np.stack([row, column, orientation], axis=1).astype(np.int32)


class _Grid(NamedTuple):
    """The carving of one size as tables; `C` carved cells, cell `C` stands for everything outside.

    A push is the number `8 · cell + direction`: the cell to visit and the direction in which it was
    entered, 4 for none. Flat positions run over the cells of the maze; position `H · W`, one past
    them, takes idle writes.

    Attributes:
      pushes: int32 `[24 · C, 4]`, a cell's pushes of its neighbours for each order of the four
        directions.
      place: int64 `[C]`, the flat position of a cell.
      passage: int64 `[8 · C]`, the flat position of the wall that a push opens.
      steps: how many pops empty the stack.
    """

    pushes: np.ndarray
    place: np.ndarray
    passage: np.ndarray
    steps: int


@functools.lru_cache(maxsize=32)
def _grid(height: int, width: int) -> _Grid:
    rows, columns = (height - 1) // 2, (width - 1) // 2
    outside = rows * columns
    pushes = np.empty((outside, 24, 4), dtype=np.int32)
    place = np.empty(outside, dtype=np.int64)
    passage = np.full((outside, 8), height * width)
    for row, column in itertools.product(range(rows), range(columns)):
        cell = row * columns + column
        place[cell] = (2 * row + 1) * width + 2 * column + 1
        of_neighbours = []
        for direction, (down, right) in enumerate(COMPASS[name] for name in "NEWS"):
            passage[cell, direction] = place[cell] - down * width - right
            within = 0 <= row + down < rows and 0 <= column + right < columns
            neighbour = cell + down * columns + right if within else outside
            of_neighbours.append(8 * neighbour + direction)
        pushes[cell] = list(itertools.permutations(of_neighbours))
    steps = 1 + rows * (columns - 1) + columns * (rows - 1)
    return _Grid(pushes.reshape(-1, 4), place, passage.ravel(), steps)


def carve(n: int, *, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Perfect mazes: from (1, 1) in steps of two cells, depth first, directions in random order.

    The stack starts with (1, 1). A cell that is popped for the first time is freed together with
    the wall towards the cell that pushed it, and pushes its unvisited neighbours in random order.

    Args:
      n: number of mazes.
      size: `(H, W)`.
      rng: consumed.

    Returns:
      uint8 `[n, H, W]`, 1 = free, 0 = wall.
    """
    height, width = size
    grid = _grid(height, width)
    outside = len(grid.place)
    order = rng.integers(0, 24, size=(n, outside), dtype=np.uint8)
    maze = np.zeros((n, height * width + 1), dtype=np.uint8)
    visited = np.zeros((n, outside + 1), dtype=bool)
    visited[:, outside] = True
    stack = np.full((n, grid.steps + 4), 4, dtype=np.int32)  # the first entry pushes cell 0
    # Flat indices into rows of these arrays are several times faster than pairs of indices.
    which = np.arange(n)
    maze_row, visited_row, order_row = which * maze.shape[1], which * (outside + 1), which * outside
    flat_maze, flat_visited, flat_order = maze.ravel(), visited.ravel(), order.ravel()
    flat_stack = stack.ravel()
    top = which * stack.shape[1]  # the entry to pop
    for _ in range(grid.steps):
        push = flat_stack[top]
        cell = push >> 3
        new = ~flat_visited[visited_row + cell]
        flat_visited[visited_row + cell] = True
        flat_maze[maze_row + grid.place[cell]] = 1
        flat_maze[maze_row + np.where(new, grid.passage[push], height * width)] = 1
        further = grid.pushes[24 * cell + flat_order[order_row + cell]]
        wanted = new[:, None] & ~flat_visited[visited_row[:, None] + (further >> 3)]
        for place in range(4):
            flat_stack[top] = further[:, place]
            top += wanted[:, place]
        top -= 1
    return np.ascontiguousarray(maze[:, :-1]).reshape(n, height, width)


def decimated(
    n: int, *, size: tuple[int, int], decimation: tuple[float, float], rng: np.random.Generator
) -> np.ndarray:
    """Carved mazes in which inner cells are freed at random.

    Args:
      n: number of mazes.
      size: `(H, W)`.
      decimation: see `MazeLaw`.
      rng: consumed.

    Returns:
      uint8 `[n, H, W]`, 1 = free, 0 = wall.
    """
    height, width = size
    maze = carve(n, size=size, rng=rng)
    probability = rng.uniform(*decimation, size=(n, 1, 1))
    maze[:, 1:-1, 1:-1] |= rng.random((n, height - 2, width - 2)) < probability
    return maze
