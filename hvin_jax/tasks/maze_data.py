"""Labelled mazes in memory: what the arrays are called, their shapes and what they mean."""

import dataclasses
from typing import Any

import numpy as np

from hvin_jax.tasks.mechanisms import Mechanism

# The length of a path that does not exist: the SPL of wall cells and of cells from which the goal
# can't be reached.
UNREACHABLE = 65535
SPLITS = ("train", "valid", "test")


@dataclasses.dataclass(frozen=True)
class MazeData:
    """Mazes with a goal each, their shortest paths and optimal actions.

    Attributes:
      mechanism: how the agent moves.
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: int32 `[n, 3]`, (row, column, orientation); a free cell.
      label: uint8 `[n, H, W, O]`, one of the optimal actions, drawn once from the seed.
      optimal: uint8 `[n, H, W, O]`, the set of all optimal actions; bit `a` is action `a`. An
        action is optimal when no other leads to a state with a shorter path to the goal. Where no
        action leads anywhere useful (cells cut off from the goal; wall cells in differential drive)
        all actions tie, so the set is full and the label is noise. In NEWS and Moore a wall cell
        beside a reachable cell has the actions that leave it towards the goal. At the goal the
        actions are those that stay at it or come back soonest.
      spl: uint16 `[n, H, W, O]`, the shortest path length in actions: 0 at the goal, `UNREACHABLE`
        at wall cells and wherever the goal can't be reached.
    """

    mechanism: Mechanism
    maze: np.ndarray
    goal: np.ndarray
    label: np.ndarray
    optimal: np.ndarray
    spl: np.ndarray

    def __len__(self) -> int:
        return len(self.maze)

    def __getitem__(self, index: Any) -> "MazeData":
        """Some of the mazes: `index` is a slice, an array of integers or a mask `[n]`."""
        return dataclasses.replace(self, **{name: getattr(self, name)[index] for name in ARRAYS})

    @property
    def size(self) -> tuple[int, int]:
        """`(H, W)`."""
        return self.maze.shape[1], self.maze.shape[2]

    def goal_maps(self) -> np.ndarray:
        """One-hot goals, uint8 `[n, H, W, O]`: the planner's input besides `maze`."""
        orientations = self.mechanism.num_orientations
        return goal_maps(self.goal, size=self.size, num_orientations=orientations)


ARRAYS = tuple(field.name for field in dataclasses.fields(MazeData) if field.name != "mechanism")


@dataclasses.dataclass(frozen=True)
class MazeSplits:
    """A data set: mazes to train on, to select a model with and to test it with.

    Attributes:
      train: the training mazes.
      valid: the validation mazes.
      test: the test mazes.
      seed: what the mazes were drawn from; -1 if unknown.
      decimation: (lowest, highest) probability of freeing a cell; (nan, nan) if unknown.
      families: of what families the maps are, see `MapLaw`; "" if unknown.
    """

    train: MazeData
    valid: MazeData
    test: MazeData
    seed: int = -1
    decimation: tuple[float, float] = (float("nan"), float("nan"))
    families: str = ""

    @property
    def mechanism(self) -> Mechanism:
        """How the agent moves, the same in all splits."""
        return self.train.mechanism


def goal_maps(goal: Any, *, size: tuple[int, ...], num_orientations: int) -> Any:
    """One-hot maps of goals.

    Args:
      goal: int `[n, 3]`, (row, column, orientation); a numpy or JAX array, traced ones included.
      size: `(H, W)`.
      num_orientations: `O`.

    Returns:
      uint8 `[n, H, W, O]`, of the same kind.
    """
    if goal.ndim != 2 or goal.shape[1] != 3:
        raise ValueError(f"goal has shape {goal.shape}, expected [n, 3]: row, column, orientation")
    height, width = size
    row, column, orientation = (goal[:, axis].astype(np.int32) for axis in range(3))
    place = (row * width + column) * num_orientations + orientation
    # Compared rather than indexed: that is the same expression for both kinds of array.
    states = np.arange(height * width * num_orientations, dtype=np.int32)
    maps = (place[:, None] == states[None]).astype(np.uint8)
    return maps.reshape(goal.shape[0], height, width, num_orientations)


def find_fault(
    maze: np.ndarray, goal: np.ndarray, *, num_orientations: int
) -> tuple[str, str] | None:
    """What is wrong with mazes and their goals.

    Args:
      maze: what should be `[n, H, W]`, 1 = free, 0 = wall.
      goal: what should be int `[n, 3]`, (row, column, orientation); free cells.
      num_orientations: `O`.

    Returns:
      The name of the array at fault, "maze" or "goal", and the reason; None if all is well.
    """
    if maze.ndim != 3 or 0 in maze.shape[1:]:
        return "maze", f"has shape {maze.shape}, expected [n, H, W]"
    if goal.shape != (len(maze), 3) or not np.issubdtype(goal.dtype, np.integer):
        return "goal", f"is {goal.dtype} {goal.shape}, expected integers {(len(maze), 3)}"
    if not ((maze == 0) | (maze == 1)).all():
        return "maze", "has values other than 0 (wall) and 1 (free)"
    limits = (*maze.shape[1:], num_orientations)
    if (outside := (goal < 0).any(axis=1) | (goal >= limits).any(axis=1)).any():
        index = int(outside.argmax())
        return "goal", f"of maze {index} is {goal[index].tolist()}, outside of {limits}"
    if (walled := maze[np.arange(len(maze)), goal[:, 0], goal[:, 1]] == 0).any():
        index = int(walled.argmax())
        return "goal", f"of maze {index}, {goal[index].tolist()}, is on a wall"
    return None


def action_sets(optimal: Any, *, num_actions: int) -> Any:
    """Sets of actions, unfolded from their bits.

    Args:
      optimal: uint8 `[...]`, a numpy or JAX array; bit `a` is action `a`.
      num_actions: `A`.

    Returns:
      bool `[..., A]`, of the same kind.
    """
    bit = np.left_shift(1, np.arange(num_actions)).astype(np.uint8)
    return (optimal[..., None] & bit.reshape((1,) * optimal.ndim + (num_actions,))) != 0
