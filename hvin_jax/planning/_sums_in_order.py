"""The gradient of a kernel on GPUs, added in an order that is always the same.

Every state adds its window, times a number, to the row of the action that it took. A GPU would do
that by atomic additions, in whatever order. Here a program of the GPU has some of the cells, one
orientation and a block of rows of its own; cell by cell, a tile at a time, it multiplies a matrix
of zeros and ones, which says which row each cell adds to, with what the cells add. Neither matrix
nor windows are ever stored: they are made within the tile. What the programs found is added by one
sum. All layers of a chain are cells of one call.

Matrix units multiply numbers of 8 binary digits and add in float32. Zeros and ones are such
numbers, and a float32 is the sum of three, so three products of parts lose nothing.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

# Cells of a tile, and the most rows and columns of a sum: what a program has in its registers.
_CELLS, _ROWS, _COLUMNS = 32, 128, 128
# About so many programs share the work: two for each part of a large card.
_PROGRAMS = 256


class _Plan(NamedTuple):
    """Who does what, see `outer_products`: sizes that are known before anything runs.

    Attributes:
      map_shape: of an example with its margins, `(H + F - 1, W + F - 1, O)`.
      size: `F`.
      cells: of all examples and layers.
      actions: `A`.
      rows: of a block of actions.
      columns: of a block of a window's entries.
      tiles: of a program.
    """

    map_shape: tuple[int, ...]
    size: int
    cells: int
    actions: int
    rows: int
    columns: int
    tiles: int


def outer_products(
    maps: jax.Array, actions: jax.Array, amounts: jax.Array, kernel: jax.Array, *, interpret: bool
) -> jax.Array:
    """`G[(o, actions[n, o])] += amounts[n, o] · window[n]` for all cells n, from zero.

    Args:
      maps: `[N, H, W, O]`, of all examples and layers.
      actions: `[N, H, W, O]`, integers.
      amounts: `[N, H, W, O]`.
      kernel: `[F, F, O, O, A]`, only looked at for its shape.
      interpret: whether to run it step by step on a CPU.

    Returns:
      `[O·A, C]`, see `_conv_backup.kernel_rows`.
    """
    size, _, orientations, _, num_actions = kernel.shape
    margin = size // 2
    maps = jnp.pad(maps, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    entries, cells = size * size * orientations, actions.size // orientations
    rows, columns = _power(num_actions, _ROWS), _power(entries, _COLUMNS)
    blocks = orientations * pl.cdiv(num_actions, rows), pl.cdiv(entries, columns)
    tiles = pl.cdiv(pl.cdiv(cells, _CELLS), max(1, _PROGRAMS // (blocks[0] * blocks[1])))
    parts = pl.cdiv(cells, tiles * _CELLS)
    plan = _Plan(maps.shape[1:], size, cells, num_actions, rows, columns, tiles)
    # All programs along one axis: `vmap` adds axes, and Triton has three.
    found = pl.pallas_call(
        partial(_program, plan),
        out_shape=jax.ShapeDtypeStruct((parts, orientations * num_actions, entries), maps.dtype),
        grid=(parts * blocks[0] * blocks[1],),
        compiler_params=triton.CompilerParams(num_warps=8, num_stages=2),
        interpret=interpret,
        name="sums_in_order",
    )(maps.reshape(-1), actions.reshape(-1), amounts.reshape(-1))
    return found.sum(0)


def _program(plan: _Plan, maps: Any, actions: Any, amounts: Any, found: Any) -> None:
    """Adds up what some cells give to a block of rows and columns."""
    height, width, orientations = plan.map_shape
    line, blocks = plan.size * orientations, pl.cdiv(plan.actions, plan.rows)
    wide = pl.cdiv(plan.size * line, plan.columns)
    rest, column_block = pl.program_id(0) // wide, pl.program_id(0) % wide
    rest, row_block = rest // blocks, rest % blocks
    part, orientation = rest // orientations, rest % orientations
    row = row_block * plan.rows + _range(plan.rows)
    column = column_block * plan.columns + _range(plan.columns)
    # From the corner of a window to its entries.
    within = column // line * (width * orientations) + column % line
    is_entry = column < plan.size * line

    def add(tile: jax.Array, total: jax.Array) -> jax.Array:
        cell = (part * plan.tiles + tile) * _CELLS + _range(_CELLS)
        is_cell = cell < plan.cells
        state = cell * orientations + orientation
        action = triton.load(actions.at[state], mask=is_cell, other=-1)
        amount = triton.load(amounts.at[state], mask=is_cell, other=0)
        x, y_and_example = cell % (width - plan.size + 1), cell // (width - plan.size + 1)
        y = y_and_example % (height - plan.size + 1)
        example = y_and_example // (height - plan.size + 1)
        corner = ((example * height + y) * width + x) * orientations
        window = triton.load(
            maps.at[corner[:, None] + within[None]],
            mask=is_cell[:, None] & is_entry[None],
            other=0,
        )
        taken = row[:, None] == action[None]
        for summand in _summands(amount[:, None] * window):
            ones = taken.astype(summand.dtype)
            total += lax.dot(ones, summand, preferred_element_type=total.dtype)
        return total

    start = jnp.zeros((plan.rows, plan.columns), found.dtype)
    total = lax.fori_loop(0, plan.tiles, add, start)
    triton.store(
        found.at[part, (orientation * plan.actions + row)[:, None], column[None]],
        total,
        mask=(row < plan.actions)[:, None] & is_entry[None],
    )


def _summands(x: jax.Array) -> Iterator[jax.Array]:
    """Numbers that matrix units multiply without loss and whose sum is `x`; itself if float64.

    Digits are cut off, not rounded: what is finite stays so.
    """
    if x.dtype != jnp.float32:
        yield x
        return
    for _ in range(3):
        bits = lax.bitcast_convert_type(x, jnp.int32) & np.int32(-(2**16))
        first = lax.bitcast_convert_type(bits, jnp.float32)
        yield first.astype(jnp.bfloat16)
        x = x - first


def _range(length: int) -> jax.Array:
    return lax.iota(jnp.int32, length)


def _power(number: int, at_most: int) -> int:
    """The next power of two, which Triton wants of every axis; at least 16, for its products."""
    return min(at_most, max(16, pl.next_power_of_2(number)))
