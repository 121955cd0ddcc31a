"""Highway value iteration in anything that satisfies `MDP`: a scan over highway blocks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.tree_util import Partial

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._chain import Exploration, chain
from hvin_jax.planning._mdp_checks import check_mdp, sharing_actions
from hvin_jax.planning.gates import Gate, aggregate, without_infinities
from hvin_jax.planning.mdp import MDP
from hvin_jax.planning.policies import Policy, explore
from hvin_jax.planning.tabular import TabularMDP
from hvin_jax.planning.value_iteration import PlanOutput, start_value


def highway_vi(
    key: jax.Array | None,
    mdp: MDP,
    *,
    num_blocks: int,
    block_depth: int,
    num_policies: int = 1,
    epsilon: float | jax.Array = 1.0,
    alpha: float | jax.Array = 1.0,
    alpha_tilde: float | jax.Array = 1.0,
    filter_gate: bool = True,
    v0: jax.Array | None = None,
    example_index: jax.Array | None = None,
    share_exploration: bool = False,
    policy: Policy | None = None,
    depth_gate: Gate | None = None,
    policy_gate: Gate | None = None,
    return_values: bool = False,
    return_actions: bool = False,
    return_passed: bool = False,
) -> PlanOutput:
    """Highway value iteration: `num_blocks` highway blocks of `block_depth` layers each.

    A block takes V⁽ⁿ⁾ to V⁽ⁿ⁺ᴺᵇ⁾ by

      V⁽ⁿ⁺¹⁾ = B V⁽ⁿ⁾                                the VI module
      𝒱_p⁽ⁿ⁺ᵇ⁺¹⁾ = B^π 𝒱_p⁽ⁿ⁺ᵇ⁾, 𝒱_p⁽ⁿ⁺¹⁾ = V⁽ⁿ⁺¹⁾   VE modules, in `num_policies` chains
      V'_p⁽ⁿ⁺ᵇ⁾ = max{𝒱_p⁽ⁿ⁺ᵇ⁾, V⁽ⁿ⁺¹⁾}              the filter gate
      V⁽ⁿ⁺ᴺᵇ⁾ = smax^α̃_p smax^α_b V'_p⁽ⁿ⁺ᵇ⁾           the aggregate gates

    where π takes one action per state and layer, sampled ε-greedily. Whatever ε, the fixed point is
    the optimal value. `block_depth=1` is value iteration.

    Differentiable once and in reverse mode (`jax.grad`, `jax.vjp`, `jax.jacrev`), along the actions
    taken. Forward mode (`jax.jvp`, `jax.jacfwd`, `jax.hessian`) and second derivatives raise an
    error.

    Args:
      key: a typed PRNG key, which is consumed; None acts greedily in every VE module, which is
        the form for evaluation.
      mdp: the MDP.
      num_blocks: `N_B`, at least 1.
      block_depth: `N_b`, at least 1.
      num_policies: `N_p`, the number of parallel chains, at least 1.
      epsilon: the exploration rate ε in [0, 1]. A Python float is static: ε = 1 never computes Q
        of actions that are not taken, ε = 0 is greedy. An array may change without recompiling.
      alpha: the temperature α of the gate over depths, a scalar or `[num_blocks]`.
      alpha_tilde: the temperature α̃ of the gate over chains, a scalar or `[num_blocks]`.
      filter_gate: whether to filter. Without it the optimal value is not guaranteed.
      v0: the value to start from, of shape `mdp.value_shape`; zeros by default.
      example_index: `[B]` integers, for batched MDPs: the global index of each example, from which
        its noise is made, so that splitting a batch over devices changes nothing. `arange(B)` by
        default.
      share_exploration: whether all examples of a batch share one noise. At ε = 1 this is also the
        fast way for a `SharingMDP`: layers of a `ConvMDP` take about half the time
        (benchmarks/README.md).
      policy: a learnable embedded policy, in place of the ε-greedy one, also in evaluation; see
        `hvin_jax.planning.Policy`.
      depth_gate: a learnable gate over depths, in place of the softmax; see
        `hvin_jax.planning.Gate`.
      policy_gate: the same over chains.
      return_values: whether to return the value after each block.
      return_actions: whether to return the action taken by each layer.
      return_passed: whether to return what the filter gate of each block let through; for blocks
        of two layers or more, with a filter gate.

    Returns:
      A `PlanOutput`.
    """
    checks.check_key("key", key)
    check_mdp(mdp)
    for name, number in (
        ("num_blocks", num_blocks),
        ("block_depth", block_depth),
        ("num_policies", num_policies),
    ):
        checks.check_at_least(name, number, 1)
    if return_passed and not (filter_gate and block_depth > 1):
        raise ValueError("return_passed needs a filter gate and a block_depth of 2 or more.")
    checks.check_unit_interval("epsilon", epsilon)
    static_epsilon = float(epsilon) if isinstance(epsilon, int | float) else None
    if key is None:  # Nothing is explored: no ε needs a compilation of its own.
        static_epsilon = 0.0
    traced_epsilon = jnp.asarray(epsilon)
    checks.check_rank("epsilon", traced_epsilon, 0, "[]")
    start = start_value(mdp, v0)
    if static_epsilon != 0 and block_depth > 1:
        _check_rewards(mdp)
    return _highway_vi(
        key,
        mdp,
        start,
        _per_block("alpha", alpha, num_blocks, start.dtype),
        _per_block("alpha_tilde", alpha_tilde, num_blocks, start.dtype),
        traced_epsilon,
        _example_index(mdp, example_index, share_exploration),
        _as_pytree("policy", policy),
        _as_pytree("depth_gate", depth_gate),
        _as_pytree("policy_gate", policy_gate),
        block_depth=int(block_depth),
        num_policies=int(num_policies),
        epsilon=static_epsilon,
        filter_gate=bool(filter_gate),
        return_values=bool(return_values),
        return_actions=bool(return_actions),
        return_passed=bool(return_passed),
    )


_STATIC = (
    "block_depth",
    "num_policies",
    "epsilon",
    "filter_gate",
    "return_values",
    "return_actions",
    "return_passed",
)


@partial(jax.jit, static_argnames=_STATIC)
def _highway_vi(
    key: jax.Array | None,
    mdp: MDP,
    v0: jax.Array,
    alpha: jax.Array,
    alpha_tilde: jax.Array,
    traced_epsilon: jax.Array,
    example_index: jax.Array | None,
    policy: Policy | None,
    depth_gate: Gate | None,
    policy_gate: Gate | None,
    *,
    block_depth: int,
    num_policies: int,
    epsilon: float | None,
    filter_gate: bool,
    return_values: bool,
    return_actions: bool,
    return_passed: bool,
) -> PlanOutput:
    greedy = key is None or epsilon == 0
    only_drawn = key is not None and epsilon == 1 and policy is None
    shared = mdp.batched and example_index is None
    # VI modules work in the first form of the MDP, VE modules in the last.
    explored = sharing_actions(mdp) if shared and only_drawn else mdp
    forms = (mdp,) if explored is mdp else (mdp, explored)
    frozen = lax.stop_gradient(forms)
    # Greedy chains are all alike: one is enough, and a mean of equal values is that value.
    num_chains = 1 if greedy and policy is None else num_policies
    num_ve = block_depth - 1

    def noise(block: jax.Array, chain_index: jax.Array) -> Exploration | None:
        if key is None:
            return None
        return explore(
            jax.random.fold_in(jax.random.fold_in(key, block), chain_index),
            explored,
            length=num_ve,
            epsilon=traced_epsilon if epsilon is None else epsilon,
            example_index=example_index,
        )

    @partial(jax.checkpoint, prevent_cse=False)
    def gates(first: jax.Array, later: jax.Array, temperatures: Any, block: jax.Array) -> jax.Array:
        def aggregate_depth(later: jax.Array) -> jax.Array:
            values = jnp.concatenate([first[None], later])
            floor = first if filter_gate else None
            return aggregate(values, temperatures[0], floor=floor, gate=depth_gate, block=block)

        if num_chains == 1:
            return aggregate_depth(later[0])
        by_chain = lax.map(aggregate_depth, later)
        return aggregate(by_chain, temperatures[1], gate=policy_gate, block=block)

    def block(carry: tuple[jax.Array, tuple[Any, ...]], x: Any) -> tuple[Any, Any]:
        value, sinks = carry
        index, temperatures = x
        values, actions, sink = chain(1, frozen[0], sinks[0], value, None)
        sinks = (sink, *sinks[1:])
        value = first = values[0]
        passed = None

        def ve_chain(sink: Any, chain_index: jax.Array) -> tuple[Any, Any]:
            if policy is not None:
                return sink, _policy_chain(mdp, first, policy, index, chain_index, num_ve)
            exploration = noise(index, chain_index)
            values, actions, sink = chain(num_ve, frozen[-1], sink, first, exploration)
            return sink, (values, actions)

        if num_ve > 0:
            sink, (later, ve_actions) = lax.scan(ve_chain, sinks[-1], jnp.arange(num_chains))
            sinks = (*sinks[:-1], sink)
            value = gates(first, later, temperatures, index)
            if return_passed:
                passed = jnp.mean((later > first[None, None]).astype(first.dtype), axis=(0, 1))
            if num_chains < num_policies:
                ve_actions = jnp.repeat(ve_actions, num_policies, axis=0)
            shape = mdp.value_shape if explored is mdp else (1, *mdp.value_shape[1:])
            layers = ve_actions.reshape(-1, *shape).astype(actions.dtype)
            layers = jnp.broadcast_to(layers, (layers.shape[0], *mdp.value_shape))
            actions = jnp.concatenate([actions, layers])
        return (value, sinks), (
            value if return_values else None,
            actions.astype(jnp.int32) if return_actions else None,
            passed,
        )

    indices = jnp.arange(alpha.shape[0])
    (value, _), outputs = lax.scan(block, (v0, forms), (indices, (alpha, alpha_tilde)))
    return PlanOutput(value, *outputs)


def _policy_chain(
    mdp: MDP, value: jax.Array, policy: Policy, block: jax.Array, chain: jax.Array, length: int
) -> tuple[jax.Array, jax.Array]:
    """VE modules with a learnable policy: 𝒱' = Σ_a π(a) 𝒬_a, which needs all Q."""

    @partial(jax.checkpoint, prevent_cse=False)
    def layer(value: jax.Array, layer: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        q = mdp.q(value)
        expected = (*mdp.value_shape, mdp.num_actions)
        checks.check_shape("the output of q", q.shape, expected, "value_shape + [A]")
        probabilities = policy(q, block=block, chain=chain, layer=layer)
        checks.check_like("the policy's output", probabilities, q, "the Q that it got")
        value = jnp.sum(probabilities * q, axis=-1)
        return value, (value, probabilities.argmax(-1))

    return lax.scan(layer, value, jnp.arange(length))[1]


def _as_pytree(name: str, function: Callable[..., jax.Array] | None) -> Partial | None:
    checks.check_callable(name, function)
    if function is None or isinstance(function, Partial):
        return function
    return Partial(function)


def _per_block(
    name: str, temperature: float | jax.Array, num_blocks: int, dtype: jnp.dtype
) -> jax.Array:
    temperature = checks.as_array(name, temperature, dtype)
    checks.check_not_nan(name, temperature)
    if temperature.shape not in ((), (num_blocks,)):
        raise ValueError(
            f"{name} must be a scalar or have shape [num_blocks] = ({num_blocks},), "
            f"got {temperature.shape}."
        )
    return jnp.broadcast_to(without_infinities(temperature), (num_blocks,))


def _check_rewards(mdp: MDP) -> None:
    """Raises for infinite rewards, which layers that explore any action would meet with."""
    rewards = checks.concrete("reward", mdp.reward) if isinstance(mdp, TabularMDP) else None
    if rewards is not None and not np.isfinite(rewards).all():
        raise ValueError(
            "reward must be finite where layers explore, since they take any action; if one is "
            "forbidden, let it cost more than any path, such as -1e6, or plan with key=None."
        )


def _example_index(mdp: MDP, example_index: jax.Array | None, shared: bool) -> jax.Array | None:
    if not mdp.batched:
        if example_index is not None:
            raise ValueError(f"example_index is for batched MDPs, which {type(mdp)} is not.")
        return None
    batch = mdp.value_shape[0]
    example_index = jnp.arange(batch) if example_index is None else jnp.asarray(example_index)
    checks.check_shape("example_index", example_index.shape, (batch,), "[B]")
    if not jnp.issubdtype(example_index.dtype, jnp.integer):
        raise TypeError(f"example_index must be of an integer type, got {example_index.dtype}.")
    return None if shared else example_index
