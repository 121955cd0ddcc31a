"""A map of your own: what it is, and one from an array."""

import dataclasses

import numpy as np

Cell = tuple[int, int]
# A map of 4096×4096: planning on it takes tens of gigabytes.
MOST_CELLS = 2**24


@dataclasses.dataclass(frozen=True)
class OwnMap:
    """A map and, if known, where to start and where to go.

    Attributes:
      maze: uint8 `[H, W]`, 1 = free, 0 = wall.
      start: (row, column) or None.
      goal: (row, column) or None; of several, the first.
      cost: float32 `[H, W]`, what it costs to enter each cell; None: everywhere the same.
      goals: (row, column) of all goals.
      name: what errors call it, such as its file; "" if it has none.
    """

    maze: np.ndarray
    start: Cell | None = None
    goal: Cell | None = None
    cost: np.ndarray | None = None
    goals: tuple[Cell, ...] = ()
    name: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.maze.dtype.kind not in "biuf":
            raise ValueError(f"the map is of type {self.maze.dtype}, expected numbers 0 and 1")
        if self.maze.ndim != 2 or self.maze.size == 0:
            raise ValueError(f"the map has shape {self.maze.shape}, expected [H, W]")
        if not ((self.maze == 0) | (self.maze == 1)).all():
            raise ValueError("the map has values other than 0 (wall) and 1 (free)")
        height, width = self.maze.shape
        if self.goal is not None and not self.goals:
            object.__setattr__(self, "goals", (self.goal,))
        for name, cell in (("start", self.start), *(("goal", x) for x in self.goals)):
            if cell is None:
                continue
            row, column = cell
            if not (0 <= row < height and 0 <= column < width):
                raise ValueError(f"the {name} {cell} is outside of the {height}×{width} map")
            if not self.maze[row, column]:
                raise ValueError(f"the {name} {cell} is on a wall")


def from_array(array: np.ndarray, *, start: Cell | None = None, goal: Cell | None = None) -> OwnMap:
    """A map from an array `[H, W]` of any numeric type, 1 = free, 0 = wall."""
    checked = OwnMap(np.asarray(array), start, goal)
    return dataclasses.replace(checked, maze=checked.maze.astype(np.uint8))


def check_cells(count: int, what: str) -> None:
    """Raises for what is no map that can be read."""
    if count > MOST_CELLS:
        raise ValueError(f"{what} has more than {MOST_CELLS:,} cells, the most that can be read")
