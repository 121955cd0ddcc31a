"""An MDP on maps of several sizes: what lies beyond a map has the value zero, and keeps it."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bounded:
    """A batched MDP in which some states lie beyond the border.

    Attributes:
      mdp: the MDP.
      inside: booleans of the MDP's `value_shape`, False beyond the border.
    """

    mdp: Any
    inside: jax.Array

    batched = True

    @property
    def num_actions(self) -> int:
        """That of the MDP."""
        return self.mdp.num_actions

    @property
    def value_shape(self) -> tuple[int, ...]:
        """That of the MDP."""
        return self.mdp.value_shape

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Zero beyond the border."""
        best, action = self.mdp.greedy(value)
        return jnp.where(self.inside, best, 0), action

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """Zero beyond the border."""
        return jnp.where(self.inside, self.mdp.q_of(value, action), 0)

    def q(self, value: jax.Array) -> jax.Array:
        """Zero beyond the border."""
        return jnp.where(self.inside[..., None], self.mdp.q(value), 0)
