"""Backups of a `DynamicConvMDP`, written for speed.

Letters as in `_conv_backup`: `B` examples, `H` × `W` cells, `O` orientations, `A` actions, `P`
places that a state looks at, `L` layers. Every state has weights of its own, so a layer reads
`P·O·A` numbers a cell once and is done: nothing is shared, and memory decides. Three facts carry
the design:

* With the cells innermost, everything is a sum of products of long rows, which compilers turn into
  vector instructions.
* The gradient goes through the action taken, which selects one of `A` weights. Beyond that, the
  pull-back is the same sums as the backup, with the weights of the states around.
* The gradient of the weights is added for several layers at a time, since reading and writing it
  costs more than the sum itself.

What is made before a loop is stored; within one the compiler would make it again for each use.
"""

import functools
import operator
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning._conv_backup import divisor
from hvin_jax.planning._platforms import over_first, repeat, scan

# Where a state looks: so many rows below, columns to the right, and orientations further.
Places = tuple[tuple[int, int, int], ...]
# So many layers at most add to the gradient of the weights at a time.
_GROUP = 10


@jax.custom_vjp
def softmax(logits: jax.Array) -> jax.Array:
    """Over the first axis."""
    weights = jnp.exp(logits - over_first(jnp.maximum, logits)[None])
    return weights / over_first(jnp.add, weights)[None]


