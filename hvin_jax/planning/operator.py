"""The highway operator, for any set of lookahead policies and depths."""

from collections.abc import Iterable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._mdp_checks import check_mdp
from hvin_jax.planning.gates import smax
from hvin_jax.planning.mdp import MDP
from hvin_jax.planning.tabular import bellman_expectation, bellman_optimality


def highway_operator(
    mdp: MDP,
    value: jax.Array,
    policies: jax.Array,
    depths: Sequence[int],
    *,
    alpha: jax.Array | float,
    alpha_tilde: jax.Array | float,
    filter_gate: bool = True,
) -> jax.Array:
    """The highway operator, eq. (5) of the paper.

    G V = smax^α̃_π smax^α_n max{ (B^π)^(n-1) B V, B V },  π ∈ policies, n ∈ depths

    It contracts towards the optimal value for any policies, depths and temperatures:
    ‖G V - V*‖∞ ≤ γ ‖V - V*‖∞; and `depths = [1]` is the Bellman optimality operator. Without the
    inner maximum (`filter_gate=False`) the fixed point may be another one.

    Args:
      mdp: the MDP.
      value: `V`, of shape `mdp.value_shape`.
      policies: `[P, *value_shape, A]`, the lookahead policies Π.
      depths: the lookahead depths 𝒩, Python integers of at least 1.
      alpha: the temperature α of the soft maximum over depths.
      alpha_tilde: the temperature α̃ of the soft maximum over policies.
      filter_gate: whether to take the maximum with `B V`.

    Returns:
      `G V`, of the shape of `value`.
    """
    check_mdp(mdp)
    value, policies = checks.as_array("value", value), checks.as_array("policies", policies)
    if not isinstance(depths, Iterable):
        raise TypeError(f"depths must be a sequence of ints such as (1, 2), got {depths!r}.")
    if len(depths) == 0:
        raise ValueError("depths must name at least one lookahead depth, got none.")
    for depth in depths:
        checks.check_at_least("each of depths", depth, 1)
    checks.check_shape("value", value.shape, mdp.value_shape, "value_shape")
    number = max(policies.shape[0] if policies.ndim else 1, 1)
    expected = (number, *mdp.value_shape, mdp.num_actions)
    checks.check_shape("policies", policies.shape, expected, "[P] + value_shape + [A]")
    checks.check_distribution("policies", policies)
    checks.check_floating("value", value.dtype)
    alpha = checks.as_array("alpha", alpha, value.dtype)
    alpha_tilde = checks.as_array("alpha_tilde", alpha_tilde, value.dtype)
    checks.check_rank("alpha", alpha, 0, "[]")
    checks.check_rank("alpha_tilde", alpha_tilde, 0, "[]")
    wanted = tuple(int(depth) for depth in depths)
    return _highway_operator(mdp, value, policies, alpha, alpha_tilde, wanted, bool(filter_gate))


@partial(jax.jit, static_argnums=(5, 6))
def _highway_operator(
    mdp: MDP,
    value: jax.Array,
    policies: jax.Array,
    alpha: jax.Array,
    alpha_tilde: jax.Array,
    depths: tuple[int, ...],
    filter_gate: bool,
) -> jax.Array:
    first = bellman_optimality(mdp, value)

    def lookahead(policy: jax.Array) -> jax.Array:
        def step(value: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            value = bellman_expectation(mdp, value, policy)
            return value, value

        _, later = lax.scan(step, first, None, length=max(depths) - 1)
        chain = jnp.concatenate([first[None], later])[jnp.array(depths) - 1]
        return smax(chain, alpha, floor=first if filter_gate else None)

    return smax(lax.map(lookahead, policies), alpha_tilde)
