"""Backups of a `DynamicConvMDP`, written for speed.

Letters as in `_conv_backup`: `B` examples, `H` × `W` cells, `O` orientations, `A` actions, `F` side
of a window, `L` layers. Every state has weights of its own, so a layer reads `F·F·O·O·A` numbers a
cell once and is done: nothing is shared, and memory decides. Three facts carry the design:

* With the cells innermost, everything is a sum of products of long rows, which compilers turn into
  vector instructions.
* The gradient goes through the action taken, which selects one of `A` weights. Beyond that, the
  pull-back is the same sums as the backup, with the weights of the states around.
* The gradient of the weights is added for several layers at a time, since reading and writing it
  costs more than the sum itself.

What is made before a loop is stored; within one the compiler would make it again for each use.
"""

import functools
import itertools
import operator
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning._conv_backup import divisor
from hvin_jax.planning._platforms import repeat, scan

# So many layers at most add to the gradient of the weights at a time.
_GROUP = 10


def q_maps(kernel: jax.Array, future: jax.Array) -> list[jax.Array]:
    """Q of every action: `[F, F, O, A, B, O, H, W]`, `[B, O, H, W]` to A × `[B, O, H, W]`.

    Args:
      kernel: the weights.
      future: reward and value of the next state.
    """
    seen = _shifts(future, kernel.shape[0])
    return [_sum(kernel[place][a] * x for place, x in seen.items()) for a in range(kernel.shape[3])]


def best(kernel: jax.Array, future: jax.Array) -> jax.Array:
    """`max_a Q`, `[B, O, H, W]`."""
    return functools.reduce(jnp.maximum, q_maps(kernel, future))


def actions_of(kernel: jax.Array, future: jax.Array) -> jax.Array:
    """The first action that attains the maximum, int32 `[B, O, H, W]`."""
    top, *others = q_maps(kernel, future)
    action = jnp.zeros(top.shape, jnp.int32)
    for a, q in enumerate(others, 1):
        action = jnp.where(q > top, a, action)
        top = jnp.maximum(top, q)
    return action


def q_of(kernel: jax.Array, future: jax.Array, action: jax.Array) -> jax.Array:
    """Q of the chosen actions, `[B, O, H, W]`."""
    return _chosen(action, q_maps(kernel, future))


@jax.custom_vjp
def q_of_all(kernel: jax.Array, future: jax.Array) -> jax.Array:
    """Q of all actions, `[B, O, H, W, A]`."""
    return jnp.stack(q_maps(kernel, future), -1)


def _q_of_all_fwd(kernel: jax.Array, future: jax.Array) -> tuple[jax.Array, Any]:
    return q_of_all(kernel, future), (kernel, future)


