"""The value iteration network (Tamar et al., 2016), the baseline."""

from typing import ClassVar

import jax

from hvin_jax.models.latent_planner import LatentPlanner
from hvin_jax.planning import ConvMDP, PlanOutput, value_iteration


class VIN(LatentPlanner):
    """A value iteration network: `depth` VI modules in a row.

    Attributes:
      depth: `N`, the number of VI modules.
    """

    depth: int = 20

    sizes: ClassVar[tuple[str, ...]] = ("depth",)

    def plan(
        self,
        mdp: ConvMDP,
        observed: jax.Array,
        train: bool,
        example_index: jax.Array | None,
        diagnostics: bool,
    ) -> PlanOutput:
        """Value iteration; there is nothing to explore."""
        del observed, train, example_index
        return value_iteration(
            mdp, num_iterations=self.depth, return_values=diagnostics, return_actions=diagnostics
        )
