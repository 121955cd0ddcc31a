"""The plain way to write a highway VIN: every layer convolves to all latent actions.

This is what a direct translation of the paper looks like, and what the library is measured
against: `lax.conv_general_dilated` over all `O·A` channels in every layer, a maximum (VI) or a
one-hot pick (VE), autodiff, rematerialised per block so that it fits into memory.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.models import HighwayVIN
from hvin_jax.models._layers import observation


def dense_logits(
    model: HighwayVIN,
    params: Any,
    maze: jax.Array,
    goal: jax.Array,
    actions: jax.Array,
) -> jax.Array:
    """The logits of `model` in training, computed densely.

    Args:
      model: the highway VIN, with one chain per block.
      params: its parameters.
      maze: `[B, H, W]`.
      goal: `[B, H, W, O]`.
      actions: `[num_blocks, block_depth - 1, B, H, W, O]`, drawn beforehand.

    Returns:
      `[B, H, W, O, num_actions]`.
    """
    orientations, latent = model.num_orientations, model.latent_actions
    observed = observation(maze, goal, orientations).astype(params["reward"].dtype)
    hidden_kernel = params["hidden_kernel"].reshape(3, 3, observed.shape[-1], -1)
    hidden = _conv(observed, hidden_kernel) + params["hidden_bias"]
    reward = hidden @ params["reward"]
    kernels = jnp.concatenate([params["reward_kernel"], params["value_kernel"]], axis=2)
    kernels = kernels.reshape(*kernels.shape[:3], -1)

    def q_of(value: jax.Array) -> jax.Array:
        q = _conv(jnp.concatenate([reward, value], axis=-1), kernels)
        return q.reshape(*value.shape, latent)

    @jax.checkpoint
    def block(value: jax.Array, x: Any) -> tuple[jax.Array, None]:
        alpha, actions = x
        first = q_of(value).max(-1)

        def explore(value: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
            value = jnp.sum(
                jax.nn.one_hot(action, latent, dtype=value.dtype) * q_of(value), axis=-1
            )
            return value, value

        _, later = lax.scan(explore, first, actions)
        values = jnp.maximum(jnp.concatenate([first[None], later]), first)
        return jnp.sum(jax.nn.softmax(alpha * values, axis=0) * values, axis=0), None

    value, _ = lax.scan(block, jnp.zeros_like(reward), (params["alpha"], actions))
    q = q_of(value).reshape(*reward.shape[:-1], -1)
    return (q @ params["policy"]).reshape(*reward.shape, model.num_actions)


def _conv(maps: jax.Array, kernel: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        maps, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