def _softmax_fwd(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
    return (shares := softmax(logits)), shares


def _softmax_bwd(shares: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    parts = shares * cotangent
    return (parts - shares * over_first(jnp.add, parts)[None],)


softmax.defvjp(_softmax_fwd, _softmax_bwd)


def q_maps(kernel: jax.Array, places: Places, future: jax.Array) -> list[jax.Array]:
    """Q of every action: `[P, A, B, O, H, W]`, `[B, O, H, W]` to A × `[B, O, H, W]`.

    Args:
      kernel: the weights.
      places: what they weigh.
      future: reward and value of the next state.
    """
    seen = _seen(future, places)
    return [_sum(kernel[k, a] * x for k, x in enumerate(seen)) for a in range(kernel.shape[1])]


def best(kernel: jax.Array, places: Places, future: jax.Array) -> jax.Array:
    """`max_a Q`, `[B, O, H, W]`."""
    return functools.reduce(jnp.maximum, q_maps(kernel, places, future))


def actions_of(kernel: jax.Array, places: Places, future: jax.Array) -> jax.Array:
    """The first action that attains the maximum, int32 `[B, O, H, W]`."""
    top, *others = q_maps(kernel, places, future)
    action = jnp.zeros(top.shape, jnp.int32)
    for a, q in enumerate(others, 1):
        action = jnp.where(q > top, a, action)
        top = jnp.maximum(top, q)
    return action


def q_of(kernel: jax.Array, places: Places, future: jax.Array, action: jax.Array) -> jax.Array:
    """Q of the chosen actions, `[B, O, H, W]`."""
    return _chosen(action, q_maps(kernel, places, future))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def q_of_all(kernel: jax.Array, places: Places, future: jax.Array) -> jax.Array:
    """Q of all actions, `[A, B, O, H, W]`."""
    return _sum(kernel[k] * x[None] for k, x in enumerate(_seen(future, places)))


def _q_of_all_fwd(kernel: jax.Array, places: Places, future: jax.Array) -> tuple[jax.Array, Any]:
    return q_of_all(kernel, places, future), (kernel, future)


def _q_of_all_bwd(
    places: Places, residuals: Any, cotangent: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Moved once for each place, not for each action as well."""
    kernel, future = residuals
    received = []
    for weights, place in zip(kernel, _back(places), strict=True):
        received += _seen(_sum(w * x for w, x in zip(weights, cotangent, strict=True)), (place,))
    kernel_grad = _add_group(jnp.zeros_like(kernel), places, future[None], cotangent[None])
    return kernel_grad, _sum(received)


q_of_all.defvjp(_q_of_all_fwd, _q_of_all_bwd)


def follow_vjp(
    kernel: jax.Array,
    places: Places,
    futures: jax.Array,
    actions: jax.Array,
    cotangents: jax.Array,
    reward_grad: jax.Array,
    kernel_grad: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The pull-back of a chain of backups along the actions that it took.

    Args:
      kernel: `[P, A, B, O, H, W]`.
      places: what it weighs.
      futures: `[L, B, O, H, W]`, reward and value that each layer looked at.
      actions: `[L, B, O, H, W]`.
      cotangents: `[L, B, O, H, W]`, of each layer's value.
      reward_grad: `[B, O, H, W]`, added to.
      kernel_grad: `[P, A, B, O, H, W]`, added to.

    Returns:
      The cotangent of the first value, and the two gradients with this chain's share added.
    """
    back = _back(places)
    # At each state the weights by which others look at it.
    received = jnp.stack([_seen(kernel[k], (place,))[0] for k, place in enumerate(back)])

    def layer(
        carry: tuple[jax.Array, jax.Array], x: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        cotangent, reward_grad = carry
        action, own_cotangent = x
        total = cotangent + own_cotangent
        cotangent = _future_cotangent(received, back, action, total)
        return (cotangent, reward_grad + cotangent), total

    start = (jnp.zeros_like(reward_grad), reward_grad)
    (value_grad, reward_grad), totals = scan(layer, start, (actions, cotangents), reverse=True)
    group = divisor(actions.shape[0], _GROUP)
    layers = [x.reshape(-1, group, *x.shape[1:]) for x in (futures, actions, totals)]
    which = lax.broadcasted_iota(actions.dtype, (1, kernel.shape[1], 1, 1, 1, 1), 1)

    def add(kernel_grad: jax.Array, x: list[jax.Array]) -> tuple[jax.Array, None]:
        futures, actions, totals = x
        cotangents = jnp.where(actions[:, None] == which, totals[:, None], 0)
        return _add_group(kernel_grad, places, futures, cotangents), None

    return value_grad, reward_grad, lax.scan(add, kernel_grad, layers)[0]


def _future_cotangent(
    received: jax.Array, back: Places, action: jax.Array, cotangent: jax.Array
) -> jax.Array:
    """The transpose of one layer: every state collects from those that look at it.

    Args:
      received: `[P, A, B, O, H, W]`, their weights.
      back: `P` places, where they are.
      action: `[B, O, H, W]`, what they do.
      cotangent: `[B, O, H, W]`, of their values.

    Returns:
      `[B, O, H, W]`.
    """
    them = zip(received, _seen(action, back), _seen(cotangent, back), strict=True)
    return _sum(_chosen(action, list(weights)) * amount for weights, action, amount in them)


def _add_group(
    kernel_grad: jax.Array, places: Places, futures: jax.Array, cotangents: jax.Array
) -> jax.Array:
    """Adds the share of some layers to the gradient of the weights.

    Args:
      kernel_grad: `[P, A, B, O, H, W]`.
      places: what the weights weigh.
      futures: `[G, B, O, H, W]`, what the layers looked at.
      cotangents: `[G, A, B, O, H, W]`, of the Q that they made.

    Returns:
      `[P, A, B, O, H, W]`.
    """
    margins, reach = _margin(futures, places)
    origins = jnp.array([(0, turn, reach + down, reach + right) for down, right, turn in places])

    def place(number: jax.Array, grad: jax.Array) -> jax.Array:
        share = lax.dynamic_index_in_dim(grad, number, keepdims=False)
        for margin, cotangent in zip(margins, cotangents, strict=True):
            seen = lax.dynamic_slice(margin, origins[number], cotangent.shape[1:])
            share = share + cotangent * seen[None]
        return lax.dynamic_update_index_in_dim(grad, share, number, 0)

    return repeat(len(places), place, kernel_grad)


def _seen(maps: jax.Array, places: Places) -> list[jax.Array]:
    """What each state of maps `[..., O, H, W]` sees at each place, of the same shape."""
    (orientations, height, width), (margin, reach) = maps.shape[-3:], _margin(maps, places)
    return [
        margin[
            ...,
            turn : turn + orientations,
            reach + down : reach + down + height,
            reach + right : reach + right + width,
        ]
        for down, right, turn in ((*p[:2], p[2] % orientations) for p in places)
    ]


def _back(places: Places) -> Places:
    """Where those are from whom one is at these places."""
    return tuple((-down, -right, -turn) for down, right, turn in places)


def _margin(maps: jax.Array, places: Places) -> tuple[jax.Array, int]:
    """Maps `[..., O, H, W]` with zeros around, and orientations that begin anew after the last.

    Returns:
      `[..., 2O - 1, H + 2·reach, W + 2·reach]` and how far they reach.
    """
    reach = max(max(abs(down), abs(right)) for down, right, _ in places)
    around = (reach, reach)
    padded = jnp.pad(maps, [(0, 0)] * (maps.ndim - 2) + [around, around])
    return jnp.concatenate([padded, padded[..., :-1, :, :]], axis=-3), reach


def _chosen(action: jax.Array, options: list[jax.Array]) -> jax.Array:
    """The option of each state's action."""
    chosen = options[0]
    for a, option in enumerate(options[1:], 1):
        chosen = jnp.where(action == a, option, chosen)
    return chosen


def _sum(terms: Iterable[jax.Array]) -> jax.Array:
    return functools.reduce(operator.add, terms)
