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
    """

    values: jax.Array
    depths: jax.Array
    read: Partial


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
      layers: with `policies_every`, the policies after each so many layers.
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


def observation(
    maze: Any, goal: Any, num_orientations: int, inside: jax.Array | None = None
) -> jax.Array:
    """Joins the inputs of a model, after checking them, to `[B, H, W, 1 + O]` float32.

    Args:
      maze: `[B, H, W]` of any type, 1 = free (or the probability that a cell is free).
      goal: `[B, H, W, O]` of any type, 1 at the goal.
      num_orientations: `O`.
      inside: `[B, H, W]` booleans, False beyond the border, where all is zero.
    """
    maze, goal = jnp.asarray(maze), jnp.asarray(goal)
    checks.check_rank("maze", maze, 3, "[B, H, W]")
    checks.check_shape("goal", goal.shape, (*maze.shape, num_orientations), "[B, H, W, O]")
    joined = [maze[..., None].astype(jnp.float32), goal.astype(jnp.float32)]
    observed = jnp.concatenate(joined, axis=-1)
    if inside is None:
        return observed
    checks.check_shape("inside", inside.shape, maze.shape, "[B, H, W]")
    return jnp.where(inside[..., None], observed, 0)
