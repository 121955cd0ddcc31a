"""What agents meet with when they follow a policy, and how much better it was than expected."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.tasks.environment import MazeEnv


class Walks(NamedTuple):
    """What agents have met with, `[T, ...]`.

    Attributes:
      agent: int32 `[T, ..., 3]`, where they were.
      action: int32, what they did.
      log_prob: float32, log π of it.
      reward: float32, what they got.
      discount: float32, 0 where that terminated the episode, else 1.
      last: whether it ended the episode.
      next_agent: int32 `[T, ..., 3]`, where it led them.
    """

    agent: jax.Array
    action: jax.Array
    log_prob: jax.Array
    reward: jax.Array
    discount: jax.Array
    last: jax.Array
    next_agent: jax.Array


def advantages(
    reward: jax.Array,
    discount: jax.Array,
    last: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    *,
    trace: float,
) -> jax.Array:
    """Generalised advantage estimates (Schulman et al., 2016).

    δ_t = r_t + γ_t V(s'_t) - V(s_t) and A_t = δ_t + γ_t λ A_{t+1}, without the second part where an
    episode ends. An episode that is truncated counts on with the critic's value.

    Args:
      reward: `[T, ...]`.
      discount: `[T, ...]`, γ_t, 0 where the episode terminates.
      last: bool `[T, ...]`, where it terminates or is truncated.
      value: `[T, ...]`, of the state before the action.
      next_value: `[T, ...]`, of the state that the action led to.
      trace: λ.

    Returns:
      `[T, ...]`.
    """
    delta = reward + discount * next_value - value
    carried = trace * discount * (1 - last.astype(delta.dtype))

    def back(following: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        advantage = now[0] + now[1] * following
        return advantage, advantage

    return lax.scan(back, jnp.zeros_like(delta[0]), (delta, carried), reverse=True)[1]


def walk(
    env: MazeEnv, logits: jax.Array, key: jax.Array, *, num_agents: int, num_steps: int
) -> Walks:
    """Lets agents walk on one map by a policy; where an episode ends, another begins.

    Args:
      env: the environment of a single map, see `MazeEnv.only`.
      logits: `[H, W, O, A]`.
      key: a typed PRNG key, which is consumed.
      num_agents: how many agents, each from a start of its own.
      num_steps: `T`, how many actions.

    Returns:
      Arrays `[T, num_agents, ...]`.
    """
    of_starts, of_actions = jax.random.split(key)
    log_probs = jax.nn.log_softmax(logits)

    def act(state: Any, key: jax.Array) -> tuple[Any, Walks]:
        agent = state.agent
        here = at(log_probs, agent)
        action = jax.random.categorical(key, here)
        state, timestep = jax.vmap(env.step)(state, action)
        met = Walks(
            agent=agent,
            action=action,
            log_prob=of_action(here, action),
            reward=timestep.reward,
            discount=timestep.discount,
            last=timestep.last,
            next_agent=timestep.next_observation.agent,
        )
        return state, met

    states, _ = jax.vmap(env.reset)(jax.random.split(of_starts, num_agents))
    return lax.scan(act, states, jax.random.split(of_actions, num_steps))[1]


def at(table: jax.Array, agent: jax.Array) -> jax.Array:
    """What a table `[H, W, O, ...]` has at states `[..., 3]`."""
    return table[agent[..., 0], agent[..., 1], agent[..., 2]]


def of_action(table: jax.Array, action: jax.Array) -> jax.Array:
    """What a table `[..., A]` has at actions `[...]`."""
    return jnp.take_along_axis(table, action[..., None], axis=-1)[..., 0]
