"""Files of mazes: our compact format, and the way in and out for both formats.

Both are `.npz` files that `np.load` opens.

The **compact** format is a data set as it is in memory, with everything that `MazeData` documents:

    format        the text "hvin_jax mazes"
    version       1; 2 if the file has anything that is marked with * below
    mechanism     "diffdrive", "news" or "moore"; * or a mechanism of your own as JSON
    seed          what the mazes were drawn from, -1 if unknown
    decimation    the lowest and highest probability of freeing a cell, nan if unknown
    families      of what families the maps are, such as "caves:2,rooms:1"; not there if unknown
    SPLIT_maze    uint8  [n, H, W]     1 = free, 0 = wall             SPLIT is train, valid and test
    SPLIT_goal    int32  [n, 3]        row, column, orientation; * -1 = any; * [n, K, 3]
    SPLIT_label   uint8  [n, H, W, O]  the action to imitate
    SPLIT_optimal uint8  [n, H, W, O]  the set of all optimal actions, bit a = action a; * uint16
                                       or uint32 for more than 8 or 16 actions
    SPLIT_spl     uint16 [n, H, W, O]  shortest path length, 65535 = no path
  * SPLIT_cost    float32 [n, H, W]    what entering a cell costs, inf at walls
  * SPLIT_distance float32 [n, H, W, O] the cost of a cheapest path, inf = no path
  * SPLIT_extent  int32  [n, 2]        rows and columns of each map, in the upper left corner

Orientations are N, E, W, S (one, without meaning, in NEWS and Moore). Actions: diffdrive forward,
turn right, turn left; NEWS N, E, W, S; Moore N, E, W, S, NE, NW, SE, SW.

Labels, sets and path lengths are compared with the mazes' shortest paths when a file is read.

The **interchange** format is that of the baseline code, see `hvin_jax.tasks.interchange`.
"""

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hvin_jax.tasks import interchange
from hvin_jax.tasks._npz import NpzReader, write_npz
from hvin_jax.tasks.cheapest_paths import TOLERANCE, cheapest_paths
from hvin_jax.tasks.maze_data import ARRAYS, OPTIONAL, SPLITS, MazeData, MazeSplits, find_fault
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism
from hvin_jax.tasks.shortest_paths import count_states, shortest_paths, wrong_labels

FORMAT = "hvin_jax mazes"
VERSION = 2


def save_mazes(
    path: str | os.PathLike[str], mazes: MazeSplits, *, file_format: str = "compact"
) -> None:
    """Writes a data set; the file appears when it is complete.

    Args:
      path: where to, by custom `*.npz`.
      mazes: the data set.
      file_format: "compact" is ours, "npz" the interchange format, which has no SPL and no seed.
    """
    if file_format == "npz":
        interchange.save(path, mazes)
        return
    if file_format != "compact":
        raise ValueError(f"file_format is {file_format!r}, expected 'compact' or 'npz'")
    mechanism = mazes.mechanism.to_json()
    arrays = {
        "format": np.array(FORMAT),
        "version": np.array(_version(mazes)),
        "mechanism": np.array(mechanism if isinstance(mechanism, str) else json.dumps(mechanism)),
        "seed": np.array(mazes.seed),
        "decimation": np.array(mazes.decimation),
    }
    if mazes.families:
        arrays["families"] = np.array(mazes.families)
    for split in SPLITS:
        data: MazeData = getattr(mazes, split)
        arrays |= {f"{split}_{name}": array for name, array in data.arrays().items()}
    write_npz(path, arrays)


def _version(mazes: MazeSplits) -> int:
    """The first one that could read them."""
    parts = [getattr(mazes, split) for split in SPLITS]
    plain = mazes.mechanism in MECHANISMS.values() and all(
        data.arrays().keys() == set(ARRAYS) and data.goal.ndim == 2 and (data.goal >= 0).all()
        for data in parts
    )
    return 1 if plain else VERSION


def load_mazes(path: str | os.PathLike[str], *, mechanism: Mechanism | None = None) -> MazeSplits:
    """Reads and checks a data set in either format.

    Args:
      path: the file.
      mechanism: how the agent moves; needed only for interchange files of a mechanism of your own.

    Returns:
      The data set.

    Raises:
      MazeFileError: the file is not a sound data set; the message names the array and the reason.
    """
    with NpzReader(path) as reader:
        if "arr_0" in reader.names:
            return interchange.load(reader, mechanism=mechanism)
        return _load_compact(reader)


def _load_compact(reader: NpzReader) -> MazeSplits:
    found = _scalar(reader, "format")
    if found != FORMAT:
        raise reader.fail("format", f"is {found!r}, expected {FORMAT!r}")
    version = _scalar(reader, "version")
    if version not in range(1, VERSION + 1):
        raise reader.fail(
            "version", f"is {version!r}, but this hvin_jax reads up to {VERSION}: update it"
        )
    mechanism = _mechanism(reader)
    seed = _scalar(reader, "seed")
    if not isinstance(seed, int):
        raise reader.fail("seed", f"is {seed!r}, expected an integer")
    decimation = reader.read("decimation")
    if decimation.shape != (2,) or decimation.dtype != np.float64:
        raise reader.fail("decimation", "is not a pair of float64 numbers")
    families = _scalar(reader, "families") if "families" in reader.names else ""
    if not isinstance(families, str):
        raise reader.fail("families", f"is {families!r}, expected a text")
    splits = {split: _load_split(reader, split, mechanism) for split in SPLITS}
    for split, data in splits.items():
        if data.size != splits["train"].size:
            raise reader.fail(
                f"{split}_maze", f"has maps of {data.size}, train_maze of {splits['train'].size}"
            )
    low, high = decimation.tolist()
    return MazeSplits(**splits, seed=seed, decimation=(low, high), families=families)


