"""Backups of a `ConvMDP`, written for speed: the inner loops of every planner.

Letters: `B` examples, `H` × `W` cells, `O` orientations, `A` actions, `F` side of the kernel,
`C = F·F·O` entries of a window, `L` layers. Three facts carry the design:

* The VI module is a matrix product and a maximum. Tiles of the batch keep Q within the cache; all
  of Q never exists.
* A VE module needs one kernel row per state. Windows are read as lines of `F·O` contiguous numbers,
  which windows above each other share. Only the kernel's gradient needs whole windows.
* The gradient of a maximum goes through one action, so VI and VE modules share one backward pass,
  which touches the chosen kernel rows only.

Loop fusion decides the speed. What CPUs and GPUs want otherwise is in `_platforms`, and why. The
tests hold the results, the benchmarks the times.
"""

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning._platforms import (
    add_in_order,
    add_in_parts,
    apart,
    in_tiles,
    interpreted,
    max_and_argmax,
    scan,
)
from hvin_jax.planning._products import matmul
from hvin_jax.planning._windows import window_lines, windows, windows_in_loops

# On CPU, a tile of Q of at most so many bytes is made, reduced and forgotten at a time.
_TILE_BYTES = 2 * 2**20
# On CPU, about this many bytes of outer products are made and added at a time.
_UPDATE_BYTES = 384 * 2**10


def kernel_matrix(kernel: jax.Array) -> jax.Array:
    """`[F, F, O, O, A]` as the matrix `[C, O·A]` that maps windows to Q."""
    size, _, orientations, _, actions = kernel.shape
    return kernel.reshape(size * size * orientations, orientations * actions)


def kernel_rows(kernel: jax.Array) -> jax.Array:
    """`[F, F, O, O, A]` as one row per orientation and action, `[O·A, C]`."""
    return kernel_matrix(kernel).T


def row_index(actions: jax.Array, num_actions: int) -> jax.Array:
    """The place of each state's action among all `O·A` of them; actions are `[..., O]`."""
    return actions + num_actions * lax.broadcasted_iota(
        actions.dtype, actions.shape, actions.ndim - 1
    )


def convolve(maps: jax.Array, kernel: jax.Array) -> jax.Array:
    """All responses at every state: `[B, H, W, O]`, `[F, F, O, O, A]` to `[B, H, W, O, A]`."""
    responses = matmul(windows(maps, kernel.shape[0]), kernel_matrix(kernel))
    return responses.reshape(*maps.shape[:-1], *kernel.shape[-2:])


def weight_beyond_border(kernel: jax.Array, size: tuple[int, int]) -> jax.Array:
    """Σ of a kernel over what lies beyond the border of a map of `size`: `[H, W, O, A]`.

    Σ_(i, j, p) kernel - (1 * kernel), summed over the entries beyond the border only: exactly zero
    at states whose window is within the map.
    """
    ones = jnp.ones((1, *size, kernel.shape[2]), kernel.dtype)
    beyond = matmul(1 - windows(ones, kernel.shape[0]), kernel_matrix(kernel))
    return beyond.reshape(*size, *kernel.shape[-2:])


