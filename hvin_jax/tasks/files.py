"""Files of mazes: our compact format, and the way in and out for both formats.

Both are `.npz` files that `np.load` opens.

The **compact** format, version 1, is a data set as it is in memory, with everything that `MazeData`
documents:

    format        the text "hvin_jax mazes"
    version       1
    mechanism     "diffdrive", "news" or "moore"
    seed          what the mazes were drawn from, -1 if unknown
    decimation    the lowest and highest probability of freeing a cell, nan if unknown
    families      of what families the maps are, such as "caves:2,rooms:1"; not there if unknown
    SPLIT_maze    uint8  [n, H, W]     1 = free, 0 = wall             SPLIT is train, valid and test
    SPLIT_goal    int32  [n, 3]        row, column, orientation
    SPLIT_label   uint8  [n, H, W, O]  the action to imitate
    SPLIT_optimal uint8  [n, H, W, O]  the set of all optimal actions, bit a = action a
    SPLIT_spl     uint16 [n, H, W, O]  shortest path length, 65535 = no path

Orientations are N, E, W, S (one, without meaning, in NEWS and Moore). Actions: diffdrive forward,
turn right, turn left; NEWS N, E, W, S; Moore N, E, W, S, NE, NW, SE, SW.

Labels, sets and path lengths are compared with the mazes' shortest paths when a file is read.

The **interchange** format is that of the baseline code, see `hvin_jax.tasks.interchange`.
"""

import os

import numpy as np

from hvin_jax.tasks import interchange
from hvin_jax.tasks._npz import NpzReader, write_npz
from hvin_jax.tasks.maze_data import ARRAYS, SPLITS, MazeData, MazeSplits, find_fault
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism
from hvin_jax.tasks.shortest_paths import count_states, shortest_paths, wrong_labels

FORMAT = "hvin_jax mazes"
VERSION = 1
DTYPES = {
    "maze": np.uint8,
    "goal": np.int32,
    "label": np.uint8,
    "optimal": np.uint8,
    "spl": np.uint16,
}


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
    arrays = {
        "format": np.array(FORMAT),
        "version": np.array(VERSION),
        "mechanism": np.array(mazes.mechanism.name),
        "seed": np.array(mazes.seed),
        "decimation": np.array(mazes.decimation),
    }
    if mazes.families:
        arrays["families"] = np.array(mazes.families)
    for split in SPLITS:
        data: MazeData = getattr(mazes, split)
        arrays |= {f"{split}_{name}": getattr(data, name) for name in ARRAYS}
    write_npz(path, arrays)


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
    if version != VERSION:
        raise reader.fail(
            "version", f"is {version!r}, but this hvin_jax reads version {VERSION}: update it"
        )
    name = _scalar(reader, "mechanism")
    if name not in MECHANISMS:
        raise reader.fail("mechanism", f"is {name!r}, expected one of {', '.join(MECHANISMS)}")
    seed = _scalar(reader, "seed")
    if not isinstance(seed, int):
        raise reader.fail("seed", f"is {seed!r}, expected an integer")
    decimation = reader.read("decimation")
    if decimation.shape != (2,) or decimation.dtype != np.float64:
        raise reader.fail("decimation", "is not a pair of float64 numbers")
    families = _scalar(reader, "families") if "families" in reader.names else ""
    if not isinstance(families, str):
        raise reader.fail("families", f"is {families!r}, expected a text")
    splits = {split: _load_split(reader, split, MECHANISMS[name]) for split in SPLITS}
    for split, data in splits.items():
        if data.size != splits["train"].size:
            raise reader.fail(
                f"{split}_maze", f"has maps of {data.size}, train_maze of {splits['train'].size}"
            )
    low, high = decimation.tolist()
    return MazeSplits(**splits, seed=seed, decimation=(low, high), families=families)


def _scalar(reader: NpzReader, name: str) -> object:
    shape, _ = reader.header(name)
    if shape != ():
        raise reader.fail(name, f"has shape {shape}, expected a single value")
    return reader.read(name).item()


def _load_split(reader: NpzReader, split: str, mechanism: Mechanism) -> MazeData:
    arrays: dict[str, np.ndarray] = {}
    for name, wanted in DTYPES.items():
        shape, dtype = reader.header(f"{split}_{name}")
        if dtype != wanted:
            raise reader.fail(f"{split}_{name}", f"is {dtype}, expected {np.dtype(wanted).name}")
        if name == "maze" and len(shape) != 3:
            raise reader.fail(f"{split}_maze", f"has shape {shape}, expected [n, H, W]")
        maps = arrays["maze"].shape if arrays else shape
        states = (*maps, mechanism.num_orientations)
        expected = {"maze": maps, "goal": (maps[0], 3)}.get(name, states)
        if shape != expected:
            raise reader.fail(f"{split}_{name}", f"has shape {shape}, expected {expected}")
        arrays[name] = reader.read(f"{split}_{name}")
    data = MazeData(mechanism=mechanism, **arrays)
    if fault := _fault(data):
        raise reader.fail(f"{split}_{fault[0]}", fault[1])
    return data


def _fault(data: MazeData) -> tuple[str, str] | None:
    """The first array that is not as it should be and the reason; None if all is well."""
    fault = find_fault(data.maze, data.goal, num_orientations=data.mechanism.num_orientations)
    if fault:
        return fault
    spl, optimal = shortest_paths(data.maze, data.goal, mechanism=data.mechanism)
    for name, found, right in (("spl", data.spl, spl), ("optimal", data.optimal, optimal)):
        if (wrong := found != right).any():
            return name, f"is not what the mazes' shortest paths give in {count_states(wrong)}"
    if (wrong := wrong_labels(data.label, optimal)).any():
        return "label", f"is not an optimal action in {count_states(wrong)}"
    return None
