"""VIN, the paper's baseline, and DT-VIN, its successor with kernels of each state's own."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax

from hvin_jax.models.dynamic_kernels import DynamicKernels
from hvin_jax.models.latent_planner import LatentPlanner, PlannerCall
from hvin_jax.models.shared_kernels import SharedKernels
from hvin_jax.planning import PlanOutput, value_iteration


class ValueIteration(LatentPlanner):
    """`depth` VI modules in a row, in whatever latent MDP.

    Attributes:
      depth: `N`, the number of VI modules.
    """

    depth: int = 20

    sizes: ClassVar[tuple[str, ...]] = ("depth",)

    @property
    def num_layers(self) -> int:
        """`N`."""
        return self.depth

    @property
    def keep_every(self) -> int | None:
        """So many layers apart values are kept for the gradient; None: all of them."""
        return None

    def plan(self, mdp: Any, call: PlannerCall) -> PlanOutput:
        """Value iteration; there is nothing to explore."""
        if call.policies_every and self.depth % call.policies_every:
            raise ValueError(
                f"{self.depth} layers do not end with a policy after each {call.policies_every}: "
                "the depth must be a multiple of it."
            )
        return value_iteration(
            mdp,
            num_iterations=self.depth,
            v0=call.first,
            keep_every=None if call.diagnostics else call.policies_every or self.keep_every,
            return_values=call.diagnostics or bool(call.policies_every),
            return_actions=call.diagnostics,
        )

    def advance(self, mdp: Any, call: PlannerCall) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """A VI module."""
        del call
        return lambda value, _: mdp.greedy(value)[0]


class VIN(ValueIteration, SharedKernels):
    """A value iteration network: `depth` VI modules in a row."""


class DTVIN(ValueIteration, DynamicKernels):
    """A dynamic transition VIN (ICML 2025): `depth` VI modules, kernels for every state.

    Of thousands of layers, gradients keep the values of √depth and make the others again.
    """

    @property
    def keep_every(self) -> int:
        """How many layers apart."""
        return math.isqrt(self.depth)
