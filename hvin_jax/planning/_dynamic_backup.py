"""Backups of a `DynamicConvMDP`, written for speed.

Letters as in `_conv_backup`: `B` examples, `H` × `W` cells, `O` orientations, `A` actions, `F` side
of a window, `L` layers. Every state has weights of its own, so a layer reads `F·F·O·O·A` numbers a
cell once and is done: nothing is shared, and memory decides. Three facts carry the design:

* With the cells innermost, everything is a sum of products of long rows, which compilers turn into
  vector instructions. Values `[B, H, W, O]` are small beside the weights and are turned around in
  each layer.
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

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning._conv_backup import divisor

# So many layers at most add to the gradient of the weights at a time.
_GROUP = 5


def q_maps(kernel: jax.Array, future: jax.Array) -> list[list[jax.Array]]:
    """Q of every action: `[F, F, O, O, A, B, H, W]`, `[B, H, W, O]` to O × A maps `[B, H, W]`.

    Args:
      kernel: the weights.
      future: reward and value of the next state.
    """
    orientations, actions = kernel.shape[3:5]
    seen = _shifts(_margin(_maps(future), kernel.shape[0]), kernel.shape)
    return [
        [_sum(kernel[place][o, a] * x for place, x in seen) for a in range(actions)]
        for o in range(orientations)
    ]


def best(kernel: jax.Array, future: jax.Array) -> jax.Array:
    """`max_a Q`, `[B, H, W, O]`."""
    return jnp.stack([functools.reduce(jnp.maximum, qs) for qs in q_maps(kernel, future)], -1)


def actions_of(kernel: jax.Array, future: jax.Array) -> jax.Array:
    """The first action that attains the maximum, int32 `[B, H, W, O]`."""
    chosen = []
    for qs in q_maps(kernel, future):
        top, action = qs[0], jnp.zeros(qs[0].shape, jnp.int32)
        for a, q in enumerate(qs[1:], 1):
            action = jnp.where(q > top, a, action)
            top = jnp.maximum(top, q)
        chosen.append(action)
    return jnp.stack(chosen, -1)


def q_of(kernel: jax.Array, future: jax.Array, action: jax.Array) -> jax.Array:
    """Q of the chosen actions, `[B, H, W, O]`."""
    maps = q_maps(kernel, future)
    return jnp.stack([_chosen(action[..., o], qs) for o, qs in enumerate(maps)], -1)


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
      kernel: `[F, F, O, O, A, B, H, W]`.
      futures: `[L, B, H, W, O]`, reward and value that each layer looked at.
      actions: `[L, B, H, W, O]`.
      cotangents: `[L, B, H, W, O]`, of each layer's value.
      reward_grad: `[B, H, W, O]`, added to.
      kernel_grad: `[F, F, O, O, A, B, H, W]`, added to.

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
    (value_grad, reward_grad), totals = lax.scan(layer, start, (actions, cotangents), reverse=True)
    group = divisor(actions.shape[0], _GROUP)
    layers = [x.reshape(-1, group, *x.shape[1:]) for x in (futures, actions, totals)]
    kernel_grad, _ = lax.scan(lambda grad, x: (_add_group(grad, *x), None), kernel_grad, layers)
    return value_grad, reward_grad, kernel_grad


def _future_cotangent(received: jax.Array, action: jax.Array, cotangent: jax.Array) -> jax.Array:
    """The transpose of one layer: every cell collects from the states that look at it.

    Args:
      received: see `_received`.
      action: `[B, H, W, O]`, what those states do.
      cotangent: `[B, H, W, O]`, of their values.

    Returns:
      `[B, H, W, O]`.
    """
    size, orientations = received.shape[0], received.shape[2]
    cotangents = dict(_shifts(_margin(_maps(cotangent), size), received.shape))
    actions = dict(_shifts(_margin(_maps(action), size), received.shape))

    def term(i: int, j: int, p: int, o: int) -> jax.Array:
        from_there = (size - 1 - i, size - 1 - j, o)  # a state below sees it above, and so on
        weight = _chosen(actions[from_there], list(received[i, j, p, o]))
        return weight * cotangents[from_there]

    places = [range(size), range(size)]
    return jnp.stack(
        [
            _sum(term(i, j, p, o) for i, j, o in itertools.product(*places, range(orientations)))
            for p in range(orientations)
        ],
        -1,
    )


def _received(kernel: jax.Array) -> jax.Array:
    """The weights where they go to: at each cell those by which states around it look at it."""
    size, (height, width) = kernel.shape[0], kernel.shape[-2:]
    padded = jnp.pad(kernel, [(0, 0)] * (kernel.ndim - 2) + [(size // 2, size // 2)] * 2)
    rows = []
    for i in range(size):
        row = []
        for j in range(size):
            y, x = size - 1 - i, size - 1 - j
            row.append(padded[i, j, ..., y : y + height, x : x + width])
        rows.append(jnp.stack(row))
    return jnp.stack(rows)


def _add_group(
    kernel_grad: jax.Array, futures: jax.Array, actions: jax.Array, totals: jax.Array
) -> jax.Array:
    """Adds the share of some layers, `[G, B, H, W, O]` each, to the gradient of the weights."""
    size, orientations, num_actions = kernel_grad.shape[1], *kernel_grad.shape[3:5]
    height, width = kernel_grad.shape[-2:]
    actions, totals = (jnp.moveaxis(x, -1, 1)[:, :, None] for x in (actions, totals))
    which = lax.broadcasted_iota(actions.dtype, (1, 1, num_actions, 1, 1, 1), 2)
    taken = jnp.where(actions == which, totals, 0)  # [G, O, A, B, H, W]
    margins = _margin(jnp.moveaxis(futures, -1, 1), size)  # [G, O, B, H + F - 1, W + F - 1]

    def place(number: jax.Array, grad: jax.Array) -> jax.Array:
        row, rest = jnp.divmod(number, size * orientations)
        column, orientation = jnp.divmod(rest, orientations)
        share = grad[number]
        for margin, amount in zip(margins, taken, strict=True):
            origin = (orientation, 0, row, column)
            seen = lax.dynamic_slice(margin, origin, (1, *amount.shape[2:-2], height, width))
            share = share + amount * seen[None]
        return grad.at[number].set(share)

    flat = kernel_grad.reshape(-1, *kernel_grad.shape[3:])
    return lax.fori_loop(0, flat.shape[0], place, flat).reshape(kernel_grad.shape)


def _shifts(
    margin: jax.Array, shape: tuple[int, ...]
) -> list[tuple[tuple[int, int, int], jax.Array]]:
    """What each place (row, column, orientation) of a window sees, `[B, H, W]`."""
    size, (height, width) = shape[0], shape[-2:]
    return [
        ((i, j, p), margin[p, :, i : i + height, j : j + width])
        for i, j, p in itertools.product(range(size), range(size), range(shape[2]))
    ]


def _maps(value: jax.Array) -> jax.Array:
    """`[B, H, W, O]` to `[O, B, H, W]`."""
    return jnp.moveaxis(value, -1, 0)


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
