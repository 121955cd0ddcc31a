"""The frame of all models that plan by value: observation → latent MDP → value → policy."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.tree_util import Partial

from hvin_jax.models._layers import LayerPolicies, PlannerOutput, observation
from hvin_jax.planning import PlanOutput
from hvin_jax.planning import _checks as checks


@dataclasses.dataclass(frozen=True)
class PlannerCall:
    """What a call of a model carries besides the latent MDP made of it.

    Attributes:
      observed: `[B, H, W, 1 + O]`, map and goal.
      train: whether to explore.
      example_index: `[B]`, global indices of the examples, or None.
      diagnostics: whether to return the value maps and latent actions of all layers.
      policies_every: return the value after each so many layers, if not 0.
    """

    observed: jax.Array
    train: bool
    example_index: jax.Array | None
    diagnostics: bool
    policies_every: int = 0


class LatentPlanner(nn.Module):
    """A model that plans in a latent MDP made from the observation; subclasses say how.

    `SharedKernels` and `DynamicKernels` define `latent`; VINs and highway VINs define `plan`.

    Attributes:
      num_orientations: `O`, orientations of the agent (1 if it has none).
      num_actions: actions of the task.
    """

    num_orientations: int = 4
    num_actions: int = 3

    # What subclasses count, each at least 1.
    sizes: ClassVar[tuple[str, ...]] = ()

    def latent(
        self, observed: jax.Array, inside: jax.Array | None, *, train: bool
    ) -> tuple[Any, Callable[[], Partial]]:
        """The latent MDP, and what makes the head once there is a plan.

        The head makes logits `[B, H, W, O, num_actions]` of a value.

        Args:
          observed: `[B, H, W, 1 + O]`, map and goal, zero beyond the border.
          inside: `[B, H, W]`, False at cells beyond the border, whose reward and value are zero;
            None if there are none.
          train: whether the MDP is to be learned, or used.
        """
        raise TypeError(f"{type(self).__name__} must define its latent MDP.")

    def plan(self, mdp: Any, call: PlannerCall) -> PlanOutput:
        """Plans in the latent MDP."""
        raise TypeError(f"{type(self).__name__} must define how to plan.")

    def as_map(self, value: jax.Array) -> jax.Array:
        """A value (or actions) of the latent MDP as `[..., H, W, O]`."""
        return value

    @nn.compact
    def __call__(
        self,
        maze: jax.Array,
        goal: jax.Array,
        *,
        train: bool,
        inside: jax.Array | None = None,
        example_index: jax.Array | None = None,
        diagnostics: bool = False,
        policies_every: int = 0,
    ) -> PlannerOutput:
        """Plans on every map of a batch.

        Args:
          maze: `[B, H, W]`, 1 = free, of any type; maps need not be square.
          goal: `[B, H, W, O]`, 1 at the goal, of any type.
          train: whether to explore, with noise from the rng stream "exploration".
          inside: `[B, H, W]` booleans, for maps of several sizes: where the map is, the rest being
            beyond its border. The plan is that of the map alone.
          example_index: `[B]`, global indices of the examples, from which their noise is made.
          diagnostics: whether to return the value maps and latent actions of all layers.
          policies_every: return what the policy would be after each so many layers, if not 0.

        Returns:
          A `PlannerOutput`.
        """
        for name in ("num_orientations", "num_actions", *self.sizes):
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_at_least("policies_every", policies_every, 0)
        if diagnostics and policies_every:
            raise ValueError("diagnostics and policies_every exclude each other.")
        observed = observation(maze, goal, self.num_orientations, inside)
        mdp, make_head = self.latent(observed, inside, train=train)
        call = PlannerCall(observed, train, example_index, diagnostics, policies_every)
        plan = self.plan(mdp, call)
        read = make_head()
        value = self.as_map(plan.value.astype(jnp.float32))
        if not policies_every:
            values, actions = jax.tree.map(self.as_map, (plan.values, plan.actions))
            return PlannerOutput(read(plan.value), value, values, actions)
        assert plan.values is not None
        depths = policies_every * jnp.arange(1, plan.values.shape[0] + 1)
        layers = LayerPolicies(plan.values, depths, read)
        return PlannerOutput(read(plan.value), value, layers=layers)
