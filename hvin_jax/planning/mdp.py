"""What a Markov decision process must offer so that one can plan in it.

A value is an array of shape `mdp.value_shape`; an action map holds one integer in
`[0, mdp.num_actions)` for each entry of it. `TabularMDP` and `ConvMDP` are two instances; a type of
your own is a third as soon as it is a JAX pytree with the members of `MDP`. Those of `FastMDP` and
`SharingMDP` may be added for speed; results do not depend on them.
"""

from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning import _checks as checks


@runtime_checkable
class MDP(Protocol):
    """The protocol of everything that `value_iteration` and `highway_vi` can plan in.

    Required of a third-party type, besides being a pytree whose leaves are arrays (numbers that are
    no arrays belong into its static part):

    * `num_actions`, the number of actions `A`, the same in every state;
    * `value_shape`, the shape of a value;
    * `batched`, whether axis 0 of a value counts independent examples (exploration noise then
      depends on the example and not on its place in the batch);
    * `q_of`, `greedy`, `q`: the three ways to look one step ahead.

    Values have the floating-point type of the pytree's leaves. The planners differentiate along the
    actions taken: `greedy` is never differentiated, its gradient is that of `q_of` at the greedy
    actions (exact wherever the maximum is unique). So only `q_of` — and `q`, for learnable
    policies — must be differentiable.
    """

    @property
    def num_actions(self) -> int:
        """The number of actions in every state."""

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of a value."""

    @property
    def batched(self) -> bool:
        """Whether axis 0 of a value counts independent examples."""

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """`max_a Q(s, a)` and the actions that attain it (integers), both of `value_shape`."""

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """`Q(s, action(s))`, of shape `value_shape`: the chosen actions only."""

    def q(self, value: jax.Array) -> jax.Array:
        """All `Q(s, a)`, of shape `value_shape + (num_actions,)`."""


class Follows(Protocol):
    """Chains of backups along given actions in one piece; both methods or none."""

    def follow(self, value: jax.Array, actions: jax.Array) -> jax.Array:
        """`q_of` applied for each of `actions` `[L, ...]` in turn: all values, `[L, ...]`."""

    def follow_vjp(
        self, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: Self
    ) -> tuple[jax.Array, Self]:
        """The pull-back of `follow`.

        Args:
          inputs: `[L, ...]`, the value that each layer started from.
          actions: `[L, ...]`, the actions of each layer.
          cotangents: `[L, ...]`, the cotangent of each layer's value.
          grad: the gradient with respect to the MDP so far, an MDP of this type.

        Returns:
          The cotangent of `inputs[0]`, and `grad` with this chain's share added.
        """


@runtime_checkable
class FastMDP(MDP, Follows, Protocol):
    """An MDP with chains of its own; without them the planners make them of `q_of` alone."""


@runtime_checkable
class SharedMDP(Follows, Protocol):
    """What `SharingMDP.sharing_actions` returns: the MDP when all examples take the same actions.

    A pytree of arrays, as an `MDP` is. Values in `follow` and `follow_vjp` have their batch axis,
    action maps have none: they are `[L, *value_shape]`.
    """

    @property
    def num_actions(self) -> int:
        """The number of actions in every state."""

    @property
    def value_shape(self) -> tuple[int, ...]:
        """The shape of an action map: that of a value without its batch axis."""

    @property
    def batched(self) -> bool:
        """False: axis 0 of an action map does not count examples."""


@runtime_checkable
class SharingMDP(MDP, Protocol):
    """A batched MDP with a form that is faster when all examples take the same actions."""

    def sharing_actions(self) -> SharedMDP:
        """That form, made differentiably from this one."""


M = TypeVar("M")


def zero_value(mdp: MDP) -> jax.Array:
    """A value of zeros, in the floating-point type of the MDP's arrays."""
    types = [x.dtype for x in jax.tree.leaves(mdp) if jnp.issubdtype(x.dtype, jnp.floating)]
    # Leaves may be numpy arrays, of a type that JAX narrows.
    floats = [jax.dtypes.canonicalize_dtype(dtype) for dtype in types]
    return jnp.zeros(mdp.value_shape, jnp.result_type(*floats))


def follow(mdp: Any, value: jax.Array, actions: jax.Array) -> jax.Array:
    """`Follows.follow` of the MDP, or the same made of its `q_of`."""
    if hasattr(mdp, "follow"):
        return mdp.follow(value, actions)

    def step(value: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        q = mdp.q_of(value, action)
        checks.check_like("the output of q_of", q, value, "the value that it got")
        return q, q

    return lax.scan(step, value, actions)[1]


def follow_vjp(
    mdp: M, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: M
) -> tuple[jax.Array, M]:
    """`Follows.follow_vjp` of the MDP, or the same made of the pull-back of its `q_of`."""
    if hasattr(mdp, "follow_vjp"):
        return mdp.follow_vjp(inputs, actions, cotangents, grad)

    def step(carry: tuple[jax.Array, M], layer: Any) -> tuple[tuple[jax.Array, M], None]:
        cotangent, grad = carry
        value, action, own_cotangent = layer
        _, pull_back = jax.vjp(lambda mdp, value: mdp.q_of(value, action), mdp, value)
        mdp_share, cotangent = pull_back(cotangent + own_cotangent)
        return (cotangent, jax.tree.map(_add_gradients, grad, mdp_share)), None

    start = (jnp.zeros_like(inputs[0]), grad)
    return lax.scan(step, start, (inputs, actions, cotangents), reverse=True)[0]


def _add_gradients(x: jax.Array, y: jax.Array) -> jax.Array:
    # Integer leaves (edge lists, say) have no gradient: JAX marks them with the type float0.
    return x if x.dtype == jax.dtypes.float0 else x + y