def _q_of_all_bwd(residuals: Any, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Padded once for each place of the window, not for each action as well."""
    kernel, future = residuals
    size = kernel.shape[0]
    by_action = [cotangent[..., a] for a in range(kernel.shape[3])]
    grads, future_grad = [], jnp.zeros_like(_margin(future, size))
    for (i, j, p), seen in _shifts(future, size).items():
        grads.append(jnp.stack([x * seen for x in by_action]))
        share = _sum(kernel[i, j, p, a] * x for a, x in enumerate(by_action)).sum(1)
        around = [(0, 0), (i, size - 1 - i), (j, size - 1 - j)]
        future_grad = future_grad.at[:, p].add(jnp.pad(share, around))
    inner = slice(size // 2, -(size // 2) or None)
    return jnp.stack(grads).reshape(kernel.shape), future_grad[:, :, inner, inner]


q_of_all.defvjp(_q_of_all_fwd, _q_of_all_bwd)


def follow_vjp(
    kernel: jax.Array,
    futures: jax.Array,
    actions: jax.Array,
    cotangents: jax.Array,
    reward_grad: jax.Array,
    kernel_grad: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The pull-back of a chain of backups along the actions that it took.

    Args:
      kernel: `[F, F, O, A, B, O, H, W]`.
      futures: `[L, B, O, H, W]`, reward and value that each layer looked at.
      actions: `[L, B, O, H, W]`.
      cotangents: `[L, B, O, H, W]`, of each layer's value.
      reward_grad: `[B, O, H, W]`, added to.
      kernel_grad: `[F, F, O, A, B, O, H, W]`, added to.

    Returns:
      The cotangent of the first value, and the two gradients with this chain's share added.
    """
    received = _received(kernel)

    def layer(
        carry: tuple[jax.Array, jax.Array], x: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        cotangent, reward_grad = carry
        action, own_cotangent = x
        total = cotangent + own_cotangent
        cotangent = _future_cotangent(received, action, total)
        return (cotangent, reward_grad + cotangent), total

    start = (jnp.zeros_like(reward_grad), reward_grad)
    (value_grad, reward_grad), totals = scan(layer, start, (actions, cotangents), reverse=True)
    group = divisor(actions.shape[0], _GROUP)
    layers = [x.reshape(-1, group, *x.shape[1:]) for x in (futures, actions, totals)]
    kernel_grad, _ = lax.scan(lambda grad, x: (_add_group(grad, *x), None), kernel_grad, layers)
    return value_grad, reward_grad, kernel_grad


def _future_cotangent(received: jax.Array, action: jax.Array, cotangent: jax.Array) -> jax.Array:
    """The transpose of one layer: every cell collects from the states that look at it.

    Args:
      received: see `_received`.
      action: `[B, O, H, W]`, what those states do.
      cotangent: `[B, O, H, W]`, of their values.

    Returns:
      `[B, O, H, W]`.
    """
    size, num_actions = received.shape[0], received.shape[3]
    actions = _shifts(action, size)

    def term(i: int, j: int, o: int, amount: jax.Array) -> jax.Array:
        # A state below sees the cell above, and so on.
        weights = [received[size - 1 - i, size - 1 - j, o, a] for a in range(num_actions)]
        return _chosen(actions[i, j, o], weights) * amount

    return _sum(term(*place, amount) for place, amount in _shifts(cotangent, size).items())


def _received(kernel: jax.Array) -> jax.Array:
    """The weights where they go to: at each cell those by which states around it look at it.

    Args:
      kernel: `[F, F, O, A, B, O, H, W]`.

    Returns:
      The same with the two orientations exchanged, moved to the cell at the window's place.
    """
    size, (height, width) = kernel.shape[0], kernel.shape[-2:]
    swapped = _margin(jnp.swapaxes(kernel, 2, 5), size)
    rows = []
    for i in range(size):
        row = []
        for j in range(size):
            y, x = size - 1 - i, size - 1 - j
            row.append(swapped[i, j, ..., y : y + height, x : x + width])
        rows.append(jnp.stack(row))
    return jnp.stack(rows)


def _add_group(
    kernel_grad: jax.Array, futures: jax.Array, actions: jax.Array, totals: jax.Array
) -> jax.Array:
    """Adds the share of some layers, `[G, B, O, H, W]` each, to the gradient of the weights."""
    size, _, orientations, num_actions, batch, _, height, width = kernel_grad.shape
    which = lax.broadcasted_iota(actions.dtype, (num_actions, 1, 1, 1, 1), 0)
    margins = _margin(futures, size)

    def place(number: jax.Array, grad: jax.Array) -> jax.Array:
        row, rest = jnp.divmod(number, size * orientations)
        column, orientation = jnp.divmod(rest, orientations)
        share = lax.dynamic_index_in_dim(grad, number, keepdims=False)
        for margin, action, total in zip(margins, actions, totals, strict=True):
            origin = (0, orientation, row, column)
            seen = lax.dynamic_slice(margin, origin, (batch, 1, height, width))
            share = share + jnp.where(action[None] == which, total[None], 0) * seen[None]
        return lax.dynamic_update_index_in_dim(grad, share, number, 0)

    flat = kernel_grad.reshape(-1, *kernel_grad.shape[3:])
    return repeat(flat.shape[0], place, flat).reshape(kernel_grad.shape)


def _shifts(maps: jax.Array, size: int) -> dict[tuple[int, int, int], jax.Array]:
    """What each place (row, column, orientation) of a window sees: `[B, 1, H, W]` each."""
    orientations, height, width = maps.shape[1:]
    margin = _margin(maps, size)
    return {
        (i, j, p): margin[:, p : p + 1, i : i + height, j : j + width]
        for i, j, p in itertools.product(range(size), range(size), range(orientations))
    }


def _margin(maps: jax.Array, size: int) -> jax.Array:
    """Zeros around maps `[..., H, W]`, as many as a window of that size reaches beyond them."""
    around = (size // 2, size // 2)
    return jnp.pad(maps, [(0, 0)] * (maps.ndim - 2) + [around, around])


def _chosen(action: jax.Array, options: list[jax.Array]) -> jax.Array:
    """The option of each state's action."""
    chosen = options[0]
    for a, option in enumerate(options[1:], 1):
        chosen = jnp.where(action == a, option, chosen)
    return chosen


def _sum(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(operator.add, terms)
