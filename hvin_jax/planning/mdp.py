"""What a Markov decision process must offer so that one can plan in it.

A value is an array of shape `mdp.value_shape`; an action map holds one integer in
`[0, mdp.num_actions)` for each entry of it. `TabularMDP` and `ConvMDP` are two instances; a type of
your own is a third as soon as it is a JAX pytree with the members of `MDP`.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jax import lax


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

    The planners differentiate along the actions taken: `greedy` is never differentiated, its
    gradient is that of `q_of` at the greedy actions (exact wherever the maximum is unique).
    So only `q_of` — and `q`, for learnable policies — must be differentiable.

    Two optional methods make a type faster; without them the planners use `follow` and
    `follow_vjp` of this module, which are built on `q_of` alone:

    * `follow(value, actions)`: `q_of` applied for each of `actions` `[L, ...]` in turn, returning
      all values `[L, ...]`;
    * `follow_vjp(inputs, actions, cotangents, grad)`: its pull-back, where `inputs` `[L, ...]` are
      the values that each step started from and `grad` accumulates the gradient of the MDP.

    A batched type may also have a form that is faster when all examples take the same actions:

    * `sharing_actions()`: a pytree made differentiably from this one, with `num_actions`, `follow`
      and `follow_vjp` as above, where action maps have no batch axis; `batched` is False and
      `value_shape` the shape of an action map.
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


M = TypeVar("M")


def zero_value(mdp: MDP) -> jax.Array:
    """A value of zeros, in the floating-point type of the MDP's arrays."""
    floats = [x.dtype for x in jax.tree.leaves(mdp) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.zeros(mdp.value_shape, jnp.result_type(*floats))


def follow(mdp: MDP, value: jax.Array, actions: jax.Array) -> jax.Array:
    """Backs `value` up along `actions` `[L, ...]`, one layer after the other: values `[L, ...]`."""
    special: Callable[..., jax.Array] | None = getattr(mdp, "follow", None)
    if special is not None:
        return special(value, actions)

    def step(value: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        value = mdp.q_of(value, action)
        return value, value

    return lax.scan(step, value, actions)[1]


def follow_vjp(
    mdp: M, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: M
) -> tuple[jax.Array, M]:
    """The pull-back of `follow`.

    Args:
      mdp: the MDP.
      inputs: `[L, ...]`, the value that each layer started from.
      actions: `[L, ...]`, the actions of each layer.
      cotangents: `[L, ...]`, the cotangent of each layer's value.
      grad: the gradient with respect to the MDP so far.

    Returns:
      The cotangent of `inputs[0]`, and `grad` with this chain's share added.
    """
    special: Callable[..., tuple[jax.Array, M]] | None = getattr(mdp, "follow_vjp", None)
    if special is not None:
        return special(inputs, actions, cotangents, grad)

    def step(carry: tuple[jax.Array, M], layer: Any) -> tuple[tuple[jax.Array, M], None]:
        cotangent, grad = carry
        value, action, own_cotangent = layer
        _, pull_back = jax.vjp(lambda mdp, value: mdp.q_of(value, action), mdp, value)
        mdp_share, cotangent = pull_back(cotangent + own_cotangent)
        return (cotangent, jax.tree.map(_add_gradients, grad, mdp_share)), None

    start = (jnp.zeros_like(inputs[0]), grad)
    return lax.scan(step, start, (inputs, actions, cotangents), reverse=True)[0]


def sharing_actions(mdp: Any) -> Any:
    """The MDP's own form for actions that all examples share, or the MDP if it has none."""
    special: Callable[[], Any] | None = getattr(mdp, "sharing_actions", None)
    return mdp if special is None else special()


def _add_gradients(x: jax.Array, y: jax.Array) -> jax.Array:
    # Integer leaves (edge lists, say) have no gradient: JAX marks them with the type float0.
    return x if x.dtype == jax.dtypes.float0 else x + y
