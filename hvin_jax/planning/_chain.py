"""A chain of backups that is differentiated along the actions taken.

Every planner here is made of chains `V_(l+1)(s) = Q_l(s, a_l(s))`: in a VI module `a_l` is the
greedy action, in a VE module one that was sampled. Given the actions, a chain is linear in the
values, and the gradient of a maximum goes through its argument alone. So the backward pass needs
only the values and the actions of each layer — a few numbers per state where autodiff would keep
all of Q — and one rule serves all modules.

The gradient with respect to the MDP is large (the size of all rewards), and hundreds of layers add
to it. Summing it the way autodiff does would write that much memory once per chain. Instead a chain
takes a `sink`, a copy of the MDP that it hands on unread: what flows back through the sink is the
gradient so far, to which the backward pass adds in place.

Thousands of greedy layers are `segments`: of a segment only the value that it starts from is kept,
and the backward pass makes the rest again.
"""

from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._platforms import repeat, scan
from hvin_jax.planning.mdp import MDP, follow, follow_vjp

M = TypeVar("M", bound=MDP)


class Exploration(NamedTuple):
    """What a chain of VE modules does instead of acting greedily.

    Attributes:
      actions: `[L, ...]`, integers, the actions sampled for each layer.
      explore: `[L, ...]`, booleans, where to take the sampled action rather than the greedy one;
        None takes it everywhere, which never computes Q of the other actions.
    """

    actions: jax.Array
    explore: jax.Array | None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def chain(
    length: int, mdp: M, sink: M, value: jax.Array, exploration: Exploration | None
) -> tuple[jax.Array, jax.Array, M]:
    """Backs `value` up `length` times.

    Args:
      length: the number of layers `L`.
      mdp: the MDP, which must carry no gradient (`lax.stop_gradient`).
      sink: the same MDP, to which the gradient goes.
      value: the value to start from.
      exploration: how to choose actions; None is greedy.

    Returns:
      The values `[L, ...]` and the actions `[L, ...]` of each layer, these in as small a type as
      will do, and the sink.
    """
    small = jnp.int16 if mdp.num_actions <= jnp.iinfo(jnp.int16).max else jnp.int32
    if exploration is not None and exploration.explore is None:
        actions = exploration.actions
        return follow(mdp, value, actions), actions.astype(small), sink

    def layer(value: jax.Array, drawn: Exploration | None) -> tuple[jax.Array, Any]:
        best, action = _greedy(mdp, value)
        if drawn is not None and drawn.explore is not None:
            best = jnp.where(drawn.explore, mdp.q_of(value, drawn.actions), best)
            action = jnp.where(drawn.explore, drawn.actions, action)
        return best, (best, action)

    def narrow(layers: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return layers[0], layers[1].astype(small)

    _, (values, actions) = scan(layer, value, exploration, length, finish=narrow)
    return values, actions, sink


def _greedy(mdp: MDP, value: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`mdp.greedy`, with a look at what it returns: that of a user's type may be anything."""
    output = mdp.greedy(value)
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError(f"greedy must return a value and an action map, got {output!r}.")
    best, action = output
    checks.check_like("the value of greedy", best, value, "the value that it got")
    checks.check_shape("the action map of greedy", action.shape, value.shape, "value_shape")
    if not jnp.issubdtype(action.dtype, jnp.integer):
        raise TypeError(f"the action map of greedy must hold integers, got {action.dtype}.")
    return best, action.astype(jnp.int32)


def _chain_fwd(
    length: int, mdp: M, sink: M, value: jax.Array, exploration: Exploration | None
) -> tuple[Any, Any]:
    values, actions, sink = chain(length, mdp, sink, value, exploration)
    return (values, actions, sink), (mdp, value, values, actions)


def _chain_bwd(length: int, residuals: Any, cotangents: Any) -> tuple[Any, ...]:
    del length
    mdp, value, values, actions = residuals
    value_cotangents, _, sink_cotangent = cotangents
    inputs = jnp.concatenate([value[None], values[:-1]])
    value_cotangent, sink_cotangent = follow_vjp(
        mdp, inputs, actions.astype(jnp.int32), value_cotangents, sink_cotangent
    )
    sink_cotangent, value_cotangent = _once((sink_cotangent, value_cotangent))
    return None, sink_cotangent, value_cotangent, None


@jax.custom_jvp
def _once(gradients: Any) -> Any:
    """The gradients, which cannot be differentiated again.

    The residual `mdp` carries no gradient, so a second derivative would lack a part, silently.
    """
    return gradients


@_once.defjvp
def _once_jvp(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(
        "second derivatives of value_iteration and highway_vi are not available: their gradient "
        "cannot be differentiated again."
    )


chain.defvjp(_chain_fwd, _chain_bwd)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def segments(count: int, length: int, mdp: M, sink: M, value: jax.Array) -> tuple[jax.Array, M]:
    """Backs `value` up greedily in `count` segments of `length` layers.

    Args:
      count: the number of segments `S`.
      length: the number of layers of each.
      mdp: the MDP, which must carry no gradient (`lax.stop_gradient`).
      sink: the same MDP, to which the gradient goes.
      value: the value to start from.

    Returns:
      The value at the end of each segment, `[S, ...]`, and the sink.
    """

    def segment(value: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        value = repeat(length, lambda _, value: _greedy(mdp, value)[0], value)
        return value, value

    return lax.scan(segment, value, None, length=count)[1], sink


def _segments_fwd(count: int, length: int, mdp: M, sink: M, value: jax.Array) -> tuple[Any, Any]:
    values, sink = segments(count, length, mdp, sink, value)
    return (values, sink), (mdp, value, values)


def _segments_bwd(count: int, length: int, residuals: Any, cotangents: Any) -> tuple[Any, ...]:
    del count
    mdp, value, values = residuals
    value_cotangents, sink_cotangent = cotangents

    def layer(value: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        best, action = _greedy(mdp, value)
        return best, (value, action)

    def segment(carry: tuple[jax.Array, M], x: tuple[jax.Array, jax.Array]) -> Any:
        cotangent, sink_cotangent = carry
        start, own_cotangent = x
        inputs, actions = scan(layer, start, None, length)[1]
        # The cotangent of a segment is that of its last layer.
        last = cotangent + own_cotangent
        cotangents = jnp.zeros((length, *start.shape), start.dtype).at[-1].set(last)
        return follow_vjp(mdp, inputs, actions, cotangents, sink_cotangent), None

    starts = jnp.concatenate([value[None], values[:-1]])
    carry = (jnp.zeros_like(value), sink_cotangent)
    carry, _ = lax.scan(segment, carry, (starts, value_cotangents), reverse=True)
    cotangent, sink_cotangent = _once(carry)
    return None, sink_cotangent, cotangent


segments.defvjp(_segments_fwd, _segments_bwd)
