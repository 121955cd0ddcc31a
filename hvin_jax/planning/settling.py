"""Planning as deep as it takes: block after block, until nothing changes any more."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

# A value moves on steadily when no watched state's gain differs from its gain before by more than
# this share of the largest gain. Where a front arrives, it differs by nearly all of it.
_STEADY = 0.05
# So many checks in a row have to find nothing new.
_CALM = 2
# What rounding explains, in units of the type's precision.
_ROUNDING = 8


def until_settled(
    advance: Callable[[jax.Array, jax.Array], jax.Array],
    look: Callable[[jax.Array], tuple[jax.Array, jax.Array]],
    v0: jax.Array,
    *,
    watched: jax.Array,
    check_every: int,
    limit: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Goes on from a value, block after block, until a policy no longer changes.

    Without a discount values grow for ever, and a policy may stand still while news of the goal
    is still on its way, along a corridor where it was right by chance. So each example goes on
    until two successive checks have found both of this at all watched states:

    * the action of the check before is still the best one, up to rounding;
    * the gain, by how much the value has grown since the check before, is what it was then. It is
      one where news has come from the goal and another where it has not, so that a front on its
      way always shows.

    An example that has settled stays as it is: none depends on the others. One whose value would
    overflow ends with the value before. Not differentiable.

    Args:
      advance: makes the value after a block from the value before and the number of the block.
      look: makes of a value the map `[B, H, W, O]` and logits `[B, H, W, O, A]`.
      v0: the value to start from, `[B, ...]`.
      watched: `[B, H, W]` booleans, where to look.
      check_every: blocks between two checks.
      limit: `[B]`, how many blocks each example may take; checks are not made in between.

    Returns:
      The value, and the number of blocks `[B]`.
    """
    states = watched[..., None]

    def most(x: jax.Array) -> jax.Array:
        """The largest amount of each example, `[B, 1, 1, 1]`."""
        return jnp.max(jnp.abs(jnp.where(states, x, 0)), axis=(1, 2, 3), keepdims=True)

    def holds(x: jax.Array) -> jax.Array:
        return jnp.all(x | ~states, axis=(1, 2, 3))

    def running(state: tuple[jax.Array, ...]) -> jax.Array:
        blocks, calm = state[-2:]
        return (calm < _CALM) & (blocks < limit)

    def check(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        value, gain, action, count, blocks, calm = state
        new = lax.fori_loop(0, check_every, lambda i, v: advance(v, count + i), value)
        before, (after, logits) = look(value)[0], look(new)
        rounding = jnp.finfo(value.dtype).eps * _ROUNDING * most(after)
        lost = logits.max(-1) - jnp.take_along_axis(logits, action[..., None], -1)[..., 0]
        steps = after - before
        steady = jnp.abs(steps - gain) <= _STEADY * most(steps) + rounding
        calm_now = jnp.where(holds((lost <= rounding) & steady), calm + 1, 0)

        sound = jnp.isfinite(new).all(axis=tuple(range(1, new.ndim)))
        going = running(state)
        go = going & sound
        # Who can't go on has nothing to wait for.
        calm = jnp.where(go, calm_now, jnp.where(going, _CALM, calm))
        blocks = jnp.where(go, count + check_every, blocks)
        best = logits.argmax(-1).astype(action.dtype)
        value = jnp.where(go.reshape(-1, *[1] * (value.ndim - 1)), new, value)
        return value, steps, best, count + check_every, blocks, calm

    first, logits = look(v0)
    none = jnp.zeros(len(v0), jnp.int32)
    action = jnp.zeros(logits.shape[:-1], jnp.int32)
    start: tuple[jax.Array, ...] = (v0, jnp.zeros_like(first), action, none[0], none, none)
    end = lax.while_loop(lambda state: running(state).any(), check, start)
    return end[0], end[-2]
