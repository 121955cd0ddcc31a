"""How an agent moves through a maze: one description per mechanism.

Letters used in all of `hvin_jax.tasks`: `n` mazes, `H` rows, `W` columns, `O` orientations, `A`
actions. A state is (row, column, orientation); flattened, it is the index `(row · W + column) · O +
orientation` of `S = H · W · O`.

To add a mechanism, add one entry to `MECHANISMS`: everything else in this package reads its tables.
"""

import dataclasses
import functools
from typing import Literal

import numpy as np

# Rows grow to the south, columns to the east.
COMPASS = {
    "N": (-1, 0),
    "E": (0, 1),
    "W": (0, -1),
    "S": (1, 0),
    "NE": (-1, 1),
    "NW": (-1, -1),
    "SE": (1, 1),
    "SW": (1, -1),
}
MAX_ACTIONS = 8


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """The motion of an agent on a grid.

    On any map, a move that would leave the map changes nothing at all.

    Attributes:
      name: how files and flags call it.
      orientations: a name for each of the `O` orientations.
      actions: a name for each of the `A` actions.
      moves: `[O][A]` triples (rows, columns, new orientation): where an action leads if no wall
        interferes. At most one cell in each direction.
      walls: "trap": a move from a free cell into a wall cell enters it, and no action leaves a wall
        cell. "block": a move whose target is a wall cell changes nothing; a move out of a wall cell
        is not hindered.
    """

    name: str
    orientations: tuple[str, ...]
    actions: tuple[str, ...]
    moves: tuple[tuple[tuple[int, int, int], ...], ...]
    walls: Literal["trap", "block"]

    def __post_init__(self) -> None:
        shape = (self.num_orientations, self.num_actions, 3)
        if not 1 <= self.num_actions <= MAX_ACTIONS:
            raise ValueError(
                f"mechanism {self.name!r} has {self.num_actions} actions, but sets of actions are "
                f"stored in the bits of a byte: 1 to {MAX_ACTIONS} are possible"
            )
        if self.table.shape != shape:
            raise ValueError(
                f"mechanism {self.name!r}: moves have shape {self.table.shape}, expected {shape} "
                "from the names of orientations and actions"
            )
        if np.abs(self.table[..., :2]).max() > 1:
            raise ValueError(f"mechanism {self.name!r}: a move spans more than one cell")
        if not np.isin(self.table[..., 2], range(self.num_orientations)).all():
            raise ValueError(f"mechanism {self.name!r}: a move leads to an unknown orientation")
        if self.walls not in ("trap", "block"):
            raise ValueError(
                f"mechanism {self.name!r}: walls is {self.walls!r}, expected 'trap' or 'block'"
            )

    @property
    def num_orientations(self) -> int:
        """`O`."""
        return len(self.orientations)

    @property
    def num_actions(self) -> int:
        """`A`."""
        return len(self.actions)

    @property
    def table(self) -> np.ndarray:
        """`moves` as an int array `[O, A, 3]`."""
        return np.array(self.moves, dtype=np.int8)


def _compass_moves(actions: tuple[str, ...]) -> tuple[tuple[tuple[int, int, int], ...], ...]:
    return (tuple((*COMPASS[action], 0) for action in actions),)


MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(
            name="diffdrive",
            orientations=("N", "E", "W", "S"),
            actions=("forward", "turn right", "turn left"),
            moves=tuple(
                ((*COMPASS[facing], index), (0, 0, right), (0, 0, left))
                for index, (facing, right, left) in enumerate(
                    [("N", 1, 2), ("E", 3, 0), ("W", 0, 3), ("S", 2, 1)]
                )
            ),
            walls="trap",
        ),
        Mechanism(
            name="news",
            orientations=("-",),
            actions=("N", "E", "W", "S"),
            moves=_compass_moves(("N", "E", "W", "S")),
            walls="block",
        ),
        Mechanism(
            name="moore",
            orientations=("-",),
            actions=("N", "E", "W", "S", "NE", "NW", "SE", "SW"),
            moves=_compass_moves(("N", "E", "W", "S", "NE", "NW", "SE", "SW")),
            walls="block",
        ),
    )
}


def get_mechanism(mechanism: str | Mechanism) -> Mechanism:
    """The mechanism of that name; a `Mechanism` is returned as it is."""
    if isinstance(mechanism, Mechanism):
        return mechanism
    if mechanism not in MECHANISMS:
        raise ValueError(
            f"unknown mechanism {mechanism!r}: expected one of {', '.join(sorted(MECHANISMS))}"
        )
    return MECHANISMS[mechanism]


@functools.lru_cache(maxsize=32)
def open_map_successors(mechanism: Mechanism, height: int, width: int) -> np.ndarray:
    """Where each action leads on a map without walls: flat states, int64 `[S, A]` (read-only)."""
    row, column, orientation = np.meshgrid(
        np.arange(height), np.arange(width), np.arange(mechanism.num_orientations), indexing="ij"
    )
    table = mechanism.table.astype(np.int64)[orientation]  # [H, W, O, A, 3]
    new_row = row[..., None] + table[..., 0]
    new_column = column[..., None] + table[..., 1]
    outside = (new_row < 0) | (new_row >= height) | (new_column < 0) | (new_column >= width)
    target = (new_row * width + new_column) * mechanism.num_orientations + table[..., 2]
    itself = (row * width + column) * mechanism.num_orientations + orientation
    result = np.where(outside, itself[..., None], target).reshape(-1, mechanism.num_actions)
    result.flags.writeable = False
    return result


def step(
    maze: np.ndarray, state: np.ndarray, action: np.ndarray, *, mechanism: Mechanism
) -> np.ndarray:
    """The states that actions lead to, walls and the edge of the map included.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      state: int64 `[n, k]`, flat states; or `[1, k]`, the same for every maze.
      action: int `[n, k]`, what is done in each of these states.
      mechanism: how the agent moves.

    Returns:
      int64 `[n, k]`: flat states.
    """
    n, height, width = maze.shape
    table = open_map_successors(mechanism, height, width)
    target = table.ravel()[state * mechanism.num_actions + action]
    deciding = state if mechanism.walls == "trap" else target
    cell = np.arange(n)[:, None] * (height * width) + deciding // mechanism.num_orientations
    return np.where(maze.ravel()[cell] != 0, target, state)


def transition_table(maze: np.ndarray, *, mechanism: Mechanism) -> np.ndarray:
    """Where every action leads from every state, walls included: int64 `[n, S, A]`, flat states.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      mechanism: how the agent moves.
    """
    n, height, width = maze.shape
    state = np.arange(height * width * mechanism.num_orientations)[None]
    columns = [
        step(maze, state, np.full((n, state.size), action), mechanism=mechanism)
        for action in range(mechanism.num_actions)
    ]
    return np.stack(columns, axis=-1)
