"""Highway network and highway VINs: VI and VE modules in blocks with gates."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from jax.tree_util import Partial

from hvin_jax.models._layers import uniform_fan_in
from hvin_jax.models.dynamic_kernels import DynamicKernels
from hvin_jax.models.latent_planner import LatentPlanner, PlannerCall
from hvin_jax.models.shared_kernels import SharedKernels
from hvin_jax.planning import PlanOutput, highway_vi
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._products import einsum


class _InBlocks:
    """How deep a model of `num_blocks` blocks of `block_depth` layers is."""

    num_blocks: int
    block_depth: int

    @property
    def num_layers(self) -> int:
        """`N`."""
        return self.num_blocks * self.block_depth

    @property
    def block_layers(self) -> int:
        """`N_b`."""
        return self.block_depth


class HighwayNetwork(_InBlocks, SharedKernels):
    """VI modules in blocks with skip connections: the softmax gate over depth, and nothing else.

    Attributes:
      num_blocks: `N_B`.
      block_depth: `N_b`; the network has `N = N_B · N_b` layers.
    """

    num_blocks: int = 20
    block_depth: int = 5

    sizes: ClassVar[tuple[str, ...]] = ("num_blocks", "block_depth")

    def plan(self, mdp: Any, call: PlannerCall) -> PlanOutput:
        """Greedy chains under an aggregate gate, without a filter gate."""
        return by_layers(
            highway_vi(
                None,
                mdp,
                num_blocks=self.num_blocks,
                block_depth=self.block_depth,
                alpha=self._alpha(),
                filter_gate=False,
                v0=call.first,
                return_values=call.diagnostics or bool(call.policies_every),
                return_actions=call.diagnostics,
            ),
            self.block_depth,
            call,
        )

    def advance(self, mdp: Any, call: PlannerCall) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """A block; beyond the last its temperature stays."""
        del call
        alpha = self._alpha()

        def block(value: jax.Array, number: jax.Array) -> jax.Array:
            return highway_vi(
                None,
                mdp,
                num_blocks=1,
                block_depth=self.block_depth,
                alpha=alpha[jnp.minimum(number, self.num_blocks - 1)],
                filter_gate=False,
                v0=value,
            ).value

        return block

    def _alpha(self) -> jax.Array:
        return self.param("alpha", nn.initializers.ones, (self.num_blocks,), jnp.float32)


class HighwayBlocks(_InBlocks, LatentPlanner):
    """Highway blocks of VI and VE modules, in whatever latent MDP.

    Attributes:
      num_blocks: `N_B`, highway blocks.
      block_depth: `N_b`, layers in a block; the network has `N = N_B · N_b` layers.
      num_policies: `N_p`, parallel chains of VE modules in a block.
      epsilon: the embedded exploration rate ε in [0, 1].
      filter_gate: whether blocks have the filter gate.
      value_exploration: whether blocks have VE modules; if not, VI modules stand in their place.
      share_exploration: whether all examples of a batch explore alike, which at ε = 1 is faster:
        with 16 examples or more on a device, a training step takes a fifth less time
        (benchmarks/README.md).
      initial_temperature: what the temperatures α and α̃ of each block start at.
      learn_temperatures: whether the temperatures are parameters.
      positive_temperatures: whether they stay positive, as the softplus of the parameters. What is
        learned is negative otherwise where layers explore, and shuts out what they find.
      learned_policy: whether VE modules mix actions by a learnable map of Q and the observation
        instead of drawing one: π = softmax(τ Q + U φ), with a τ for each layer and a U for each
        chain, in training and in evaluation.
      learned_gate: whether the gate over depth is a learnable map of the values and the
        observation: A = softmax(α V' + U φ), with a U for each block.
    """

    num_blocks: int = 20
    block_depth: int = 5
    num_policies: int = 1
    epsilon: float = 1.0
    filter_gate: bool = True
    value_exploration: bool = True
    share_exploration: bool = False
    initial_temperature: float = 1.0
    learn_temperatures: bool = True
    positive_temperatures: bool = False
    learned_policy: bool = False
    learned_gate: bool = False

    sizes: ClassVar[tuple[str, ...]] = ("num_blocks", "block_depth", "num_policies")

    def plan(self, mdp: Any, call: PlannerCall) -> PlanOutput:
        """Highway value iteration in the latent MDP."""
        explores = call.train and self.value_exploration and not self.learned_policy
        return by_layers(
            highway_vi(
                typed_key(self.make_rng("exploration")) if explores else None,
                mdp,
                num_blocks=self.num_blocks,
                epsilon=self.epsilon,
                v0=call.first,
                example_index=call.example_index,
                share_exploration=self.share_exploration,
                return_values=call.diagnostics or bool(call.policies_every),
                return_actions=call.diagnostics,
                **self._parts(mdp, call),
            ),
            self.block_depth,
            call,
        )

    def advance(self, mdp: Any, call: PlannerCall) -> Callable[[jax.Array, jax.Array], jax.Array]:
        """A block without exploration; beyond the last, its parameters stay."""
        block = self._block(mdp, call)
        return lambda value, number: block(value, number).value

    def watched(
        self, mdp: Any, call: PlannerCall
    ) -> Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]] | None:
        """A block with what its filter gate let through, if it has one."""
        if not self.filter_gate or self.block_depth < 2:
            return None
        block = self._block(mdp, call, return_passed=True)

        def watched(value: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
            output = block(value, number)
            assert output.passed is not None
            return output.value, output.passed[0]

        return watched

    def _block(
        self, mdp: Any, call: PlannerCall, *, return_passed: bool = False
    ) -> Callable[[jax.Array, jax.Array], PlanOutput]:
        """One block."""
        parts = self._parts(mdp, call)

        def block(value: jax.Array, number: jax.Array) -> PlanOutput:
            own = jnp.minimum(number, self.num_blocks - 1)
            of_block = {
                **parts,
                **{name: parts[name][own] for name in ("alpha", "alpha_tilde")},
                **{name: _of_block(parts[name], own) for name in ("policy", "depth_gate")},
            }
            return highway_vi(
                None, mdp, num_blocks=1, v0=value, return_passed=return_passed, **of_block
            )

        return block

    def _parts(self, mdp: Any, call: PlannerCall) -> dict[str, Any]:
        """What blocks are made of: arguments of `highway_vi`."""
        alpha, alpha_tilde = self._temperature("alpha"), self._temperature("alpha_tilde")
        return {
            "block_depth": self.block_depth,
            "num_policies": self.num_policies,
            "alpha": alpha,
            "alpha_tilde": alpha_tilde,
            "filter_gate": self.filter_gate,
            "policy": self._policy(call.observed, mdp.num_actions) if self.learned_policy else None,
            "depth_gate": self._gate(call.observed, alpha) if self.learned_gate else None,
        }

    def _temperature(self, name: str) -> jax.Array:
        start = self.initial_temperature
        checks.check_finite("initial_temperature", start)
        if self.positive_temperatures and not 0 < start < 80:
            raise ValueError(
                f"initial_temperature is {start}, expected a number between 0 and 80 with "
                "positive_temperatures."
            )
        if not self.learn_temperatures:
            return jnp.full((self.num_blocks,), start, jnp.float32)
        if self.positive_temperatures:
            start = math.log(math.expm1(start))
        init = nn.initializers.constant(start)
        temperature = self.param(name, init, (self.num_blocks,), jnp.float32)
        return jax.nn.softplus(temperature) if self.positive_temperatures else temperature

    def _policy(self, observed: jax.Array, actions: int) -> Partial:
        layers = (self.num_blocks, self.num_policies, self.block_depth - 1)
        temperature = self.param("policy_temperature", nn.initializers.ones, layers, jnp.float32)
        channels = observed.shape[-1]
        shape = (self.num_policies, channels, self.num_orientations, actions)
        weights = self.param("policy_observation", uniform_fan_in(channels), shape)
        return Partial(learned_policy, temperature, weights, observed)

    def _gate(self, observed: jax.Array, alpha: jax.Array) -> Partial:
        channels = observed.shape[-1]
        shape = (self.num_blocks, self.block_depth, channels, self.num_orientations)
        weights = self.param("gate_observation", uniform_fan_in(channels), shape)
        return Partial(learned_gate, alpha, weights, observed)


class HighwayVIN(HighwayBlocks, SharedKernels):
    """The highway value iteration network."""


class HighwayDTVIN(HighwayBlocks, DynamicKernels):
    """Highway blocks in the latent MDP of DT-VIN, which nobody has tried before."""

    def _parts(self, mdp: Any, call: PlannerCall) -> dict[str, Any]:
        """As `HighwayVIN`, without learnable policies and gates."""
        if self.learned_policy or self.learned_gate:
            raise ValueError("learned_policy and learned_gate need shared kernels: highway_vin.")
        return super()._parts(mdp, call)


def learned_temperatures(model: Any, params: Any) -> dict[str, list[float]]:
    """The temperatures of each block, for whoever watches a model learn.

    Args:
      model: a planner.
      params: its parameters.

    Returns:
      "alpha" (α) and, of models with several chains, "alpha_tilde" (α̃), `N_B` numbers each; nothing
      of models that learn none.
    """
    own = params["params"] if isinstance(model, _InBlocks) else {}
    names = ["alpha", "alpha_tilde"] if getattr(model, "num_policies", 1) > 1 else ["alpha"]
    learned = {name: np.asarray(own[name]) for name in names if name in own}
    if getattr(model, "positive_temperatures", False):
        learned = {name: np.logaddexp(x, 0) for name, x in learned.items()}
    return {name: [round(float(y), 4) for y in x] for name, x in learned.items()}


def learned_policy(
    temperature: jax.Array,
    weights: jax.Array,
    observed: jax.Array,
    q: jax.Array,
    *,
    block: jax.Array,
    chain: jax.Array,
    layer: jax.Array,
) -> jax.Array:
    """π = softmax(τ Q + U φ) over the latent actions, `[B, H, W, O, A]`."""
    bias = einsum("bhwc,coa->bhwoa", observed, weights[chain])
    relative = _below_the_top(q.astype(bias.dtype), axis=-1)
    scores = temperature[block, chain, layer] * relative + bias
    return jax.nn.softmax(scores, axis=-1).astype(q.dtype)


def learned_gate(
    alpha: jax.Array,
    weights: jax.Array,
    observed: jax.Array,
    values: jax.Array,
    *,
    block: jax.Array,
) -> jax.Array:
    """A = softmax(α V' + U φ) over the depths, `[N_b, B, H, W, O]`."""
    bias = einsum("bhwc,dco->dbhwo", observed, weights[block])
    scores = alpha[block] * _below_the_top(values.astype(bias.dtype), axis=0) + bias
    return jax.nn.softmax(scores, axis=0).astype(values.dtype)


def _of_block(function: Partial | None, own: jax.Array) -> Partial | None:
    """A learnable policy or gate that takes every block for one of its own."""
    return function and Partial(_call_for, function, own)


def _call_for(function: Partial, own: jax.Array, x: jax.Array, **where: jax.Array) -> jax.Array:
    return function(x, **{**where, "block": own})


def _below_the_top(values: jax.Array, axis: int) -> jax.Array:
    """For a softmax, which is the same but does not round large values."""
    return values - lax.stop_gradient(values.max(axis, keepdims=True))


def by_layers(output: PlanOutput, block_depth: int, call: PlannerCall) -> PlanOutput:
    """What was returned by blocks, by layers.

    Args:
      output: of `highway_vi`.
      block_depth: layers in a block.
      call: with `policies_every`, the values of the blocks that end there are left.

    Returns:
      Actions `[N_B, n, ...]` in one row, `[N_B·n, ...]`, and the values.
    """
    if output.actions is not None:
        layers = output.actions.reshape(-1, *output.actions.shape[2:])
        output = dataclasses.replace(output, actions=layers)
    if every := call.policies_every:
        assert output.values is not None
        depth = block_depth * output.values.shape[0]
        if every % block_depth or depth % every:
            raise ValueError(
                f"blocks of {block_depth} layers, {depth} in all, do not end with a policy after "
                f"each {every}: it must be a multiple of the one and divide the other."
            )
        blocks = every // block_depth
        output = dataclasses.replace(output, values=output.values[blocks - 1 :: blocks])
    return output


def typed_key(key: jax.Array) -> jax.Array:
    """Wraps an old-style key of two integers."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return key if typed else jax.random.wrap_key_data(key)
