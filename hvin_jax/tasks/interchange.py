"""The `.npz` format in which the baseline code publishes and reads mazes.

Nine float64 arrays: `arr_0`, `arr_1`, `arr_2` for training, `arr_3` … `arr_5` for validation,
`arr_6` … `arr_8` for testing. Of each three:

    mazes     [n, H, W]         1 = free, 0 = wall
    goal maps [n, O, H, W]      1 at the goal, 0 elsewhere
    policies  [n, A, O, H, W]   1 at one optimal action of each state, 0 at the others

Channels come first here and last in memory. Shortest paths and the sets of all optimal actions are
not in the file: they are computed when it is read.
"""

import math
import os
from collections.abc import Iterator

import numpy as np

from hvin_jax.tasks._npz import ArraySource, NpzReader, write_npz
from hvin_jax.tasks.maze_data import SPLITS, MazeData, MazeSplits
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism
from hvin_jax.tasks.shortest_paths import count_states, shortest_paths, wrong_labels

# Mazes that are converted at once: in float64 a whole data set takes gigabytes.
BLOCK = 512


def save(path: str | os.PathLike[str], mazes: MazeSplits) -> None:
    """Writes a data set in the interchange format.

    Args:
      path: where to.
      mazes: the data set.
    """
    if any(getattr(mazes, split).cost is not None for split in SPLITS):
        raise ValueError("the interchange format has no costs: use the compact one")
    arrays: dict[str, np.ndarray | ArraySource] = {}
    for split in SPLITS:
        data: MazeData = getattr(mazes, split)
        n, (height, width) = len(data), data.size
        orientations, actions = data.mechanism.num_orientations, data.mechanism.num_actions
        for shape, pieces in (
            ((n, height, width), _maze_pieces(data)),
            ((n, orientations, height, width), _goal_pieces(data)),
            ((n, actions, orientations, height, width), _policy_pieces(data)),
        ):
            arrays[f"arr_{len(arrays)}"] = ArraySource(shape, np.dtype(np.float64), pieces)
    write_npz(path, arrays)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))


def _maze_pieces(data: MazeData) -> Iterator[np.ndarray]:
    return (data.maze[block] for block in _blocks(len(data)))


def _goal_pieces(data: MazeData) -> Iterator[np.ndarray]:
    return (data[block].goal_maps().transpose(0, 3, 1, 2) for block in _blocks(len(data)))


def _policy_pieces(data: MazeData) -> Iterator[np.ndarray]:
    action = np.arange(data.mechanism.num_actions)[:, None, None, None]
    return (
        data.label[block].transpose(0, 3, 1, 2)[:, None] == action for block in _blocks(len(data))
    )


def load(reader: NpzReader, *, mechanism: Mechanism | None = None) -> MazeSplits:
    """Reads a data set in the interchange format.

    Args:
      reader: the open file.
      mechanism: how the agent moves; by default the known one with as many actions and
        orientations.

    Returns:
      The data set; its seed and decimation are unknown.
    """
    splits: list[MazeData] = []
    for index in range(len(SPLITS)):
        names = [f"arr_{3 * index + part}" for part in range(3)]
        maze, goals, policies = _read(reader, names)
        if mechanism is None:
            mechanism = _guess(reader, names[2], policies.shape)
        actions, orientations = mechanism.num_actions, mechanism.num_orientations
        if policies.shape[1:3] != (actions, orientations):
            raise reader.fail(
                names[2],
                f"has {policies.shape[1]} actions and {policies.shape[2]} orientations, but "
                f"{mechanism.name} has {actions} and {orientations}",
            )
        if goals.shape[1] != orientations:
            raise reader.fail(
                names[1],
                f"has {goals.shape[1]} orientations, but {mechanism.name} has {orientations}",
            )
        if splits and maze.shape[1:] != splits[0].size:
            raise reader.fail(names[0], f"has maps of {maze.shape[1:]}, arr_0 of {splits[0].size}")
        splits.append(_label(reader, names, maze, goals, policies, mechanism))
    train, valid, test = splits
    return MazeSplits(train=train, valid=valid, test=test)


def _read(reader: NpzReader, names: list[str]) -> list[np.ndarray]:
    """The mazes, goal maps and policies of a split, their shapes and values checked."""
    arrays: list[np.ndarray] = []
    for name, axes in zip(names, ("[n, H, W]", "[n, O, H, W]", "[n, A, O, H, W]"), strict=True):
        shape, dtype = reader.header(name)
        if len(shape) != 1 + axes.count(","):
            raise reader.fail(name, f"has shape {shape}, expected {axes}")
        if dtype.kind not in "biuf":
            raise reader.fail(name, f"is {dtype}, expected numbers")
        array = reader.read(name)
        arrays.append(array)
        n, height, width = arrays[0].shape
        if array.shape[0] != n or array.shape[-2:] != (height, width):
            raise reader.fail(
                name,
                f"has shape {array.shape}, expected {axes} with {n}, {height}, {width} as in "
                f"{names[0]}",
            )
        for block in _blocks(n):
            if not ((array[block] == 0) | (array[block] == 1)).all():
                raise reader.fail(name, "has values other than 0 and 1")
    return arrays


def guess_mechanism(reader: NpzReader) -> Mechanism:
    """The known mechanism with as many actions and orientations as a file has."""
    shape, _ = reader.header("arr_2")
    return _guess(reader, "arr_2", (*shape, 0, 0, 0))


def _guess(reader: NpzReader, name: str, shape: tuple[int, ...]) -> Mechanism:
    for mechanism in MECHANISMS.values():
        if shape[1:3] == (mechanism.num_actions, mechanism.num_orientations):
            return mechanism
    raise reader.fail(
        name,
        f"has {shape[1]} actions and {shape[2]} orientations, like none of "
        f"{', '.join(MECHANISMS)}; pass the mechanism",
    )


def _label(
    reader: NpzReader,
    names: list[str],
    maze: np.ndarray,
    goals: np.ndarray,
    policies: np.ndarray,
    mechanism: Mechanism,
) -> MazeData:
    """A split of the file as `MazeData`."""
    n = len(maze)
    per_maze = goals.reshape(n, math.prod(goals.shape[1:]))
    if (wrong := np.count_nonzero(per_maze, axis=1) != 1).any():
        index = int(wrong.argmax())
        raise reader.fail(
            names[1], f"has {np.count_nonzero(per_maze[index])} goals in maze {index}, expected one"
        )
    orientation, row, column = np.unravel_index(per_maze.argmax(axis=1), goals.shape[1:])
    goal = np.stack([row, column, orientation], axis=1).astype(np.int32)
    free = maze[np.arange(n), row, column] == 1
    if not free.all():
        index = int((~free).argmax())
        raise reader.fail(
            names[1], f"has the goal of maze {index}, {goal[index].tolist()}, on a wall"
        )
    label = np.empty((n, *maze.shape[1:], mechanism.num_orientations), dtype=np.uint8)
    for block in _blocks(n):
        if (policies[block].sum(axis=1) != 1).any():
            raise reader.fail(names[2], "has states with no action or several, expected one each")
        label[block] = policies[block].argmax(axis=1).transpose(0, 2, 3, 1)
    maze = maze.astype(np.uint8)
    spl, optimal = shortest_paths(maze, goal, mechanism=mechanism)
    if (wrong := wrong_labels(label, optimal)).any():
        raise reader.fail(
            names[2],
            f"has an action that is not optimal in {mechanism.name} in {count_states(wrong)}",
        )
    return MazeData(
        mechanism=mechanism, maze=maze, goal=goal, label=label, optimal=optimal, spl=spl
    )
