"""Maps from files of any kind."""

import dataclasses
import math
import os
import pathlib
from typing import Any

import numpy as np

from hvin_jax._files import check_file
from hvin_jax.tasks._npz import npy_header
from hvin_jax.tasks.maps.images import from_png
from hvin_jax.tasks.maps.own_map import OwnMap, check_cells, from_array
from hvin_jax.tasks.maps.robots import from_ros, image_of
from hvin_jax.tasks.maps.texts import from_table, from_text

# How files of maps end, and what they are.
KINDS = {
    ".txt": "a drawing",
    ".map": "a map of the MovingAI benchmarks",
    ".png": "a black-and-white image",
    ".yaml": "a map of ROS",
    ".npy": "an array of 0 and 1",
    ".csv": "a table of 0 and 1",
}
_TEXTS = {".txt": from_text, ".map": from_text, ".csv": from_table}


def read_map(
    path: str | os.PathLike[str], *, cell: int = 1, threshold: float | None = None
) -> OwnMap:
    """A map from a file, whose name says of what kind it is.

    A drawing (`.txt`), a map of the MovingAI benchmarks (`.map`), a black-and-white image (`.png`),
    a map of ROS (`.yaml`), an array (`.npy`) or a table (`.csv`) of 0 and 1.

    Args:
      path: the file.
      cell: for images and maps of ROS, how many pixels wide and high a cell of the map is.
      threshold: for images in grey, how light a pixel is that is free, see `from_png`.

    Returns:
      The map, by the name of its file.
    """
    kind = _kind(path)
    check_file(path)
    if kind not in KINDS:
        *known, last = (f"{what} ({ending})" for ending, what in KINDS.items())
        raise ValueError(f"{path}: a map is {', '.join(known)} or {last}, not {kind!r}")
    for name, given, kinds in (
        ("cell", cell != 1, (".png", ".yaml")),
        ("threshold", threshold is not None, (".png",)),
    ):
        if given and kind not in kinds:
            raise ValueError(f"{path}: {KINDS[kind]} has no {name}, only {' or '.join(kinds)}")
    return dataclasses.replace(_read_map(path, kind, cell, threshold), name=str(path))


def read_maps(
    folder: str | os.PathLike[str], *, cell: int = 1, threshold: float | None = None
) -> list[OwnMap]:
    """The maps of a folder, in the order of their names.

    Images that maps of ROS name are those maps', no maps of their own.

    Args:
      folder: with files of all kinds.
      cell: of those that have one, see `read_map`.
      threshold: the same.

    Returns:
      The maps.
    """
    files = sorted(x for x in pathlib.Path(folder).iterdir() if _kind(x) in KINDS)
    named = {image_of(x).resolve() for x in files if _kind(x) == ".yaml"}
    files = [x for x in files if x.resolve() not in named]
    if not files:
        raise ValueError(f"{folder} has no maps: no file that ends in {', '.join(KINDS)}")
    options: dict[str, dict[str, Any]] = {
        ".png": {"cell": cell, "threshold": threshold},
        ".yaml": {"cell": cell, "threshold": None},
    }
    return [read_map(x, **options.get(_kind(x), {})) for x in files]


def read_array(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a `.npy` file, with no more numbers than a map may have cells."""
    check_file(path)
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        try:
            shape, _ = npy_header(file, size)
        except ValueError as error:
            raise ValueError(f"the array {error}") from error
        check_cells(math.prod(shape), "the array of the map")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def _kind(path: str | os.PathLike[str]) -> str:
    kind = pathlib.Path(path).suffix.lower()
    return ".yaml" if kind == ".yml" else kind


def _read_map(
    path: str | os.PathLike[str], kind: str, cell: int, threshold: float | None
) -> OwnMap:
    if kind == ".png":
        return from_png(path, cell=cell, threshold=threshold)
    if kind == ".yaml":
        return from_ros(path, cell=cell)
    try:
        if kind == ".npy":
            return from_array(read_array(path))
        check_cells(os.path.getsize(path), "the text of the map")
        return _TEXTS[kind](pathlib.Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a text in UTF-8, as {KINDS[kind]} is: {error.reason}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
