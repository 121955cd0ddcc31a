"""Windows of a map as rows of a matrix, and the way back."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hvin_jax.planning._platforms import copies


def windows(maps: jax.Array, size: int) -> jax.Array:
    """The `size` × `size` window around every cell, zero beyond the border.

    A convolution is then one matrix product, which is several times faster on CPU than
    `lax.conv_general_dilated` when there are hundreds of output channels.

    Args:
      maps: `[B, H, W, C]`.
      size: the side `F` of the window, odd.

    Returns:
      `[B, H, W, F·F·C]`; a row runs over (window row, window column, channel).
    """
    height = maps.shape[1]
    lines = window_lines(maps, size)
    return jnp.concatenate([lines[:, i : i + height] for i in range(size)], axis=-1)


def windows_in_loops(maps: jax.Array, size: int) -> jax.Array:
    """`windows`, where thousands are made and none is differentiated."""
    return copies(maps, partial(windows, size=size), partial(_places, size=size))


def _places(shape: tuple[int, ...], size: int) -> np.ndarray:
    """Which number of an example `[H, W, C]` stands where in its windows, `[H, W, F·F·C]`.

    What is zero is the number behind the last one.
    """
    height, width, channels = shape
    y, x, i, j, c = np.ogrid[:height, :width, :size, :size, :channels]
    row, column = y + i - size // 2, x + j - size // 2
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    places = np.where(inside, (row * width + column) * channels + c, math.prod(shape))
    return places.reshape(height, width, -1)


def window_lines(maps: jax.Array, size: int) -> jax.Array:
    """The lines of all windows, each once: windows that lie above each other share most of them.

    Args:
      maps: `[B, H, W, C]`.
      size: the side `F` of the window, odd.

    Returns:
      `[B, H + F - 1, W, F·C]`; line `i` of the window around cell (y, x) is at (y + i, x).
    """
    width, margin = maps.shape[2], size // 2
    padded = jnp.pad(maps, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    return jnp.concatenate([padded[:, :, j : j + width] for j in range(size)], axis=-1)


def unwindows(rows: jax.Array, size: int) -> jax.Array:
    """The transpose of `windows`: every cell collects its share of the windows it is part of.

    Args:
      rows: `[B, H, W, F·F·C]`.
      size: the side `F` of the window, odd.

    Returns:
      `[B, H, W, C]`.
    """
    *batch, height, width, length = rows.shape
    margin, channels = size // 2, length // size**2
    total = jnp.zeros((*batch, height + size - 1, width + size - 1, channels), rows.dtype)
    # Split, not sliced: the gradient is then one concatenation instead of a sum of padded slices.
    for place, part in enumerate(lax.split(rows, [channels] * size**2, axis=rows.ndim - 1)):
        i, j = divmod(place, size)
        total = total + jnp.pad(part, ((0, 0), (i, size - 1 - i), (j, size - 1 - j), (0, 0)))
    return total[:, margin : margin + height, margin : margin + width]
