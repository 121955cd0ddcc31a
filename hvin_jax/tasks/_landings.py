"""Where actions land, for all states of many maps at once.

For a search, arrays over states are `[O, H + 2R, W + 2R, ...]`, with a border as wide as the
farthest move, `R`; what an action leads to is then a slice of them. Agents that stop at walls land
in one of several places, and a mask says where they do so in which.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hvin_jax.tasks.mechanisms import Mechanism, step


class Landing(NamedTuple):
    """A place, relative to a state, that an action may lead to.

    Attributes:
      view: `[H, W, ...]`, what stands there in the array of the search, for all cells.
      mask: `[H, W, ...]`, where the action leads there; None: everywhere, as far as it leads
        anywhere.
    """

    view: np.ndarray
    mask: np.ndarray | None


def with_border(array: np.ndarray, reach: int, fill: float = 0) -> np.ndarray:
    """`[..., H, W, m]` with a border of `reach` cells around the grid."""
    sides = [(0, 0)] * (array.ndim - 3) + [(reach, reach), (reach, reach), (0, 0)]
    return np.pad(array, sides, constant_values=fill)


def landings(
    array: np.ndarray, free: np.ndarray, mechanism: Mechanism
) -> list[list[list[Landing]]]:
    """Where each action lands from each cell, `[O][A]` lists of landings.

    Args:
      array: `[O, H + 2R, W + 2R, m]`, over which the search runs; landings are views into it, so
        they follow its changes. It tells itself that walls lead nowhere.
      free: `[H, W, m]`, booleans or sets of bits, whether a cell is free.
      mechanism: how the agent moves.
    """
    height, width, _ = free.shape
    reach = mechanism.reach
    everywhere = ~np.zeros_like(free)
    bordered, on_map = with_border(free, reach), with_border(everywhere, reach)

    def at(grid: np.ndarray, rows: int, columns: int) -> np.ndarray:
        top, left = reach + rows, reach + columns
        return grid[..., top : top + height, left : left + width, :]

    def of_action(orientation: int, action: int) -> Iterator[Landing]:
        rows, columns, new = mechanism.moves[orientation][action]
        steps = mechanism.steps_of(orientation, action)
        if len(steps) <= 1:
            yield Landing(at(array[new], rows, columns), None)
            return
        # Traps are entered, which leads nowhere; what stops the agent short is the edge alone.
        stops = on_map if mechanism.walls == "trap" else bordered
        going, done = everywhere, (0, 0)
        for down, right in steps:
            following = (done[0] + down, done[1] + right)
            if any(done):  # stopped by the first step, the agent stays as it was
                yield Landing(at(array[new], *done), going & ~at(stops, *following))
            going, done = going & at(bordered, *following), following
        yield Landing(at(array[new], *done), going)

    return [
        [list(of_action(orientation, action)) for action in range(mechanism.num_actions)]
        for orientation in range(mechanism.num_orientations)
    ]


def stays_at_goal(
    maze: np.ndarray, goals: np.ndarray, far: np.ndarray, *, mechanism: Mechanism
) -> np.ndarray:
    """The actions that stay at a goal, or lead to the nearest of all states.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goals: `[n, H, W, O]`, not 0 at `m` goals in all.
      far: `[n, H, W, O]`, how far states are from a goal.
      mechanism: how the agent moves.

    Returns:
      Bit sets `[m]`, for the goals in the order of `goals`.
    """
    which, *state = np.nonzero(goals)
    flat = np.ravel_multi_index(tuple(state), goals.shape[1:])[:, None]
    action = np.arange(mechanism.num_actions)[None].repeat(len(which), axis=0)
    following = step(maze[which], flat, action, mechanism=mechanism)
    length = np.take_along_axis(far.reshape(len(maze), -1)[which], following, axis=1)
    nearest = length == length.min(axis=1, keepdims=True)
    bits = nearest.astype(mechanism.set_dtype) << np.arange(
        mechanism.num_actions, dtype=mechanism.set_dtype
    )
    return bits.sum(axis=1, dtype=mechanism.set_dtype)
