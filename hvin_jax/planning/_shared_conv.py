"""The latent MDP when all examples of a batch take the same actions, written for speed.

Letters as in `_conv_backup`. A state needs one kernel row for the whole batch, so a VE module is a
product of matrices with the batch innermost, and what is looked up and scattered has no batch axis.
Windows above each other share lines. Each line, `F·O` numbers of every example, is multiplied once,
with the kernel rows of the `F` states above each other whose windows it is part of:

  P[y, x, (i, o), b] = Σ_(j, p) row of state (y - i, x, o)[i, (j, p)] · line[y, x, (j, p), b]
  Q[y, x, o, b] = reward[y, x, o, b] + Σ_i P[y + i, x, (i, o), b]

Both gradients are products of the same shapes. The compiler is slow to multiply by the transpose of
a first factor, so that one is copied. Indices are made for all layers at once: within a layer they
would be computed again for every number that is looked up.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

from hvin_jax.planning._conv_backup import add_rows, add_to, row_index, rows_by_line, take
from hvin_jax.planning._platforms import apart, scan
from hvin_jax.planning._products import matmul
from hvin_jax.planning._repr import repr_of_arrays


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class SharedConvMDP:
    """`ConvMDP` as one grid of `H` × `W` × `O` states whose values are vectors of `B` numbers.

    Attributes:
      q_reward: `[H, W, O, A, B]`.
      rows: `[F, O·A, F·O]`, the kernel: a row for each line of the window, orientation and action.
    """

    q_reward: jax.Array
    rows: jax.Array

    batched = False
    __repr__ = repr_of_arrays

    @classmethod
    def of(cls, q_reward: jax.Array, kernel: jax.Array) -> "SharedConvMDP":
        """From the arrays of a `ConvMDP`, `[B, H, W, O, A]` and `[F, F, O, O, A]`."""
        # The transpose of a matrix: of `jnp.moveaxis` the compiler makes two copies.
        by_state = q_reward.reshape(q_reward.shape[0], -1).T
        return cls(by_state.reshape(*q_reward.shape[1:], -1), rows_by_line(kernel))

    @property
    def num_actions(self) -> int:
        """`A`."""
        return self.q_reward.shape[-2]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """`(H, W, O)`, the shape of an action map."""
        return self.q_reward.shape[:-2]

    def follow(self, value: jax.Array, actions: jax.Array) -> jax.Array:
        """Q of chosen actions, layer after layer: `[B, H, W, O]`, `[L, H, W, O]` to values."""
        size = self.rows.shape[0]
        height = value.shape[1]

        def layer(value: jax.Array, x: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            reward, index = x
            weights, lines = apart((self._weights(index), _lines(value, size)))
            products = apart(matmul(weights, lines))
            products = products.reshape(*products.shape[:2], size, *value.shape[2:])
            value = reward
            for i in range(size):
                value += products[i : i + height, :, i]
            value = apart(value)
            return value, value

        rewards = take(*self._by_state(self.q_reward, actions))
        values = scan(layer, jnp.moveaxis(value, 0, -1), (rewards, self._row_index(actions)))[1]
        return jnp.moveaxis(values, -1, 1)

    def follow_vjp(
        self, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: "SharedConvMDP"
    ) -> tuple[jax.Array, "SharedConvMDP"]:
        """The pull-back of `follow`; see `hvin_jax.planning.FastMDP`."""
        size, _, length = self.rows.shape

        def layer(
            carry: tuple[jax.Array, jax.Array], x: tuple[jax.Array, ...]
        ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            cotangent, rows_grad = carry
            value, index, own_cotangent = x
            cotangent = apart(cotangent + own_cotangent)
            of_states, lines, weights = apart(
                (
                    _states_of_lines(cotangent, size),
                    _lines(value, size),
                    jnp.swapaxes(self._weights(index), -1, -2),
                )
            )
            outer = matmul(of_states, jnp.swapaxes(lines, -1, -2))
            rows_grad = add_rows(rows_grad, outer.reshape(-1, length), index.reshape(-1))
            return (_collect(matmul(weights, of_states), size), rows_grad), cotangent

        inputs, cotangents = (jnp.moveaxis(x, 1, -1) for x in (inputs, cotangents))
        start = (jnp.zeros_like(inputs[0]), jnp.zeros_like(self.rows).reshape(-1, length))
        (value_grad, rows_grad), totals = scan(
            layer, start, (inputs, self._row_index(actions), cotangents), reverse=True
        )
        table, *index = self._by_state(grad.q_reward, actions)
        return jnp.moveaxis(value_grad, -1, 0), SharedConvMDP(
            add_to(table, totals, *index).reshape(self.q_reward.shape),
            grad.rows + rows_grad.reshape(self.rows.shape),
        )

    def _by_state(self, q_reward: jax.Array, actions: jax.Array) -> tuple[jax.Array, ...]:
        """`[H, W, O, A, B]` as a table `[H·W·O, A, B]`, and two indices `[L, H, W, O]` into it."""
        states = jnp.arange(actions[0].size).reshape(1, *self.value_shape)
        table = q_reward.reshape(-1, *q_reward.shape[3:])
        return table, jnp.broadcast_to(states, actions.shape), actions

    def _row_index(self, actions: jax.Array) -> jax.Array:
        """The rows that lines are multiplied with: `[L, H, W, O]` to `[L, H + F - 1, W, F·O]`."""
        size, number, length = self.rows.shape
        states = partial(_states_of_lines, size=size)
        index = jax.vmap(states)(row_index(actions, self.num_actions))
        line = jnp.arange(length, dtype=index.dtype) // actions.shape[-1]
        return index + number * line[None, None, None]

    def _weights(self, index: jax.Array) -> jax.Array:
        return take(self.rows.reshape(-1, self.rows.shape[-1]), index)


def _lines(value: jax.Array, size: int) -> jax.Array:
    """The lines of all windows: `[H, W, O, B]` to `[H + F - 1, W, F·O, B]`."""
    width, margin = value.shape[1], size // 2
    padded = jnp.pad(value, ((margin, margin), (margin, margin), (0, 0), (0, 0)))
    return jnp.concatenate([padded[:, j : j + width] for j in range(size)], axis=2)


def _states_of_lines(maps: jax.Array, size: int) -> jax.Array:
    """The states whose windows a line is part of: `[H, W, O, ...]` to `[H + F - 1, W, F·O, ...]`.

    State (y - i, x) stands at place `i` of line (y, x); zero where there is none.
    """
    height, beyond = maps.shape[0], size - 1
    padded = jnp.pad(maps, ((beyond, beyond), *((0, 0),) * (maps.ndim - 1)))
    starts = range(beyond, -1, -1)
    return jnp.concatenate([padded[i : i + height + beyond] for i in starts], axis=2)


def _collect(lines: jax.Array, size: int) -> jax.Array:
    """The transpose of `_lines`."""
    margin = size // 2
    height, width = lines.shape[0] - 2 * margin, lines.shape[1]
    inside = lines[margin : margin + height]
    padded = apart(jnp.pad(inside, ((0, 0), (margin, margin), (0, 0), (0, 0))))
    entries = jnp.split(padded, size, axis=2)
    total = jnp.zeros((), lines.dtype)
    for j in range(size):
        total += entries[j][:, size - 1 - j : size - 1 - j + width]
    return apart(total)
