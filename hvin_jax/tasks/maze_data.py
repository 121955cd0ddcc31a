"""Labelled mazes in memory: what the arrays are called, their shapes and what they mean."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from hvin_jax.tasks.mechanisms import Mechanism

# The length of a path that does not exist: the SPL of wall cells and of cells from which the goal
# can't be reached.
UNREACHABLE = 65535
SPLITS = ("train", "valid", "test")
# What entering a free cell may cost: sums over paths and shares of them are sound in float32.
LEAST_COST, MOST_COST = 1e-6, 1e6


@dataclasses.dataclass(frozen=True)
class MazeData:
    """Mazes with a goal each, their shortest paths and optimal actions.

    Attributes:
      mechanism: how the agent moves.
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: int32 `[n, 3]`, (row, column, orientation); a free cell. An orientation of -1 stands for
        any. Where mazes have several goals, any of which counts, `[n, K, 3]`; a maze with fewer
        than `K` has one of them several times.
      label: uint8 `[n, H, W, O]`, one of the optimal actions, drawn once from the seed.
      optimal: uint8 `[n, H, W, O]`, the set of all optimal actions; bit `a` is action `a` (uint16
        or uint32 for mechanisms of more than 8 or 16 actions). An
        action is optimal when no other leads to a state with a shorter path to the goal. Where no
        action leads anywhere useful (cells cut off from the goal; wall cells in differential drive)
        all actions tie, so the set is full and the label is noise. In NEWS and Moore a wall cell
        beside a reachable cell has the actions that leave it towards the goal. At the goal the
        actions are those that stay at it or come back soonest.
      spl: uint16 `[n, H, W, O]`, the shortest path length in actions: 0 at the goal, `UNREACHABLE`
        at wall cells and wherever the goal can't be reached.
      cost: float32 `[n, H, W]`, what it costs to enter a cell, `LEAST_COST` to `MOST_COST`,
        infinite at walls; or None if all actions cost the same. An action costs what the cell costs
        that it ends in: a turn on the spot costs its cell once more. Paths are then measured by
        their cost: `optimal` are the actions that a cheapest path may take, `spl` is the number of
        actions of one.
      distance: float32 `[n, H, W, O]`, the cost of a cheapest path to the goal, infinite where
        there is none; None without `cost`.
      extent: int32 `[n, 2]`, rows and columns of each map, for maps of different sizes: a map is in
        the upper left corner of its array, and the rest, walls all over, lies beyond its border.
        None if all fill their arrays.
    """

    mechanism: Mechanism
    maze: np.ndarray
    goal: np.ndarray
    label: np.ndarray
    optimal: np.ndarray
    spl: np.ndarray
    cost: np.ndarray | None = None
    distance: np.ndarray | None = None
    extent: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.maze)

    def __getitem__(self, index: Any) -> "MazeData":
        """Some of the mazes: `index` is a slice, an array of integers or a mask `[n]`."""
        part = {name: array[index] for name, array in self.arrays().items()}
        return dataclasses.replace(self, **part)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays that there are, by name."""
        found = {name: getattr(self, name) for name in (*ARRAYS, *OPTIONAL)}
        return {name: array for name, array in found.items() if array is not None}

    @property
    def size(self) -> tuple[int, int]:
        """`(H, W)`."""
        return self.maze.shape[1], self.maze.shape[2]

    def goal_maps(self) -> np.ndarray:
        """1 at the goals, uint8 `[n, H, W, O]`: the planner's input besides `maze`."""
        orientations = self.mechanism.num_orientations
        return goal_maps(self.goal, size=self.size, num_orientations=orientations)

    def inside(self) -> np.ndarray | None:
        """Where the maps are, bool `[n, H, W]`; None if they fill their arrays."""
        return None if self.extent is None else inside_of(self.extent, size=self.size)


# The arrays of all mazes, and those of some.
ARRAYS = ("maze", "goal", "label", "optimal", "spl")
OPTIONAL = ("cost", "distance", "extent")


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

    def __post_init__(self) -> None:
        without = [split for split in SPLITS if getattr(self, split).cost is None]
        if 0 < len(without) < len(SPLITS):
            raise ValueError(
                f"the {without[0]} mazes have no costs, others have: all of them need some, or none"
            )
        for split in SPLITS:
            if (size := getattr(self, split).size) != self.train.size:
                sides = ["×".join(map(str, x)) for x in (self.train.size, size)]
                raise ValueError(
                    f"the train mazes have {sides[0]} cells, the {split} mazes {sides[1]}: maps of "
                    "different size need padding to one (pad)"
                )

    @property
    def mechanism(self) -> Mechanism:
        """How the agent moves, the same in all splits."""
        return self.train.mechanism


def concatenate(parts: Sequence[MazeData]) -> MazeData:
    """The mazes of all parts, which have the same arrays."""
    arrays = [part.arrays() for part in parts]
    joined: dict[str, Any] = {name: np.concatenate([x[name] for x in arrays]) for name in arrays[0]}
    return dataclasses.replace(parts[0], **joined)


def goal_maps(goal: Any, *, size: tuple[int, ...], num_orientations: int) -> Any:
    """Maps of goals.

    Args:
      goal: int `[n, 3]` or `[n, K, 3]`, (row, column, orientation), see `MazeData.goal`; a numpy or
        JAX array, traced ones included.
      size: `(H, W)`.
      num_orientations: `O`.

    Returns:
      uint8 `[n, H, W, O]`, 1 at the goals, of the same kind.
    """
    if goal.ndim not in (2, 3) or goal.shape[-1] != 3:
        raise ValueError(
            f"goal has shape {goal.shape}, expected [n, 3] or [n, K, 3]: row, column, orientation"
        )
    height, width = size
    row, column, orientation = (goal[..., axis].astype(np.int32)[..., None] for axis in range(3))
    # Compared rather than indexed: that is the same expression for both kinds of array.
    states = np.arange(height * width * num_orientations, dtype=np.int32)
    states = states.reshape((1,) * (goal.ndim - 1) + (-1,))
    there = row * width + column == states // num_orientations
    there &= (orientation < 0) | (orientation == states % num_orientations)
    if goal.ndim == 3:
        there = there.any(axis=1)
    return there.astype(np.uint8).reshape(goal.shape[0], height, width, num_orientations)


