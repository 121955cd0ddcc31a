"""The frame of all models that plan by value: observation → latent MDP → value → policy."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from jax.tree_util import Partial

from hvin_jax.models._layers import LayerPolicies, PlannerOutput, observation
from hvin_jax.planning import PlanOutput
from hvin_jax.planning import _checks as checks
from hvin_jax.planning.mdp import zero_value
from hvin_jax.planning.settling import until_settled

# With `layers="auto"`, so many layers (in whole blocks) lie between two looks at the policy. ...
_CHECK_EVERY = 10
# ... and there are at most so many for each free cell. A path visits a cell once and turns there at
# most once, so no shortest path has more than two actions a cell; and news of the goal took up to
# four layers for an action in the longest corridors that a DT-VIN could still follow.
_MOST_PER_CELL = 8
# Layers are counted by int32.
_MOST = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class PlannerCall:
    """What a call of a model carries besides the latent MDP made of it.

    Attributes:
      observed: `[B, H, W, C]`, map and goal, see `observation`.
      train: whether to explore.
      example_index: `[B]`, global indices of the examples, or None.
      diagnostics: whether to return the value maps and latent actions of all layers.
      policies_every: return the value after each so many layers, if not 0.
      first: the value to begin with; None: zero.
    """

    observed: jax.Array
    train: bool
    example_index: jax.Array | None
    diagnostics: bool
    policies_every: int = 0
    first: jax.Array | None = None


class LatentPlanner(nn.Module):
    """A model that plans in a latent MDP made from the observation; subclasses say how.

    `SharedKernels` and `DynamicKernels` define `latent`; VINs and highway VINs define `plan`.

    Attributes:
      num_orientations: `O`, orientations of the agent (1 if it has none).
      num_actions: actions of the task.
      terrain: whether it knows what cells cost.
    """

    num_orientations: int = 4
    num_actions: int = 3
    terrain: bool = False

    # What subclasses count, each at least 1.
    sizes: ClassVar[tuple[str, ...]] = ()

    def latent(
        self, observed: jax.Array, inside: jax.Array | None, *, train: bool
    ) -> tuple[Any, Callable[[], Partial]]:
        """The latent MDP, and what makes the head once there is a plan.

        The head makes logits `[B, H, W, O, num_actions]` of a value.

        Args:
          observed: `[B, H, W, C]`, map and goal, zero beyond the border, see `observation`.
          inside: `[B, H, W]`, False at cells beyond the border, whose reward and value are zero;
            None if there are none.
          train: whether the MDP is to be learned, or used.
        """
        raise TypeError(f"{type(self).__name__} must define its latent MDP.")

    def first_value(self, observed: jax.Array, inside: jax.Array | None) -> jax.Array | None:
        """The value of the latent MDP to begin with, None: zero; arguments as of `latent`."""
        del observed, inside
        return None

    def plan(self, mdp: Any, call: PlannerCall) -> PlanOutput:
        """Plans in the latent MDP."""
        raise TypeError(f"{type(self).__name__} must define how to plan.")

    @property
    def num_layers(self) -> int | None:
        """How many layers the model has, as it is trained; None if it does not say."""
        return None

    @property
    def block_layers(self) -> int:
        """How many layers `advance` goes on by."""
        return 1

    def advance(self, mdp: Any, call: PlannerCall) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """What makes the value after a block from the value before and the block's number.

        It is for planning as deep as one likes; the number may be any.
        """
        raise TypeError(f"{type(self).__name__} must define how to go on.")

    def watched(
        self, mdp: Any, call: PlannerCall
    ) -> Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]] | None:
        """As `advance`, with what the block's filter gate let through; None if there is none."""
        del mdp, call
        return None

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
        layers: int | str | None = None,
        cost: jax.Array | None = None,
        stops: jax.Array | None = None,
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
          layers: how many layers to plan with, in evaluation: a number; "auto": as many as each map
            needs, until the policy at its free cells no longer changes; None: the model's own, as
            in training. Beyond its own number, the last block is repeated.
          cost: `[B, H, W]`, what it costs to enter each cell, for models with `terrain`; None:
            everywhere the same.
          stops: `[M]` integers that never fall, in evaluation: return what the policy would be
            after each of these numbers of blocks (layers, for models without blocks), which may be
            beyond the model's own. The last is where planning ends.

        Returns:
          A `PlannerOutput`.
        """
        for name in ("num_orientations", "num_actions", *self.sizes):
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_at_least("policies_every", policies_every, 0)
        if diagnostics and policies_every:
            raise ValueError("diagnostics and policies_every exclude each other.")
        observed = observation(
            maze, goal, self.num_orientations, inside, terrain=self.terrain, cost=cost
        )
        mdp, make_head = self.latent(observed, inside, train=train)
        first = self.first_value(observed, inside)
        call = PlannerCall(observed, train, example_index, diagnostics, policies_every, first)
        asked = [layers is not None, stops is not None]
        if any(asked) and (train or diagnostics or policies_every or all(asked)):
            raise ValueError(
                "layers is for evaluation, as stops is: without train, returned layers, each other."
            )
        if stops is not None:
            return self._with_stops(mdp, make_head(), call, stops)
        if layers is not None:
            return self._as_deep(mdp, make_head(), call, layers)
        plan = self.plan(mdp, call)
        read = make_head()
        value = self.as_map(plan.value.astype(jnp.float32))
        if not policies_every:
            values, actions = jax.tree.map(self.as_map, (plan.values, plan.actions))
            return PlannerOutput(read(plan.value), value, values, actions)
        assert plan.values is not None
        depths = policies_every * jnp.arange(1, plan.values.shape[0] + 1)
        policies = LayerPolicies(plan.values, depths, read)
        return PlannerOutput(read(plan.value), value, layers=policies)

    def _as_deep(
        self, mdp: Any, read: Partial, call: PlannerCall, layers: int | str
    ) -> PlannerOutput:
        """Plans with other than the model's own number of layers."""
        advance, per_block = self.advance(mdp, call), self.block_layers
        value = zero_value(mdp) if call.first is None else call.first

        def look(value: jax.Array) -> tuple[jax.Array, jax.Array]:
            return self.as_map(value.astype(jnp.float32)), read(value)

        if layers == "auto":
            free = call.observed[..., 0] > 0.5
            most = jnp.maximum(_MOST_PER_CELL * free.sum((1, 2)), self.num_layers or 0)
            value, blocks = until_settled(
                advance,
                look,
                value,
                watched=free,
                check_every=-(-_CHECK_EVERY // per_block),
                limit=most // per_block,
            )
        else:
            is_whole = isinstance(layers, int | np.integer) and not isinstance(layers, bool)
            number = int(layers) if is_whole else 0
            if not 1 <= number <= _MOST or number % per_block:
                whole = f"a whole one from 1 to {_MOST:,}"
                if per_block > 1:
                    whole += f", a multiple of {per_block}, the layers of a block"
                raise ValueError(
                    f'layers is {layers!r}, expected "auto", "own" or a number: {whole}.'
                )
            count = number // per_block
            value = lax.fori_loop(0, count, lambda i, value: advance(value, i), value)
            blocks = jnp.full(len(value), count)
        seen, logits = look(value)
        return PlannerOutput(logits, seen, depth=per_block * blocks)

    def _with_stops(
        self, mdp: Any, read: Partial, call: PlannerCall, stops: jax.Array
    ) -> PlannerOutput:
        """Plans with a look at the value at each stop."""
        watched = self.watched(mdp, call)
        first = zero_value(mdp) if call.first is None else call.first
        nothing = None if watched is None else jnp.zeros_like(first)
        advance = self.advance(mdp, call) if watched is None else None

        def block(value: jax.Array, number: jax.Array) -> tuple[jax.Array, Any]:
            if watched is not None:
                return watched(value, number)
            assert advance is not None
            return advance(value, number), None

        def go(value: jax.Array, begin: jax.Array, end: jax.Array) -> tuple[jax.Array, Any]:
            value = lax.fori_loop(begin, end - 1, lambda i, value: block(value, i)[0], value)
            return block(value, end - 1)

        def stop(carry: tuple[jax.Array, jax.Array, Any], end: jax.Array) -> tuple[Any, Any]:
            value, begin, passed = carry
            value, passed = lax.cond(
                end > begin, go, lambda value, *_: (value, passed), value, begin, end
            )
            return (value, end, passed), (value, passed)

        start = (first, jnp.zeros((), stops.dtype), nothing)
        (value, last, _), (values, passed) = lax.scan(stop, start, stops)
        depths = self.block_layers * stops
        passed = None if passed is None else self.as_map(passed)
        layers = LayerPolicies(values, depths, read, passed)
        depth = jnp.full(len(value), self.block_layers * last)
        seen = self.as_map(value.astype(jnp.float32))
        return PlannerOutput(read(value), seen, layers=layers, depth=depth)
