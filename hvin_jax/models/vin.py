"""The value iteration network (Tamar et al., 2016), the baseline."""

from typing import ClassVar

from hvin_jax.models.latent_planner import LatentPlanner, PlannerCall
from hvin_jax.planning import ConvMDP, PlanOutput, value_iteration


class VIN(LatentPlanner):
    """A value iteration network: `depth` VI modules in a row.

    Attributes:
      depth: `N`, the number of VI modules.
    """

    depth: int = 20

    sizes: ClassVar[tuple[str, ...]] = ("depth",)

    def plan(self, mdp: ConvMDP, call: PlannerCall) -> PlanOutput:
        """Value iteration; there is nothing to explore."""
        return value_iteration(
            mdp,
            num_iterations=self.depth,
            return_values=call.diagnostics,
            return_actions=call.diagnostics,
        )
