"""Maps of your own: from a text drawing, a 0/1 array or a black-and-white PNG, and back.

A drawing has one character per cell: `#` wall, `.` free, `S` start, `G` goal, both free. There may
be several goals. Digits are free cells that cost so much to enter, 1 to 9; all others cost 1.

    #######
    #S..#.#
    #.#.#.#
    #.#..G#
    #######
"""

import dataclasses
import math
import os
import pathlib
import re
import warnings
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._files import atomic_write, check_file
from hvin_jax.tasks._npz import npy_header

Cell = tuple[int, int]
# A map of 4096×4096: planning on it takes tens of gigabytes.
MOST_CELLS = 2**24
_CELLS = "#.123456789"
_DARK, _LIGHT = 64, 191  # grey levels up to here are black, from here on white


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


def from_text(text: str) -> OwnMap:
    """A map from a drawing; empty lines around it are ignored."""
    text = text.removeprefix("\ufeff")  # a byte order mark, which some editors write
    _check_cells(len(text), "the drawing of the map")
    lines = [line.rstrip() for line in text.splitlines()]
    drawn = [row for row, line in enumerate(lines) if line]
    if not drawn:
        raise ValueError("the drawing of the map is empty")
    lines = lines[drawn[0] : drawn[-1] + 1]
    marks: dict[str, list[Cell]] = {"S": [], "G": []}
    for row, line in enumerate(lines):
        if len(line) != len(lines[0]):
            raise ValueError(
                f"line {row + 1} of the map has {len(line)} cells, the first has {len(lines[0])}: "
                "all must be equally long"
            )
        for character in sorted(set(line) - set(_CELLS), key=line.index):
            columns = [place.start() for place in re.finditer(re.escape(character), line)]
            column = columns[-1] if character in marks else columns[0]
            where = f"in line {row + 1}, column {column + 1} of the map"
            if character not in marks:
                raise ValueError(
                    f"unknown character {character!r} {where}: expected # (wall), . (free), S "
                    "(start), G (goal) or what entering the cell costs, 1 to 9"
                )
            marks[character] += [(row, column) for column in columns]
            if len(marks["S"]) > 1:
                raise ValueError(f"a second S {where}: there can be only one")
    maze = np.array([[character != "#" for character in line] for line in lines], dtype=np.uint8)
    cost = None
    if any(set(line) & set("123456789") for line in lines):
        digits = [[int(x) if x.isdigit() else 1 for x in line] for line in lines]
        cost = np.array(digits, np.float32)
    start, goal = (cells[0] if cells else None for cells in marks.values())
    return OwnMap(maze, start, goal, cost, tuple(marks["G"]))


