"""Walls around maps that have none, as planners know them from training."""

import dataclasses
from typing import Any

import numpy as np

from hvin_jax.tasks.maze_data import UNREACHABLE, MazeData

# What stands in the added cells.
_FILL = {"spl": UNREACHABLE, "cost": np.inf, "distance": np.inf}


def open_at_edge(maze: np.ndarray, extent: np.ndarray | None = None) -> np.ndarray:
    """Which of maps `[n, H, W]` have free cells at their edge: bool `[n]`.

    Args:
      maze: 1 = free, 0 = wall.
      extent: int `[n, 2]`, rows and columns of each map; None: they fill their arrays.
    """
    free = maze != 0
    sides = np.broadcast_to(maze.shape[1:] if extent is None else extent, (len(maze), 2))
    index = np.arange(len(maze))
    first = free[:, 0].any(1) | free[:, :, 0].any(1)
    return first | free[index, sides[:, 0] - 1].any(1) | free[index, :, sides[:, 1] - 1].any(1)


def walled(data: MazeData) -> MazeData:
    """The same mazes, with a wall around each that has free cells at its edge.

    `Planner.plan` does the same for its maps. Maps that end in walls stay as they are.
    """
    opened = open_at_edge(data.maze, data.extent)
    if not opened.any():
        return data
    height, width = data.size
    changed: dict[str, Any] = {}
    for name, array in data.arrays().items():
        if name in ("goal", "extent"):
            continue
        # Without an optimal action all tie, as at other walls.
        every = 2**data.mechanism.num_actions - 1
        fill = every if name == "optimal" else _FILL.get(name, 0)
        larger = np.full((len(array), height + 2, width + 2, *array.shape[3:]), fill, array.dtype)
        larger[opened, 1:-1, 1:-1], larger[~opened, :-2, :-2] = array[opened], array[~opened]
        changed[name] = larger
    shift = opened.astype(data.goal.dtype).reshape(-1, *[1] * (data.goal.ndim - 1))
    changed["goal"] = data.goal + shift * np.array([1, 1, 0], data.goal.dtype)
    if data.extent is not None or not opened.all():
        extent = np.array([data.size]) if data.extent is None else data.extent
        changed["extent"] = (extent + 2 * opened[:, None]).astype(np.int32)
    return dataclasses.replace(data, **changed)