def greedy(q_reward: jax.Array, kernel: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`max_a Q` and the first action that attains it, both `[B, H, W, O]`."""

    def whole(q_reward: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        future = matmul(windows_in_loops(value, kernel.shape[0]), kernel_matrix(kernel))
        return max_and_argmax(q_reward + future.reshape(q_reward.shape))

    of_an_example = q_reward[0].size * q_reward.dtype.itemsize
    tile = divisor(value.shape[0], _TILE_BYTES // of_an_example)
    return in_tiles(whole, tile, q_reward, value)


def follow(
    q_reward: jax.Array, kernel: jax.Array, value: jax.Array, actions: jax.Array
) -> jax.Array:
    """Q of chosen actions, layer after layer: actions `[L, B, H, W, O]` to values likewise."""
    size, _, orientations, _, num_actions = kernel.shape
    height = value.shape[1]
    rows = rows_by_line(kernel)
    ones = jnp.ones((size * orientations,), value.dtype)

    def layer(value: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, index = x
        lines = window_lines(apart(value), size)
        products = jnp.zeros((), value.dtype)
        for i in range(size):
            products += take(rows[i], index) * lines[:, i : i + height, :, None]
        # A product with ones: the compiler's own sum over a last axis is not vectorised.
        future = matmul(products, ones)
        value = apart(reward + future)
        return value, value

    indices = row_index(actions, num_actions)
    return scan(layer, value, (_reward_of(q_reward, actions), indices))[1]


def follow_vjp(
    kernel: jax.Array,
    inputs: jax.Array,
    actions: jax.Array,
    cotangents: jax.Array,
    q_reward_grad: jax.Array,
    kernel_grad: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The pull-back of `follow`, and of a chain of `greedy` backups along the actions they took.

    Args:
      kernel: `[F, F, O, O, A]`.
      inputs: `[L, B, H, W, O]`, the value that each layer started from.
      actions: `[L, B, H, W, O]`.
      cotangents: `[L, B, H, W, O]`, of each layer's value.
      q_reward_grad: `[B, H, W, O, A]`, added to.
      kernel_grad: `[F, F, O, O, A]`, added to.

    Returns:
      The cotangent of `inputs[0]`, and the two gradients with this chain's share added.
    """
    size, _, _, _, num_actions = kernel.shape
    rows = rows_by_line(kernel)

    def of_a_layer(rows_grad: jax.Array, value: jax.Array, *x: jax.Array) -> jax.Array:
        return _add_outer_products(rows_grad, windows_in_loops(value, size), *x)

    def of_all_layers(rows_grad: jax.Array, *x: jax.Array) -> jax.Array:
        from hvin_jax.planning._sums_in_order import outer_products  # Pallas is experimental

        inputs, actions, totals = (array.reshape(-1, *array.shape[2:]) for array in x)
        return rows_grad + outer_products(inputs, actions, totals, kernel, interpret=interpreted())

    def untouched(rows_grad: jax.Array, *_: jax.Array) -> jax.Array:
        return rows_grad

    def layer(
        carry: tuple[jax.Array, jax.Array], x: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        cotangent, rows_grad = carry
        value, index, own_cotangent = x
        cotangent = apart(cotangent + own_cotangent)
        rows_grad = add_in_order(of_a_layer, untouched, rows_grad, value, index, cotangent)
        return (_value_cotangent(rows, index, cotangent), rows_grad), cotangent

    def index_rows(x: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        value, action, own_cotangent = x
        return value, row_index(action, num_actions), own_cotangent

    start = (jnp.zeros_like(inputs[0]), jnp.zeros_like(kernel_rows(kernel)))
    (value_grad, rows_grad), totals = scan(
        layer, start, (inputs, actions, cotangents), reverse=True, prepare=index_rows
    )
    rows_grad = add_in_order(untouched, of_all_layers, rows_grad, inputs, actions, totals)
    q_reward_grad = _add_at(q_reward_grad, actions, totals)
    return value_grad, q_reward_grad, kernel_grad + rows_grad.T.reshape(kernel.shape)


def rows_by_line(kernel: jax.Array) -> jax.Array:
    """`kernel_rows`, with the lines of the window outermost: `[F, O·A, F·O]`."""
    size, _, orientations, _, actions = kernel.shape
    lines = kernel.reshape(size, size * orientations, orientations * actions)
    return apart(jnp.swapaxes(lines, 1, 2))


def _value_cotangent(rows: jax.Array, index: jax.Array, cotangent: jax.Array) -> jax.Array:
    """The transpose of one layer of `follow`: `[F, O·A, F·O]`, 2 × `[B, H, W, O]` to the last.

    A cell collects from the states whose window it is part of: first along columns, which keeps
    the lines of the windows whole, then along rows.
    """
    size = rows.shape[0]
    height, width, orientations = cotangent.shape[1:]
    margin = size // 2
    beside = ((0, 0), (margin, margin), (0, 0), (0, 0))
    cotangent, index = apart((jnp.pad(cotangent, beside), jnp.pad(index, beside)))
    lines = jnp.zeros((), rows.dtype)
    for i in range(size):
        states = slice(size - 1 - i, size - 1 - i + height)
        for o in range(orientations):
            lines += take(rows[i], index[:, states, :, o]) * cotangent[:, states, :, o, None]
    lines = apart(jnp.pad(lines, ((0, 0), (0, 0), (margin, margin), (0, 0))))
    total = jnp.zeros((), rows.dtype)
    for j in range(size):
        entries = slice(j * orientations, (j + 1) * orientations)
        total += lines[:, :, size - 1 - j : size - 1 - j + width, entries]
    return apart(total)


def divisor(number: int, at_most: int) -> int:
    """The largest divisor of `number` that is no larger than `at_most` (but at least 1)."""
    return next(d for d in range(max(min(number, at_most), 1), 0, -1) if number % d == 0)


def _reward_of(q_reward: jax.Array, actions: jax.Array) -> jax.Array:
    # A state's actions of all layers are read together, while its row is in the cache.
    by_state = jnp.moveaxis(actions, 0, -1).reshape(-1, actions.shape[0])
    table = q_reward.reshape(by_state.shape[0], -1)
    states = jnp.arange(by_state.shape[0])[:, None]
    rewards = take(table, states, by_state)
    return jnp.moveaxis(rewards.reshape(*actions.shape[1:], -1), -1, 0)


def _add_at(q_reward_grad: jax.Array, actions: jax.Array, cotangents: jax.Array) -> jax.Array:
    """Adds each layer's cotangent at the action it took."""
    by_state = jnp.moveaxis(actions, 0, -1).reshape(-1, actions.shape[0])
    amounts = jnp.moveaxis(cotangents, 0, -1).reshape(by_state.shape)

    table = q_reward_grad.reshape(by_state.shape[0], -1)

    def scatter(table: jax.Array, amounts: jax.Array, by_state: jax.Array) -> jax.Array:
        return add_to(table, amounts, jnp.arange(by_state.shape[0])[:, None], by_state)

    def layer_by_layer(table: jax.Array, amounts: jax.Array, by_state: jax.Array) -> jax.Array:
        # No two states add to one number, so no addition has to be atomic.
        states = jnp.arange(by_state.shape[0])

        def layer(table: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            return add_to(table, x[0], states, x[1], unique_indices=True), None

        return scan(layer, table, (amounts.T, by_state.T))[0]

    return add_in_order(scatter, layer_by_layer, table, amounts, by_state).reshape(
        q_reward_grad.shape
    )


def _add_outer_products(
    rows_grad: jax.Array, rows: jax.Array, index: jax.Array, cotangent: jax.Array
) -> jax.Array:
    """`rows_grad[index[n, o]] += cotangent[n, o] · rows[n]` for all states, `[O·A, C]`."""
    length, orientations = rows.shape[-1], index.shape[-1]
    states = rows.size // length

    def scatter(rows_grad: jax.Array, *x: jax.Array) -> jax.Array:
        rows, index, cotangent = x
        updates = cotangent[:, :, None] * rows[:, None, :]
        return add_rows(rows_grad, updates.reshape(-1, length), index.reshape(-1))

    part = divisor(states, _UPDATE_BYTES // (orientations * length * rows.dtype.itemsize))
    flat = (rows.reshape(states, -1), index.reshape(states, -1), cotangent.reshape(states, -1))
    return add_in_parts(scatter, part, rows_grad, *flat)


def take(table: jax.Array, *index: jax.Array) -> jax.Array:
    """`table[index]`, for indices made by this library: neither clipped nor wrapped."""
    return table.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def add_to(
    table: jax.Array, updates: jax.Array, *index: jax.Array, unique_indices: bool = False
) -> jax.Array:
    """`table`, with `updates` added at indices made by this library."""
    return table.at[index].add(
        updates,
        mode="promise_in_bounds",
        wrap_negative_indices=False,
        unique_indices=unique_indices,
    )


def add_rows(table: jax.Array, rows: jax.Array, index: jax.Array) -> jax.Array:
    """`table[index[n]] += rows[n]` for all n; `[R, C]`, `[N, C]` and `[N]`.

    Written in the form that the compiler would bring it to, at the price of a copy of all rows.
    """
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
    )
    return lax.scatter_add(
        table,
        index[:, None],
        rows[:, None],
        dimensions,
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