def inside_of(extent: Any, *, size: tuple[int, ...]) -> Any:
    """Where maps are that have their size, int `[n, 2]`, in larger arrays: bool `[n, H, W]`."""
    height, width = (np.arange(side, dtype=np.int32)[None] for side in size)
    rows, columns = (extent[:, axis, None].astype(np.int32) for axis in range(2))
    return (height < rows)[:, :, None] & (width < columns)[:, None, :]


def find_fault(
    maze: np.ndarray,
    goal: np.ndarray,
    *,
    num_orientations: int,
    cost: np.ndarray | None = None,
    extent: np.ndarray | None = None,
) -> tuple[str, str] | None:
    """What is wrong with mazes, their goals and what it costs to enter their cells.

    Args:
      maze: what should be `[n, H, W]`, 1 = free, 0 = wall.
      goal: what should be int `[n, 3]` or `[n, K, 3]`, (row, column, orientation); free cells.
      num_orientations: `O`.
      cost: what should be numbers `[n, H, W]`, where cells are free `LEAST_COST` to `MOST_COST`.
      extent: what should be int `[n, 2]`, see `MazeData.extent`.

    Returns:
      The name of the array at fault, such as "maze", and the reason; None if all is well.
    """
    if maze.ndim != 3 or 0 in maze.shape[1:]:
        return "maze", f"has shape {maze.shape}, expected [n, H, W]"
    several = goal.ndim == 3 and goal.shape[1] > 0
    shape = (len(maze), goal.shape[1], 3) if several else (len(maze), 3)
    if goal.shape != shape or not np.issubdtype(goal.dtype, np.integer):
        return "goal", f"is {goal.dtype} {goal.shape}, expected integers {(len(maze), 3)}"
    if not ((maze == 0) | (maze == 1)).all():
        return "maze", "has values other than 0 (wall) and 1 (free)"
    limits = (*maze.shape[1:], num_orientations)
    goals = goal if several else goal[:, None]
    if (outside := (goals < (0, 0, -1)).any(axis=2) | (goals >= limits).any(axis=2)).any():
        index, which = np.argwhere(outside)[0]
        return "goal", f"of maze {index} is {goals[index, which].tolist()}, outside of {limits}"
    number = np.arange(len(maze))[:, None]
    if (walled := maze[number, goals[..., 0], goals[..., 1]] == 0).any():
        index, which = np.argwhere(walled)[0]
        return "goal", f"of maze {index}, {goals[index, which].tolist()}, is on a wall"
    return _fault_of_cost(cost, maze) or _fault_of_extent(extent, maze)


def _fault_of_cost(cost: np.ndarray | None, maze: np.ndarray) -> tuple[str, str] | None:
    if cost is None:
        return None
    if cost.shape != maze.shape or cost.dtype.kind not in "iuf":
        return "cost", f"is {cost.dtype} {cost.shape}, expected numbers {maze.shape}"
    if (place := impossible_cost(cost, maze)) is not None:
        return "cost", (
            f"of the free cell {place[1:]} of maze {place[0]} is {cost[place]:g}, expected "
            f"{LEAST_COST:g} to {MOST_COST:g}"
        )
    return None


def impossible_cost(cost: np.ndarray, maze: np.ndarray) -> tuple[int, ...] | None:
    """The index of the first free cell whose cost is out of bounds; None if there is none.

    Args:
      cost: numbers, of the shape of `maze`.
      maze: `[..., H, W]`, 1 = free, 0 = wall.
    """
    with np.errstate(over="ignore", under="ignore"):
        kept = cost.astype(np.float32)  # as data and models have it
    wrong = (maze != 0) & ~((kept >= LEAST_COST) & (kept <= MOST_COST))
    return tuple(np.argwhere(wrong)[0].tolist()) if wrong.any() else None


def _fault_of_extent(extent: np.ndarray | None, maze: np.ndarray) -> tuple[str, str] | None:
    if extent is None:
        return None
    if extent.shape != (len(maze), 2) or not np.issubdtype(extent.dtype, np.integer):
        return "extent", f"is {extent.dtype} {extent.shape}, expected integers {(len(maze), 2)}"
    if (wrong := ((extent < 1) | (extent > maze.shape[1:])).any(axis=1)).any():
        index = int(wrong.argmax())
        return "extent", (
            f"of maze {index} is {extent[index].tolist()}, expected 1 to {maze.shape[1:]}"
        )
    beyond = (maze != 0) & ~inside_of(extent, size=maze.shape[1:])
    if beyond.any():
        index = int(beyond.any(axis=(1, 2)).argmax())
        return "maze", f"{index} has free cells beyond its {extent[index].tolist()} rows, columns"
    return None


def action_sets(optimal: Any, *, num_actions: int) -> Any:
    """Sets of actions, unfolded from their bits.

    Args:
      optimal: uint8, uint16 or uint32 `[...]`, a numpy or JAX array; bit `a` is action `a`.
      num_actions: `A`.

    Returns:
      bool `[..., A]`, of the same kind.
    """
    bit = np.left_shift(1, np.arange(num_actions)).astype(optimal.dtype)
    return (optimal[..., None] & bit.reshape((1,) * optimal.ndim + (num_actions,))) != 0
