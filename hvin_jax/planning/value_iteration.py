"""Value iteration in anything that satisfies `MDP`."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._chain import chain, segments
from hvin_jax.planning._mdp_checks import check_mdp
from hvin_jax.planning.mdp import MDP, zero_value


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PlanOutput:
    """What a planner returns.

    Attributes:
      value: the final value, of shape `mdp.value_shape`.
      values: when asked for, the value after each block (or iteration), `[num_blocks, ...]`; with
        `keep_every`, after each so many iterations.
      actions: when asked for, the action taken by each layer, integers. `value_iteration`:
        `[num_iterations, ...]`. `highway_vi`: `[num_blocks, 1 + num_policies·(block_depth - 1),
        ...]`, the VI module first, then the VE modules chain by chain; the most probable
        action where a learnable policy mixes them.
      passed: when asked of `highway_vi`, the share of the VE modules of each block whose value the
        filter gate let through, because it was larger than that of the VI module, `[num_blocks,
        ...]`.
    """

    value: jax.Array
    values: jax.Array | None = None
    actions: jax.Array | None = None
    passed: jax.Array | None = None


def value_iteration(
    mdp: MDP,
    *,
    num_iterations: int,
    v0: jax.Array | None = None,
    keep_every: int | None = None,
    return_values: bool = False,
    return_actions: bool = False,
) -> PlanOutput:
    """Value iteration: V⁽ⁿ⁺¹⁾ = B V⁽ⁿ⁾.

    Differentiable once and in reverse mode (`jax.grad`, `jax.vjp`, `jax.jacrev`), along the actions
    taken. Forward mode (`jax.jvp`, `jax.jacfwd`, `jax.hessian`) and second derivatives raise an
    error.

    Args:
      mdp: the MDP.
      num_iterations: the number of backups, at least 1.
      v0: the value to start from, of shape `mdp.value_shape`; zeros by default.
      keep_every: keep only the value after each so many iterations for the gradient, which makes
        the others again: less memory for one more pass. None keeps all.
      return_values: whether to return the value after each iteration, or of those that are kept.
      return_actions: whether to return the greedy action of each iteration; not with `keep_every`.

    Returns:
      A `PlanOutput`.
    """
    check_mdp(mdp)
    checks.check_at_least("num_iterations", num_iterations, 1)
    start = start_value(mdp, v0)
    if keep_every is None:
        return _value_iteration(
            mdp, start, int(num_iterations), bool(return_values), bool(return_actions)
        )
    checks.check_at_least("keep_every", keep_every, 1)
    if return_actions:
        raise ValueError("return_actions needs all iterations: leave keep_every out.")
    return _in_segments(mdp, start, int(num_iterations), int(keep_every), bool(return_values))


@partial(jax.jit, static_argnums=(2, 3, 4))
def _value_iteration(
    mdp: MDP, v0: jax.Array, num_iterations: int, return_values: bool, return_actions: bool
) -> PlanOutput:
    values, actions, _ = chain(num_iterations, lax.stop_gradient(mdp), mdp, v0, None)
    return PlanOutput(
        value=values[-1],
        values=values if return_values else None,
        actions=actions.astype(jnp.int32) if return_actions else None,
    )


@partial(jax.jit, static_argnums=(2, 3, 4))
def _in_segments(
    mdp: MDP, v0: jax.Array, num_iterations: int, keep_every: int, return_values: bool
) -> PlanOutput:
    frozen, sink, value = lax.stop_gradient(mdp), mdp, v0
    kept = jnp.zeros((0, *v0.shape), v0.dtype)
    whole, rest = divmod(num_iterations, keep_every)
    if whole:
        kept, sink = segments(whole, keep_every, frozen, sink, value)
        value = kept[-1]
    if rest:
        last, _ = segments(1, rest, frozen, sink, value)
        value = last[-1]
    return PlanOutput(value, kept if return_values else None)


def start_value(mdp: MDP, v0: jax.Array | None) -> jax.Array:
    """The value to start from: `v0` after a check, or zeros."""
    zero = zero_value(mdp)
    if v0 is None:
        return zero
    v0 = checks.as_array("v0", v0)
    checks.check_shape("v0", v0.shape, zero.shape, "value_shape")
    if v0.dtype != zero.dtype:
        raise TypeError(f"v0 must be {zero.dtype}, the type of the MDP, got {v0.dtype}.")
    return v0
