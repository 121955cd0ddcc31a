"""States and maps as people write them, and what is wrong with them in one sentence."""

from typing import Any

import numpy as np

from hvin_jax.tasks.maze_data import LEAST_COST, MOST_COST, impossible_cost
from hvin_jax.tasks.mechanisms import Mechanism


def as_maps(maze: Any) -> np.ndarray:
    """Maps as an array, uint8 `[H, W]` or `[n, H, W]`, of whatever can be read as such."""
    try:
        array = np.asarray(maze)
    except ValueError as error:
        raise ValueError(
            "the maps of a batch differ in size, or the rows of a map in length: plan on maps of "
            "different sizes one by one"
        ) from error
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        what = f"n array of {array.dtype}" if hasattr(maze, "dtype") else f" {type(maze).__name__}"
        raise ValueError(
            f"the map is a{what}, expected an array of the numbers 1 (free) and 0 (wall); "
            "hvin_jax.tasks.from_text(drawing).maze is one"
        )
    if array.ndim not in (2, 3) or 0 in array.shape[-2:]:
        raise ValueError(f"the map has shape {array.shape}, expected [H, W] or a batch [n, H, W]")
    if not ((array == 0) | (array == 1)).all():
        raise ValueError("the map has values other than 0 (wall) and 1 (free)")
    return array.astype(np.uint8)


def states_of(state: Any, maze: np.ndarray, *, mechanism: Mechanism, name: str) -> np.ndarray:
    """A state, or those of all orientations where that is left out: int64 `[k, 3]`.

    Args:
      state: (row, column) or (row, column, orientation); the orientation as a number or by name,
        -1 as if it were left out.
      maze: `[H, W]`, 1 = free, 0 = wall.
      mechanism: how the agent moves.
      name: what errors call it, such as "the goal".
    """
    names = mechanism.orientations
    entries = _entries(state)
    if entries is not None and len(entries) == 3 and entries[2] in names:
        entries[2] = names.index(entries[2])
    if (
        entries is None
        or len(entries) not in (2, 3)
        or not all(isinstance(x, int) or (isinstance(x, float) and x.is_integer()) for x in entries)
    ):
        turns = (
            f" or (row, column, orientation), where an orientation of {mechanism.name} is 0 to "
            f"{len(names) - 1} or one of {', '.join(names)}"
        )
        raise ValueError(
            f"{name} is {_shown(state)}, expected whole numbers (row, column)"
            f"{turns if len(names) > 1 else ''}"
        )
    row, column, *orientation = (int(x) for x in entries)
    height, width = maze.shape
    if not (0 <= row < height and 0 <= column < width):
        raise ValueError(f"{name} {(row, column)} is outside of the {height}×{width} map")
    if orientation == [-1]:  # as data have it
        orientation = []
    if orientation and not 0 <= orientation[0] < len(names):
        raise ValueError(
            f"{name} has orientation {orientation[0]}, but {mechanism.name} has 0 to "
            f"{len(names) - 1} ({', '.join(names)}), or -1 for any"
        )
    if not maze[row, column]:
        raise ValueError(f"{name} {(row, column)} is on a wall")
    return np.array([(row, column, o) for o in orientation or range(len(names))])


def as_goals(goal: Any, maps: np.ndarray, *, mechanism: Mechanism) -> np.ndarray:
    """Goals of a batch of maps as data have them, int64 `[n, 3]` or `[n, K, 3]`, checked.

    Args:
      goal: (row, column, orientation), or several, for each map; an orientation of -1 for any.
      maps: `[n, H, W]`, 1 = free, 0 = wall.
      mechanism: how the agent moves.
    """
    try:
        array = np.asarray(goal)
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"the goals are {_shown(goal)}, expected whole numbers") from error
    count, height, width = maps.shape
    if (
        array.ndim not in (2, 3)
        or array.shape[0] != count
        or array.shape[-1] != 3
        or not all(array.shape)
    ):
        raise ValueError(
            f"the goals have shape {array.shape}, expected ({count}, 3) for {count} maps: (row, "
            f"column, orientation) for each, or ({count}, K, 3) where there are K goals"
        )
    if (array != whole).any():
        raise ValueError(f"the goals are {_shown(goal)}, expected whole numbers")
    row, column, orientation = np.moveaxis(whole.reshape(count, -1, 3), -1, 0)
    outside = (row < 0) | (row >= height) | (column < 0) | (column >= width)
    unknown = (orientation < -1) | (orientation >= mechanism.num_orientations)
    each = np.arange(count)[:, None]
    walled = maps[each, np.where(outside, 0, row), np.where(outside, 0, column)] == 0
    for wrong, what in (
        (outside, f"is outside of the {height}×{width} map"),
        (unknown, f"has no orientation of {mechanism.name}: 0 to {mechanism.num_orientations - 1}"),
        (walled, "is on a wall"),
    ):
        if wrong.any():
            index, number = np.argwhere(wrong)[0]
            state = tuple(whole.reshape(count, -1, 3)[index, number].tolist())
            raise ValueError(f"the goal {state} of map {index} {what}")
    return whole


def are_several(goal: Any) -> bool:
    """Whether it is a sequence of states, not one."""
    entries = _entries(goal)
    return bool(entries) and all(_entries(entry) is not None for entry in entries or ())


def as_costs(cost: Any, maps: np.ndarray) -> np.ndarray:
    """Costs of maps `[H, W]` or `[n, H, W]` as float32, after checking them; 1 at walls."""
    array = np.asarray(cost)
    if array.dtype.kind not in "iuf" or array.shape != maps.shape:
        raise ValueError(
            f"the cost is {array.dtype} {array.shape}, expected numbers of the map's shape "
            f"{maps.shape}"
        )
    if (place := impossible_cost(array, maps)) is not None:
        raise ValueError(
            f"the cost of the free cell {place} is {array[place]:g}, expected {LEAST_COST:g} to "
            f"{MOST_COST:g}"
        )
    return np.where(maps != 0, array, 1).astype(np.float32)


def _entries(state: Any) -> list[Any] | None:
    """The entries of something like a tuple; None if it is nothing like it."""
    if isinstance(state, str | bytes | dict | set):
        return None
    if hasattr(state, "tolist"):  # numpy and JAX arrays
        state = np.asarray(state).tolist()
    try:
        entries = list(state)
    except TypeError:
        return None
    return [x.item() if getattr(x, "ndim", None) == 0 else x for x in entries]


def _shown(state: Any) -> str:
    text = repr(state.tolist() if hasattr(state, "tolist") else state)
    return text if len(text) <= 60 else f"{text[:57]}..."
