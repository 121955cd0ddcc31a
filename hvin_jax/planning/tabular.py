"""Finite MDPs with explicit transition tables, and the two Bellman operators."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from hvin_jax.planning import _checks as checks
from hvin_jax.planning._mdp_checks import check_mdp
from hvin_jax.planning._products import einsum
from hvin_jax.planning._repr import repr_of_arrays
from hvin_jax.planning.mdp import MDP


# By chex, for the reason given in `conv.py`.
@chex.dataclass(frozen=True, init=False, repr=False, eq=False, mappable_dataclass=False)
class TabularMDP:
    """A finite Markov decision process of `S` states and `A` actions.

    Attributes:
      transition: `[S, A, S]`, the probability `T(s' | s, a)` of each next state.
      reward: `[S, A]`, the expected reward `Σ_s' T(s' | s, a) R(s, a, s')`.
      discount: the discount factor γ, a scalar in [0, 1].
    """

    transition: jax.Array
    reward: jax.Array
    discount: jax.Array

    batched = False
    __repr__ = repr_of_arrays

    def __init__(self, transition: Any, reward: Any, discount: Any) -> None:
        """Checks and stores the tables; `reward` may be `[S, A]` or `[S, A, S]`."""
        transition = checks.as_array("transition", transition)
        if not jnp.issubdtype(transition.dtype, jnp.floating):
            transition = transition.astype(jnp.float32)
        reward = checks.as_array("reward", reward).astype(transition.dtype)
        checks.check_rank("transition", transition, 3, "[S, A, S]")
        s, a, s_next = transition.shape
        checks.check_shape("transition", transition.shape, (s, a, s), "[S, A, S]")
        checks.check_not_empty("transition", transition)
        checks.check_rank("reward", reward, (2, 3), "[S, A] or [S, A, S]")
        expected, axes = ((s, a), "[S, A]") if reward.ndim == 2 else ((s, a, s_next), "[S, A, S]")
        checks.check_shape("reward", reward.shape, expected, axes)
        checks.check_distribution("transition", transition)
        checks.check_unit_interval("discount", discount)
        if jnp.ndim(discount) != 0:
            raise ValueError(f"discount must be a scalar, got shape {jnp.shape(discount)}.")
        if reward.ndim == 3:
            reward = einsum("sat,sat->sa", transition, reward)
        object.__setattr__(self, "transition", transition)
        object.__setattr__(self, "reward", reward)
        object.__setattr__(self, "discount", jnp.asarray(discount, transition.dtype))

    @property
    def num_actions(self) -> int:
        """`A`."""
        return self.reward.shape[-1]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """`(S,)`."""
        if self.reward.ndim != 2:
            raise ValueError(
                f"reward has shape {self.reward.shape}, expected [S, A]: of several MDPs in one, "
                "made by jax.vmap, plan in each by jax.vmap."
            )
        return self.reward.shape[:-1]

    def q(self, value: jax.Array) -> jax.Array:
        """`Q(s, a) = R(s, a) + γ Σ_s' T(s' | s, a) V(s')`, `[S, A]`."""
        return self.reward + self.discount * einsum("sat,t->sa", self.transition, value)

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`max_a Q(s, a)` and its argument, both `[S]`."""
        q = self.q(value)
        return q.max(-1), q.argmax(-1)

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """`Q(s, action(s))`, `[S]`, from the rows of the chosen actions only."""
        states = jnp.arange(self.reward.shape[0])
        rows = self.transition[states, action]
        return self.reward[states, action] + self.discount * einsum("st,t->s", rows, value)


def bellman_optimality(mdp: MDP, value: jax.Array) -> jax.Array:
    """The Bellman optimality operator, eq. (1) of the paper.

    (B V)(s) = max_a Q(s, a)

    Args:
      mdp: the MDP.
      value: `V`, of shape `mdp.value_shape`.

    Returns:
      `B V`, of the same shape.
    """
    check_mdp(mdp)
    value = checks.as_array("value", value)
    checks.check_shape("value", value.shape, mdp.value_shape, "value_shape")
    return mdp.q(value).max(-1)


def bellman_expectation(mdp: MDP, value: jax.Array, policy: jax.Array) -> jax.Array:
    """The Bellman expectation operator, eq. (2) of the paper.

    (B^π V)(s) = Σ_a π(a | s) Q(s, a)

    Args:
      mdp: the MDP.
      value: `V`, of shape `mdp.value_shape`.
      policy: `π(a | s)`, of shape `mdp.value_shape + (num_actions,)`.

    Returns:
      `B^π V`, of the shape of `value`.
    """
    check_mdp(mdp)
    value, policy = checks.as_array("value", value), checks.as_array("policy", policy)
    checks.check_shape("value", value.shape, mdp.value_shape, "value_shape")
    expected = (*mdp.value_shape, mdp.num_actions)
    checks.check_shape("policy", policy.shape, expected, "value_shape + [A]")
    checks.check_distribution("policy", policy)
    return jnp.sum(policy * mdp.q(value), axis=-1)
