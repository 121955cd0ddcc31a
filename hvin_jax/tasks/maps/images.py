"""Maps as black-and-white images, PNG."""

import math
import numbers
import operator
import os
import warnings
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._files import atomic_write, check_file
from hvin_jax.tasks.maps.own_map import MOST_CELLS, OwnMap

# Levels up to here are black, from here on white; 205, unknown in maps of robots, is neither.
_DARK, _LIGHT = 31, 224


def from_png(
    path: str | os.PathLike[str], *, cell: int = 1, threshold: float | None = None
) -> OwnMap:
    """A map from a black (wall) and white (free) image.

    Args:
      path: the file; transparent parts count as white.
      cell: how many pixels wide and high a cell of the map is.
      threshold: for images in grey, from 0 to 255: how light a pixel is that is free, and a cell is
        if all of its pixels are. Without one, grey is an error, and cells of two colours are.

    Returns:
      The map, without start and goal.
    """
    if threshold is not None and not (
        isinstance(threshold, numbers.Real) and 0 <= threshold <= 255
    ):
        raise ValueError(f"the threshold is {threshold}, expected a grey level from 0 to 255")
    pixels = _on_white(read_image(path, ("PNG",), cell))
    if threshold is not None:
        return OwnMap(free_cells(brightness(pixels) >= 3 * threshold, cell))
    height, width, _ = pixels.shape
    if height % cell or width % cell:
        raise ValueError(f"{path} has {height}×{width} pixels, not a grid of {cell}×{cell} cells")
    white, black = (pixels >= _LIGHT).all(-1), (pixels <= _DARK).all(-1)
    if not (white | black).all():
        row, column = (int(i) for i in np.argwhere(~(white | black))[0])
        red, green, blue = pixels[row, column].tolist()
        what = f"grey ({red}/255)" if red == green == blue else f"coloured ({red}, {green}, {blue})"
        raise ValueError(
            f"{path}: the pixel in row {row}, column {column} is {what}, "
            "expected black for walls and white for free cells, or a threshold between them"
        )
    free = np.asarray(white, np.uint8)
    maze = np.ascontiguousarray(free[::cell, ::cell])
    if not np.array_equal(maze.repeat(cell, axis=0).repeat(cell, axis=1), free):
        raise ValueError(f"{path}: some cells of {cell}×{cell} pixels are black and white at once")
    return OwnMap(maze)


def read_image(path: str | os.PathLike[str], formats: tuple[str, ...], cell: int) -> np.ndarray:
    """The pixels of an image: uint8 `[H, W, 4]`, red, green, blue and how opaque each is.

    Args:
      path: the file.
      formats: those of Pillow that it may have.
      cell: how many pixels wide and high a cell of the map is, which may not have any number.
    """
    with needs("reading a map from an image", "pillow", extra="draw"):
        from PIL import Image, UnidentifiedImageError
    check_file(path)
    try:
        operator.index(cell)
    except TypeError as error:
        raise TypeError(f"a cell is {cell!r} pixels wide, expected a whole number") from error
    if cell < 1:
        raise ValueError(f"a cell is {cell} pixels wide, expected 1 or more")
    try:
        with warnings.catch_warnings():
            # Decided by what an image says of its size, before it is decoded.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=formats) as image:
                size = image.size
                small = math.prod(size) <= MOST_CELLS * cell**2 and cell <= max(size)
                pixels = _in_colours(image) if small else None
    except UnidentifiedImageError as error:
        raise ValueError(f"{path} is not an image in {' or '.join(formats)} format") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(
            f"{path} has too many pixels: expected {Image.MAX_IMAGE_PIXELS:,} at most"
        ) from error
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged ones
        raise ValueError(f"{path} is damaged: {error}") from error
    if cell > max(size):
        raise ValueError(f"a cell is {cell} pixels wide, more than {path} has: {size[1]}×{size[0]}")
    if pixels is None:
        raise ValueError(
            f"{path} is a map of more than {MOST_CELLS:,} cells, the most that can be read"
        )
    return pixels


def brightness(pixels: np.ndarray) -> np.ndarray:
    """Red, green and blue together, 0 to 765, uint16 `[H, W]`."""
    return pixels[..., :3].sum(-1, dtype=np.uint16)


def free_cells(free: np.ndarray, cell: int) -> np.ndarray:
    """Cells, uint8, of `cell` × `cell` pixels each, that are free if all of their pixels are.

    Those at the end of an image that are cut off by it are not.
    """
    for axis, side in enumerate(free.shape):
        begins = np.arange(0, side, cell)
        free = np.logical_and.reduceat(free, begins, axis=axis)
        free &= np.expand_dims(begins + cell <= side, 1 - axis)
    return free.astype(np.uint8)


def _in_colours(image: Any) -> np.ndarray:
    """An image with 8 bits for each of red, green, blue and how opaque it is."""
    from PIL import Image

    if image.mode == "F":
        raise ValueError("its pixels are real numbers")
    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        image = Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    return np.asarray(image.convert("RGBA"))


def _on_white(image: np.ndarray) -> np.ndarray:
    """Red, green and blue of an image that lies on white paper."""
    colours, opaque = image[..., :3], image[..., 3:]
    if (opaque == 255).all():
        return colours
    return 255 - np.rint((255 - colours) * (opaque / np.float32(255))).astype(np.uint8)


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