def read_array(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a `.npy` file, with no more numbers than a map may have cells."""
    check_file(path)
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        try:
            shape, _ = npy_header(file, size)
        except ValueError as error:
            raise ValueError(f"the array {error}") from error
        _check_cells(math.prod(shape), "the array of the map")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def _check_cells(count: int, what: str) -> None:
    if count > MOST_CELLS:
        raise ValueError(f"{what} has more than {MOST_CELLS:,} cells, the most that can be read")


def to_text(own_map: OwnMap, *, path: np.ndarray | None = None) -> str:
    """The drawing of a map.

    Args:
      own_map: the map.
      path: int `[k, 2 or 3]`, (row, column, …) of cells that are drawn as `*`. A drawing with a
        path is for reading; `from_text` does not take it.

    Returns:
      Lines of characters, each with a line end.
    """
    picture = np.where(own_map.maze != 0, ".", "#")
    if own_map.cost is not None and np.isin(own_map.cost[own_map.maze != 0], range(1, 10)).all():
        costs = np.char.mod("%d", np.where(own_map.maze != 0, own_map.cost, 1))
        picture = np.where((own_map.maze != 0) & (costs != "1"), costs, picture)
    if path is not None:
        picture[path[:, 0], path[:, 1]] = "*"
    for character, cell in (("S", own_map.start), *(("G", goal) for goal in own_map.goals)):
        if cell is not None:
            picture[cell] = character
    return "".join("".join(row) + "\n" for row in picture)


def from_png(path: str | os.PathLike[str], *, cell: int = 1) -> OwnMap:
    """A map from a black (wall) and white (free) image.

    Args:
      path: the file; transparent parts count as white.
      cell: how many pixels wide and high a cell of the map is.

    Returns:
      The map, without start and goal.
    """
    with needs("reading a map from an image", "pillow", extra="draw"):
        from PIL import Image, UnidentifiedImageError
    check_file(path)
    try:
        with warnings.catch_warnings():
            # Decided by what an image says of its size, before it is decoded.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=["PNG"]) as image:
                size = image.size
                coloured = _in_colours(image) if math.prod(size) <= MOST_CELLS * cell**2 else None
    except UnidentifiedImageError as error:
        raise ValueError(f"{path} is not an image in PNG format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(
            f"{path} has too many pixels: expected {Image.MAX_IMAGE_PIXELS:,} at most"
        ) from error
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged ones
        raise ValueError(f"{path} is damaged: {error}") from error
    if coloured is None:
        raise ValueError(
            f"{path} is a map of more than {MOST_CELLS:,} cells, the most that can be read"
        )
    paper = Image.new("RGBA", coloured.size, "white")
    pixels = np.asarray(Image.alpha_composite(paper, coloured).convert("RGB"))
    height, width, _ = pixels.shape
    if cell < 1 or height % cell or width % cell:
        raise ValueError(f"{path} has {height}×{width} pixels, not a grid of {cell}×{cell} cells")
    white, black = (pixels >= _LIGHT).all(-1), (pixels <= _DARK).all(-1)
    if not (white | black).all():
        row, column = (int(i) for i in np.argwhere(~(white | black))[0])
        red, green, blue = pixels[row, column].tolist()
        what = f"grey ({red}/255)" if red == green == blue else f"coloured ({red}, {green}, {blue})"
        raise ValueError(
            f"{path}: the pixel in row {row}, column {column} is {what}, "
            "expected black for walls and white for free cells"
        )
    free = np.asarray(white, np.uint8)
    maze = np.ascontiguousarray(free[::cell, ::cell])
    if not np.array_equal(maze.repeat(cell, axis=0).repeat(cell, axis=1), free):
        raise ValueError(f"{path}: some cells of {cell}×{cell} pixels are black and white at once")
    return OwnMap(maze)


def _in_colours(image: Any) -> Any:
    """An image with 8 bits for each of red, green, blue and how opaque it is."""
    from PIL import Image

    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    return image.convert("RGBA")


def to_png(own_map: OwnMap, path: str | os.PathLike[str], *, cell: int = 1) -> None:
    """Writes a map as a black-and-white image; start and goal are not in it.

    Args:
      own_map: the map.
      path: where to.
      cell: how many pixels wide and high a cell of the map is.
    """
    with needs("writing a map as an image", "pillow", extra="draw"):
        from PIL import Image
    pixels = (own_map.maze * np.uint8(255)).repeat(cell, axis=0).repeat(cell, axis=1)
    with atomic_write(path) as file:
        Image.fromarray(pixels).convert("1").save(file, format="PNG")


def read_map(path: str | os.PathLike[str], *, cell: int = 1) -> OwnMap:
    """A map from a file: `.txt` a drawing, `.png` an image, `.npy` an array.

    Args:
      path: the file.
      cell: for images, how many pixels wide and high a cell of the map is.

    Returns:
      The map, by the name of its file.
    """
    return dataclasses.replace(_read_map(path, cell), name=str(path))


def _read_map(path: str | os.PathLike[str], cell: int) -> OwnMap:
    kind = pathlib.Path(path).suffix.lower()
    check_file(path)
    if kind == ".png":
        return from_png(path, cell=cell)
    try:
        if kind == ".txt":
            _check_cells(os.path.getsize(path), "the drawing of the map")
            return from_text(pathlib.Path(path).read_text(encoding="utf-8"))
        if kind == ".npy":
            return from_array(read_array(path))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a text in UTF-8, as a drawing is: {error.reason}"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    raise ValueError(f"{path}: a map is a .txt drawing, a .png image or a .npy array, not {kind!r}")