class FileKind(NamedTuple):
    """What the mazes of a file are.

    Attributes:
      mechanism: how the agent moves.
      has_costs: whether cells have costs.
      counts: how many there are of each split.
      size: (rows, columns) of their arrays.
    """

    mechanism: Mechanism
    has_costs: bool
    counts: dict[str, int]
    size: tuple[int, int]


def read_kind(path: str | os.PathLike[str]) -> FileKind:
    """What the mazes of a file are; they themselves are not read."""
    with NpzReader(path) as reader:
        exchanged = "arr_0" in reader.names
        mechanism = interchange.guess_mechanism(reader) if exchanged else _mechanism(reader)
        mazes = [f"arr_{3 * k}" if exchanged else f"{SPLITS[k]}_maze" for k in range(len(SPLITS))]
        shapes = [reader.header(name)[0] for name in mazes]
        if wrong := [name for name, shape in zip(mazes, shapes, strict=True) if len(shape) != 3]:
            raise reader.fail(wrong[0], "is no array of maps [n, H, W]")
        counts = {split: shape[0] for split, shape in zip(SPLITS, shapes, strict=True)}
        height, width = shapes[0][1:]
        return FileKind(mechanism, "train_cost" in reader.names, counts, (height, width))


def _mechanism(reader: NpzReader) -> Mechanism:
    text = _scalar(reader, "mechanism")
    try:
        if not isinstance(text, str):
            raise ValueError(f"it is {text!r}, expected a text")
        return Mechanism.from_json(json.loads(text) if text.startswith("{") else text)
    except (ValueError, RecursionError) as error:
        raise reader.fail("mechanism", f"is no mechanism: {error}") from error


def _scalar(reader: NpzReader, name: str) -> object:
    shape, _ = reader.header(name)
    if shape != ():
        raise reader.fail(name, f"has shape {shape}, expected a single value")
    return reader.read(name).item()


def _load_split(reader: NpzReader, split: str, mechanism: Mechanism) -> MazeData:
    dtypes: dict[str, Any] = {
        "maze": np.uint8,
        "goal": np.int32,
        "label": np.uint8,
        "optimal": mechanism.set_dtype,
        "spl": np.uint16,
        "cost": np.float32,
        "distance": np.float32,
        "extent": np.int32,
    }
    arrays: dict[str, np.ndarray] = {}
    present = [x for x in OPTIONAL if f"{split}_{x}" in reader.names]
    for name in (*ARRAYS, *present):
        shape, dtype = reader.header(f"{split}_{name}")
        if dtype != dtypes[name]:
            wanted = np.dtype(dtypes[name]).name
            raise reader.fail(f"{split}_{name}", f"is {dtype}, expected {wanted}")
        if name == "maze" and len(shape) != 3:
            raise reader.fail(f"{split}_maze", f"has shape {shape}, expected [n, H, W]")
        maps = arrays["maze"].shape if arrays else shape
        goal = (maps[0], *shape[1:-1], 3) if len(shape) in (2, 3) else (maps[0], 3)
        known = {"maze": maps, "cost": maps, "goal": goal, "extent": (maps[0], 2)}
        expected = known.get(name, (*maps, mechanism.num_orientations))
        if shape != expected:
            raise reader.fail(f"{split}_{name}", f"has shape {shape}, expected {expected}")
        arrays[name] = reader.read(f"{split}_{name}")
    if ("cost" in arrays) != ("distance" in arrays):
        missing = {"cost", "distance"}.difference(arrays).pop()
        raise reader.fail(f"{split}_{missing}", "is missing: a cost goes with distances")
    data = MazeData(mechanism=mechanism, **arrays)
    if fault := _fault(data):
        raise reader.fail(f"{split}_{fault[0]}", fault[1])
    return data


def _fault(data: MazeData) -> tuple[str, str] | None:
    """The first array that is not as it should be and the reason; None if all is well."""
    fault = find_fault(
        data.maze,
        data.goal,
        num_orientations=data.mechanism.num_orientations,
        cost=data.cost,
        extent=data.extent,
    )
    if fault:
        return fault
    for name, wrong in _differences(data):
        if wrong.any():
            return name, f"is not what the mazes' shortest paths give in {count_states(wrong)}"
    if (wrong := wrong_labels(data.label, data.optimal)).any():
        return "label", f"is not an optimal action in {count_states(wrong)}"
    return None


def _differences(data: MazeData) -> Iterator[tuple[str, np.ndarray]]:
    """Where arrays are not what follows from the mazes."""
    if data.cost is None:
        spl, optimal = shortest_paths(data.maze, data.goal, mechanism=data.mechanism)
    else:
        distance, spl, optimal = cheapest_paths(
            data.maze, data.goal, data.cost, mechanism=data.mechanism
        )
        assert data.distance is not None
        same = np.isclose(data.distance, distance, rtol=TOLERANCE, atol=0)
        yield "distance", ~same
    yield "spl", data.spl != spl
    yield "optimal", data.optimal != optimal
