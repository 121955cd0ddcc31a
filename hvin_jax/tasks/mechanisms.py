"""How an agent moves through a maze: one description per mechanism.

Letters used in all of `hvin_jax.tasks`: `n` mazes, `H` rows, `W` columns, `O` orientations, `A`
actions. A state is (row, column, orientation); flattened, it is the index `(row · W + column) · O +
orientation` of `S = H · W · O`.

A mechanism of your own is a `Mechanism` made by hand: everything in this package reads its tables,
and files of mazes and planners keep it (`to_json`, `from_json`). Those of `MECHANISMS` have a name
in flags and files, too.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Iterable
from typing import Any, Literal

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
# Sets of actions are stored in the bits of an integer.
MAX_ACTIONS = 32
# Cells that a move may span.
MAX_REACH = 16


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """The motion of an agent on a grid.

    On any map, a move that would leave the map changes nothing at all.

    Attributes:
      name: how files and flags call it.
      orientations: a name for each of the `O` orientations.
      actions: a name for each of the `A` actions.
      moves: `[O][A]` triples (rows, columns, new orientation): where an action leads if no wall
        interferes, by at most `MAX_REACH` cells in each direction.
      walls: "trap": a move from a free cell into a wall cell enters it, and no action leaves a wall
        cell. "block": a move whose target is a wall cell changes nothing; a move out of a wall cell
        is not hindered.
      between: what counts of the cells between the two ends of a move of several cells. "jump":
        nothing. "stop": the agent goes straight, in steps of the smallest whole numbers (three
        cells to the east are three steps, a knight's move is one), and stops before the first step
        that walls or the edge of the map prevent, or in the wall if walls are traps; if that is the
        first step, nothing changes.
    """

    name: str
    orientations: tuple[str, ...]
    actions: tuple[str, ...]
    moves: tuple[tuple[tuple[int, int, int], ...], ...]
    walls: Literal["trap", "block"]
    between: Literal["jump", "stop"] = "jump"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a mechanism's name is {self.name!r}, expected a word")
        who = f"mechanism {self.name!r}"
        for field in ("orientations", "actions"):
            names = getattr(self, field)
            sequence = isinstance(names, Iterable) and not isinstance(names, str)
            if not sequence or not all(isinstance(x, str) for x in names):
                raise ValueError(f"{who}: {field} is {names!r}, expected a sequence of names")
            object.__setattr__(self, field, tuple(names))
            if len(set(names)) < len(names):
                raise ValueError(f"{who}: two {field} have one name: {', '.join(names)}")
        if not self.orientations:
            raise ValueError(f"{who} has no orientation; one that does not turn has one")
        if not 1 <= self.num_actions <= MAX_ACTIONS:
            raise ValueError(
                f"{who} has {self.num_actions} actions, but sets of actions are stored in the bits "
                f"of an integer: 1 to {MAX_ACTIONS} are possible"
            )
        table = _whole_numbers(self.moves)
        shape = (self.num_orientations, self.num_actions, 3)
        if table is None or table.shape != shape:
            found = (
                "are no table of whole numbers" if table is None else f"have shape {table.shape}"
            )
            raise ValueError(
                f"{who}: moves {found}, expected {shape}: for each of {shape[0]} orientations and "
                f"each of {shape[1]} actions, three whole numbers (rows, columns, new orientation)"
            )
        if (farthest := max(map(abs, table[..., :2].ravel().tolist()))) > MAX_REACH:
            raise ValueError(
                f"{who}: a move spans {farthest} cells, expected at most {MAX_REACH} in each "
                "direction"
            )
        if not np.isin(table[..., 2], range(self.num_orientations)).all():
            raise ValueError(f"{who}: a move leads to an unknown orientation")
        # Tuples, whatever they were given as: a mechanism is hashed and compared.
        moves = tuple(tuple(map(tuple, of_actions)) for of_actions in table.tolist())
        object.__setattr__(self, "moves", moves)
        for field, options in (("walls", ("trap", "block")), ("between", ("jump", "stop"))):
            if getattr(self, field) not in options:
                raise ValueError(
                    f"{who}: {field} is {getattr(self, field)!r}, expected "
                    f"{' or '.join(map(repr, options))}"
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

    @property
    def reach(self) -> int:
        """How many cells the farthest move spans in a direction."""
        return int(np.abs(self.table[..., :2]).max())

    @property
    def set_dtype(self) -> np.dtype:
        """The type of sets of actions, bit `a` of which is action `a`: as small as will do."""
        bits = next(bits for bits in (8, 16, 32) if self.num_actions <= bits)
        return np.dtype(f"uint{bits}")

    def steps_of(self, orientation: int, action: int) -> list[tuple[int, int]]:
        """The (rows, columns) of each step of a move; of one that stays in its cell, none."""
        rows, columns, _ = self.moves[orientation][action]
        count = math.gcd(rows, columns) if self.between == "stop" else int(bool(rows or columns))
        return [(rows // count, columns // count)] * count if count else []

    def to_json(self) -> Any:
        """What files keep: the name of one of `MECHANISMS`, or all there is to know."""
        return self.name if MECHANISMS.get(self.name) == self else dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> "Mechanism":
        """The mechanism that `to_json` was called on; anything else is an error in one sentence."""
        if isinstance(content, str):
            return get_mechanism(content)
        names = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(content, dict) or not set(content) <= names:
            raise ValueError(
                f"the mechanism is {json.dumps(content)[:80]}, expected a name or an object with "
                f"{', '.join(sorted(names))}"
            )
        try:
            return cls(**content)
        except TypeError as error:
            raise ValueError(f"the mechanism lacks something: {error}") from error


def _whole_numbers(moves: Any) -> np.ndarray | None:
    """An array of whole numbers; None for what is none."""
    try:
        table = np.array(moves)
    except ValueError:  # rows of different length
        return None
    return table if np.issubdtype(table.dtype, np.integer) else None


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
    if mechanism.between == "stop" and mechanism.reach > 1:
        return _glide(maze, state, action, mechanism)
    n, height, width = maze.shape
    table = open_map_successors(mechanism, height, width)
    target = table.ravel()[state * mechanism.num_actions + action]
    deciding = state if mechanism.walls == "trap" else target
    cell = np.arange(n)[:, None] * (height * width) + deciding // mechanism.num_orientations
    return np.where(maze.ravel()[cell] != 0, target, state)


def _glide(
    maze: np.ndarray, state: np.ndarray, action: np.ndarray, mechanism: Mechanism
) -> np.ndarray:
    """`step` of agents that stop on their way."""
    n, height, width = maze.shape
    cell, orientation = np.divmod(np.broadcast_to(state, action.shape), mechanism.num_orientations)
    row, column = np.divmod(cell, width)
    move = mechanism.table.astype(np.int64)[orientation, action]
    count = np.gcd(move[..., 0], move[..., 1])
    unit = move[..., :2] // np.maximum(count, 1)[..., None]
    index, traps = np.arange(n)[:, None], mechanism.walls == "trap"
    going = maze[index, row, column] != 0 if traps else np.ones(action.shape, bool)
    changed = going & (count == 0)
    for done in range(mechanism.reach):
        new_row, new_column = row + unit[..., 0], column + unit[..., 1]
        inside = (new_row >= 0) & (new_row < height) & (new_column >= 0) & (new_column < width)
        free = maze[index, new_row.clip(0, height - 1), new_column.clip(0, width - 1)] != 0
        enters = going & (count > done) & inside & (free | traps)
        row, column = np.where(enters, new_row, row), np.where(enters, new_column, column)
        changed |= enters
        going = enters & free
    facing = np.where(changed, move[..., 2], orientation)
    return (row * width + column) * mechanism.num_orientations + facing


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
