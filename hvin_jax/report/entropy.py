"""How diverse the latent actions are that the layers of a planner choose."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.planner import Planner
from hvin_jax.tasks.maze_data import MazeData


def latent_action_entropy(
    planner: Planner, data: MazeData, *, seed: int = 0, batch_size: int = 16
) -> float:
    """The entropy of the latent actions over layers, averaged over all states, in nats.

    Per state, p(a) is the share of layers, VI and VE, that choose latent action a, with exploration
    on as in training; the entropy is -Σ_a p(a) log p(a).

    Args:
      planner: of a model that has latent actions.
      data: the mazes.
      seed: of the exploration.
      batch_size: mazes at once.
    """
    goals = data.goal_maps()
    keys = jax.random.split(jax.random.key(seed), -(-len(data) // batch_size))
    parts = []
    for key, start in zip(keys, range(0, len(data), batch_size), strict=True):
        batch = slice(start, start + batch_size)
        parts.append(_entropy(planner.model, planner.params, key, data.maze[batch], goals[batch]))
    return float(np.concatenate([np.asarray(part) for part in parts]).mean())


@functools.partial(jax.jit, static_argnames="model")
def _entropy(
    model: Any, params: Any, key: jax.Array, maze: jax.Array, goal: jax.Array
) -> jax.Array:
    """`[B]`, of maps `[B, H, W]` with goals `[B, H, W, O]`."""
    output = model.apply(
        params, maze, goal, train=True, diagnostics=True, rngs={"exploration": key}
    )
    layers = output.actions.shape[0]

    def count(counts: jax.Array, action: jax.Array) -> tuple[jax.Array, None]:
        return counts + jax.nn.one_hot(action, model.latent_actions, dtype=jnp.float32), None

    zero = jnp.zeros((*goal.shape, model.latent_actions), jnp.float32)
    counts, _ = jax.lax.scan(count, zero, output.actions)
    share = counts / layers
    return -jnp.sum(jax.scipy.special.xlogy(share, share), axis=-1).mean(axis=(1, 2, 3))
