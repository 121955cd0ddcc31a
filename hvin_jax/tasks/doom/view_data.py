"""Data sets of mazes and their views: a folder that grows shard by shard.

    mazes.npz         the mazes with their goals and labels, see `hvin_jax.tasks.files`
    views.json        what this is, and the shards that are complete; checksums of them and itself
    views-00000.npz   the views of the first mazes, and so on

The mazes are numbered through: first those to train on, then valid, then test. A shard has

    columns  uint8  [c, 24, 3]     columns of pictures that no shard before it has
    views    uint32 [u, 32]        views that no shard before it has: 32 columns from left to right
    index    uint32 [k, H, W, 4]   for each of its mazes, cell and direction (N, E, W, S), a view

where columns and views are counted over all shards. The bytes depend on the mazes, the seed of the
looks and the engine alone, not on the number of workers or on interruptions.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import numpy as np

from hvin_jax._files import is_unfinished, read_json, write_json
from hvin_jax._locks import held
from hvin_jax._private import private_folder
from hvin_jax.tasks._npz import MazeFileError, NpzReader, write_npz
from hvin_jax.tasks.doom._compaction import COLUMN_SHAPE, COLUMNS, CompactViews, Tables, expand
from hvin_jax.tasks.doom.engine import load_vizdoom
from hvin_jax.tasks.doom.levels import LOOKS, Look, draw_looks
from hvin_jax.tasks.doom.rendering import render_mazes
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.maze_data import SPLITS, MazeSplits

FORMAT, VERSION = "hvin_jax views", 1
MAZES, MANIFEST, _LOCK = "mazes.npz", "views.json", ".lock"
# Mazes in a shard: what is lost when a run is killed.
SHARD = 250


class IncompleteError(MazeFileError):
    """A data set that is not there, or not all of it."""


@dataclasses.dataclass(frozen=True)
class ViewData:
    """Mazes with the views from each of their cells.

    Attributes:
      mazes: the mazes, in splits.
      columns: uint8 `[C, 24, 3]`, the distinct columns of all pictures.
      views: uint32 `[U, 32]`, the distinct views as columns from left to right.
      index: for each split, uint32 `[n, H, W, 4]`: a view for each cell and direction.
      looks: what each maze is dressed in, in the order train, valid, test.
    """

    mazes: MazeSplits
    columns: np.ndarray
    views: np.ndarray
    index: dict[str, np.ndarray]
    looks: list[Look]

    def pictures(self, numbers: np.ndarray) -> np.ndarray:
        """Pictures uint8 `[..., 24, 32, 3]` of views that are given by number `[...]`."""
        return expand(self.columns, self.views[numbers])

    def look(self, split: str, number: int) -> Look:
        """What a maze of a split is dressed in."""
        before = SPLITS[: SPLITS.index(split)]
        return self.looks[sum(len(self.index[name]) for name in before) + number]


def make_view_data(
    folder: str | os.PathLike[str],
    make_mazes: Callable[[], MazeSplits],
    *,
    settings: dict[str, Any],
    seed: int,
    workers: int = 1,
    shard: int = SHARD,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Makes a data set, or goes on where an earlier call was interrupted.

    Args:
      folder: where to.
      make_mazes: makes the mazes, if they are not there yet.
      settings: what they are made from, for the record: a folder with others is refused.
      seed: of the levels' looks.
      workers: number of engines side by side.
      shard: mazes in a shard.
      progress: is called with the number of mazes whenever some are ready.
    """
    load_vizdoom()
    private_folder()  # where engines will work: fails now rather than after the mazes are made
    folder = pathlib.Path(folder)
    what = {
        "format": FORMAT,
        "version": VERSION,
        "mazes": settings,
        "seed": seed,
        "shard": shard,
        "looks": [dataclasses.astuple(look) for look in LOOKS],
        "engine": f"vizdoom {metadata.version('vizdoom')}",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        _make(folder, make_mazes, what, workers, progress)


def _make(
    folder: pathlib.Path,
    make_mazes: Callable[[], MazeSplits],
    what: dict[str, Any],
    workers: int,
    progress: Callable[[int], object] | None,
) -> None:
    shards = _claim(folder, what)
    if not (folder / MAZES).exists():
        save_mazes(folder / MAZES, make_mazes())
    mazes = load_mazes(folder / MAZES)
    maps = np.concatenate([getattr(mazes, split).maze for split in SPLITS])
    looks = draw_looks(what["seed"], len(maps))
    tables = Tables()
    first = 0
    for entry in shards:
        tables.restore(*_read_shard(folder, entry)[:2])
        first += entry["mazes"]
        if progress is not None:
            progress(entry["mazes"])
    parts: list[CompactViews] = []
    rendered = render_mazes(list(maps[first:]), looks[first:], workers=workers)
    for number, maze in enumerate(rendered, first + 1):
        parts.append(tables.add(maze))
        if len(parts) == what["shard"] or number == len(maps):
            shards.append(_write_shard(folder, len(shards), parts))
            _write_manifest(folder, {**what, "total": len(maps), "shards": shards})
            parts = []
        if progress is not None:
            progress(1)


def load_view_data(folder: str | os.PathLike[str]) -> ViewData:
    """Reads a data set and checks it against its checksums.

    Raises:
      IncompleteError: the data set is not there, or not all of it.
      MazeFileError: something is missing or damaged; the message says what.
    """
    folder = pathlib.Path(folder)
    manifest = _read_manifest(folder)
    shards = manifest["shards"]
    made = sum(entry["mazes"] for entry in shards)
    if not shards or made < manifest["total"]:
        raise IncompleteError(
            f"{folder} is incomplete, with views of {made} of {manifest.get('total', '?')} mazes: "
            "run the same command as before to complete it (python -m experiments.make_views)"
        )
    if made > manifest["total"]:
        raise MazeFileError(f"{folder} has views of {made} mazes, expected {manifest['total']}")
    mazes = load_mazes(folder / MAZES)
    columns, views, index = zip(*(_read_shard(folder, entry) for entry in shards), strict=True)
    counts = [len(getattr(mazes, split)) for split in SPLITS]
    if sum(counts) != made:
        raise MazeFileError(f"{folder}: {MAZES} has {sum(counts)} mazes, the shards have {made}")
    all_views = np.concatenate(views)
    if not _within(all_views, sum(map(len, columns))):
        raise MazeFileError(f"{folder} has views of columns that are not there")
    if not all(_within(part, len(all_views)) for part in index):
        raise MazeFileError(f"{folder} has cells with views that are not there")
    if any(part.shape[1:3] != mazes.train.size for part in index):
        raise MazeFileError(f"{folder} has views of mazes of another size than {MAZES}")
    by_split = np.split(np.concatenate(index), np.cumsum(counts)[:-1])
    return ViewData(
        mazes=mazes,
        columns=np.concatenate(columns),
        views=all_views,
        index=dict(zip(SPLITS, by_split, strict=True)),
        looks=draw_looks(manifest["seed"], made),
    )


def _within(numbers: np.ndarray, count: int) -> bool:
    return not numbers.size or int(numbers.max()) < count


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
    """Keeps other processes from making the same data set; one that is killed lets go of it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(folder / _LOCK))
        except BlockingIOError as error:
            raise MazeFileError(f"another process is making the views in {folder}") from error
        yield


def _claim(folder: pathlib.Path, what: dict[str, Any]) -> list[dict[str, Any]]:
    """The complete shards of an earlier call with the same settings; an error for others."""
    if not (folder / MANIFEST).exists():
        names = sorted(path.name for path in folder.iterdir() if path.name != _LOCK)
        if others := [name for name in names if not is_unfinished(name)]:
            raise MazeFileError(
                f"{folder} holds {', '.join(others[:3])} but no {MANIFEST}, so it is not a folder "
                "of views; choose another one"
            )
        _write_manifest(folder, {**what, "shards": []})
        return []
    there = _read_manifest(folder)
    for key, value in json.loads(json.dumps(what)).items():
        if there.get(key) != value:
            raise MazeFileError(
                f"{folder} was made with {key} {there.get(key)}, not {value}; choose another folder"
            )
    return there["shards"]


def _write_manifest(folder: pathlib.Path, manifest: dict[str, Any]) -> None:
    write_json(folder / MANIFEST, {**manifest, "sha256": _manifest_checksum(manifest)})


def _manifest_checksum(manifest: dict[str, Any]) -> str:
    others = {key: x for key, x in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.exists():
        raise IncompleteError(
            f"{folder} is not a folder of views, which has a {MANIFEST}: make one by "
            "python -m experiments.make_views"
        )
    try:
        manifest = read_json(path)
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise ValueError(
                f"it is {manifest['format']} version {manifest['version']}, this hvin_jax reads "
                f"{FORMAT} version {VERSION}"
            )
        # Earlier versions had none.
        if manifest.get("sha256") not in (None, _manifest_checksum(manifest)):
            raise ValueError("its checksum is wrong, so it is damaged or was changed")
        _check_manifest(manifest)
    except KeyError as error:
        raise MazeFileError(f"{path} can't be used: {error} is missing") from error
    except ValueError as error:
        raise MazeFileError(f"{path} can't be used: {error}") from error
    return manifest


def _check_manifest(manifest: dict[str, Any]) -> None:
    shards = manifest["shards"]
    if not isinstance(shards, list) or not all(isinstance(entry, dict) for entry in shards):
        raise ValueError(f"shards is {shards!r}, expected a list of objects")
    counts = [("seed", manifest["seed"]), *(("mazes", entry["mazes"]) for entry in shards)]
    if shards:
        counts.append(("total", manifest["total"]))
    for name, count in counts:
        if type(count) is not int or not 0 <= count < 2**63:
            raise ValueError(f"{name} is {count!r}, expected a whole number of 0 or more")
    for number, entry in enumerate(shards):
        if entry["file"] != _shard_name(number):
            raise ValueError(f"a file is {entry['file']!r}, expected {_shard_name(number)}")
        if not isinstance(entry["sha256"], str):
            raise ValueError(f"sha256 of {entry['file']} is {entry['sha256']!r}, expected a text")


def _shard_name(number: int) -> str:
    return f"views-{number:05d}.npz"


def _write_shard(folder: pathlib.Path, number: int, parts: list[CompactViews]) -> dict[str, Any]:
    name = _shard_name(number)
    columns = np.concatenate([part.columns for part in parts])
    views = np.concatenate([part.views for part in parts])
    index = np.stack([part.index for part in parts])
    write_npz(folder / name, {"columns": columns, "views": views, "index": index})
    return {
        "file": name,
        "mazes": len(parts),
        "columns": len(columns),
        "views": len(views),
        "sha256": _checksum(folder / name),
    }


def _read_shard(
    folder: pathlib.Path, entry: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    path = folder / entry["file"]
    if not path.is_file():
        raise MazeFileError(f"{path} is missing, though {MANIFEST} lists it")
    if _checksum(path) != entry["sha256"]:
        raise MazeFileError(
            f"{path} is damaged: its checksum is not that of {MANIFEST}; remove the folder and "
            "make it again"
        )
    with NpzReader(path) as reader:
        columns, views, index = (reader.read(name) for name in ("columns", "views", "index"))
    if columns.shape[1:] != COLUMN_SHAPE or views.shape[1:] != (COLUMNS,) or index.ndim != 4:
        raise MazeFileError(f"{path} has arrays of unexpected shapes")
    if (columns.dtype, views.dtype, index.dtype) != (np.uint8, np.uint32, np.uint32):
        raise MazeFileError(f"{path} has arrays of unexpected types")
    return columns, views, index


def _checksum(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
