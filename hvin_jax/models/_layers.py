"""What all models share: initialisers, input checks, the output type."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from hvin_jax.planning import _checks as checks

Initializer = Callable[..., jax.Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LayerPolicies:
    """What the policy would be if planning stopped after some of the layers.

    Attributes:
      values: `[M, ...]`, the value of the latent MDP after each of these layers.
      depths: `[M]`, after how many layers each of them is.
      read: makes logits `[B, H, W, O, num_actions]` of such a value; a pytree, so that it has
        gradients.
      passed: `[M, B, H, W, O]`, the share of the last block's VE modules that its filter gate let
        through; None for models without one.
    """

    values: jax.Array
    depths: jax.Array
    read: Partial
    passed: jax.Array | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PlannerOutput:
    """What every model returns.

    Attributes:
      logits: `[B, H, W, O, num_actions]`, the policy at every state.
      value: `[B, H, W, O]`, the final value map; None for GPPN, which has none.
      values: with `diagnostics=True`, the value map after each layer (VIN) or block (highway
        models), `[N, B, H, W, O]`.
      actions: with `diagnostics=True`, the latent actions of each layer, `[N, B, H, W, O]`; with
        several chains per block, all their layers: `[N_B·(1 + N_p·(N_b - 1)), B, H, W, O]`.
      map_logits: `[B, H, W]`, log-odds that a cell is free, of models that see views of a maze in
        place of its map.
      layers: with `policies_every` or `stops`, the policies after some of the layers.
      depth: with `layers`, how many layers each map was planned with, `[B]`.
    """

    logits: jax.Array
    value: jax.Array | None = None
    values: jax.Array | None = None
    actions: jax.Array | None = None
    map_logits: jax.Array | None = None
    layers: LayerPolicies | None = None
    depth: jax.Array | None = None


def uniform_fan_in(fan_in: int) -> Initializer:
    """Uniform in ±1/√fan_in, the initialisation of the paper's baselines."""

    def init(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
        bound = fan_in**-0.5
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return init


def first_at(init: Initializer, values: Any, *, axis: int) -> Initializer:
    """The first entry of an axis at these values, the others as they are."""

    def first(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
        drawn = jnp.moveaxis(init(key, shape, dtype), axis, 0)
        return jnp.moveaxis(drawn.at[0].set(jnp.asarray(values, dtype)), 0, axis)

    return first


def starting_at(values: Any) -> Initializer:
    """Always the same numbers."""

    def init(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
        del key
        return jnp.asarray(values, dtype).reshape(shape)

    return init


def observation(
    maze: Any,
    goal: Any,
    num_orientations: int,
    inside: jax.Array | None = None,
    *,
    terrain: bool = False,
    cost: Any = None,
) -> jax.Array:
    """Joins the inputs of a model, after checking them, to `[B, H, W, C]` float32.

    There are `C = 1 + O` channels, map and goal, and with `terrain` two more: what cells cost
    relative to the mean of the map, since only ratios matter, 0 at walls; and the same at goals
    alone. To stay at a goal should cost nothing, whatever its cell costs, which a reward that is
    linear in the first of them could not say.

    Args:
      maze: `[B, H, W]` of any type, 1 = free (or the probability that a cell is free).
      goal: `[B, H, W, O]` of any type, 1 at the goal.
      num_orientations: `O`.
      inside: `[B, H, W]` booleans, False beyond the border, where all is zero.
      terrain: whether the model knows costs.
      cost: `[B, H, W]`, what it costs to enter each cell; None: everywhere the same.
    """
    maze, goal = jnp.asarray(maze), jnp.asarray(goal)
    checks.check_rank("maze", maze, 3, "[B, H, W]")
    checks.check_shape("goal", goal.shape, (*maze.shape, num_orientations), "[B, H, W, O]")
    joined = [maze[..., None].astype(jnp.float32), goal.astype(jnp.float32)]
    if terrain:
        relative = _relative_cost(joined[0], cost)
        joined += [relative, relative * joined[1].max(-1, keepdims=True)]
    elif cost is not None:
        raise ValueError("this model was made for maps without costs; make it with terrain=True.")
    observed = jnp.concatenate(joined, axis=-1)
    if inside is None:
        return observed
    checks.check_shape("inside", inside.shape, maze.shape, "[B, H, W]")
    return jnp.where(inside[..., None], observed, 0)


def _relative_cost(free: jax.Array, cost: Any) -> jax.Array:
    """The costs `[B, H, W, 1]` of free cells, 1 on average; 0 at walls, whatever they cost."""
    if cost is None:
        return free
    cost = jnp.asarray(cost)
    checks.check_shape("cost", cost.shape, free.shape[:3], "[B, H, W]")
    paid = jnp.where(free > 0, cost[..., None].astype(jnp.float32), 0)
    total = jnp.sum(paid, axis=(1, 2), keepdims=True)
    count = jnp.sum((free > 0).astype(jnp.float32), axis=(1, 2), keepdims=True)
    return paid * count / jnp.where(total > 0, total, 1)
