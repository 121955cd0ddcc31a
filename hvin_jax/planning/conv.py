"""The latent MDP of the planners: states on a grid, kernels shared over space."""

from typing import Any

import jax
import jax.numpy as jnp

from hvin_jax.planning import _checks as checks
from hvin_jax.planning import _conv_backup as conv_backup
from hvin_jax.planning._shared_conv import SharedConvMDP
from hvin_jax.planning._windows import windows


@jax.tree_util.register_pytree_node_class
class ConvMDP:
    """An MDP on `B` grids of `H` × `W` cells with `O` orientations and `A` actions in each state.

    A state is (row, column, orientation), a value a map `[B, H, W, O]`, and

      Q[b, y, x, o, a] = q_reward[b, y, x, o, a]
                         + Σ_(i, j, p) kernel[i, j, p, o, a] · V[b, y + i - F//2, x + j - F//2, p]

    where V is zero beyond the border. Eq. (3) of the paper, with orientations.

    Attributes:
      q_reward: `[B, H, W, O, A]`, the reward part of Q, which no iteration changes.
      kernel: `[F, F, O, O, A]` with axes (window row, window column, orientation of the value,
        orientation of the state, action); F is odd. Unlike a probability, a weight may have any
        sign and size: it stands for γ·T of a learned model.
    """

    batched = True

    def __init__(self, q_reward: Any, kernel: Any) -> None:
        """Checks and stores the arrays; see `from_reward` for the form used by the paper."""
        q_reward, kernel = jnp.asarray(q_reward), jnp.asarray(kernel)
        checks.check_rank("q_reward", q_reward, 5, "[B, H, W, O, A]")
        checks.check_not_empty("q_reward", q_reward)
        _check_kernel("kernel", kernel, *q_reward.shape[-2:])
        if not jnp.issubdtype(q_reward.dtype, jnp.floating):
            raise TypeError(f"q_reward must be of a floating-point type, got {q_reward.dtype}.")
        if q_reward.dtype != kernel.dtype:
            raise TypeError(
                f"q_reward and kernel must have one type, got {q_reward.dtype} and {kernel.dtype}."
            )
        self.q_reward = q_reward
        self.kernel = kernel

    @classmethod
    def from_reward(cls, reward: Any, value_kernel: Any, reward_kernel: Any = None) -> "ConvMDP":
        """The MDP whose reward part is itself a convolution, as in the paper.

        q_reward[b, y, x, o, a] = Σ_(i, j, p) reward_kernel[i, j, p, o, a] · R[b, y+i', x+j', p]

        Args:
          reward: `R`, `[B, H, W, O]`.
          value_kernel: `[F, F, O, O, A]`, applied to values.
          reward_kernel: `[F, F, O, O, A]`, applied to `R`; None ties it to `value_kernel`, the
            form in which the paper writes it.
        """
        reward, value_kernel = jnp.asarray(reward), jnp.asarray(value_kernel)
        reward_kernel = value_kernel if reward_kernel is None else jnp.asarray(reward_kernel)
        checks.check_rank("reward", reward, 4, "[B, H, W, O]")
        checks.check_rank("value_kernel", value_kernel, 5, "[F, F, O, O, A]")
        orientations, actions = reward.shape[-1], value_kernel.shape[-1]
        _check_kernel("value_kernel", value_kernel, orientations, actions)
        _check_kernel("reward_kernel", reward_kernel, orientations, actions)
        return cls(conv_backup.convolve(reward, reward_kernel), value_kernel)

    @property
    def num_actions(self) -> int:
        """`A`."""
        return self.q_reward.shape[-1]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """`(B, H, W, O)`."""
        return self.q_reward.shape[:-1]

    def q(self, value: jax.Array) -> jax.Array:
        """All Q, `[B, H, W, O, A]`."""
        return self.q_reward + conv_backup.convolve(value, self.kernel)

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The VI module: `max_a Q` and its argument, both `[B, H, W, O]`."""
        return conv_backup.greedy(self.q_reward, self.kernel, value)

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """Q of the chosen actions only, `[B, H, W, O]`: `A` times less work than `q`."""
        reward = jnp.take_along_axis(self.q_reward, action[..., None], axis=-1)[..., 0]
        rows = conv_backup.kernel_rows(self.kernel)[conv_backup.row_index(action, self.num_actions)]
        return reward + jnp.einsum("bhwok,bhwk->bhwo", rows, windows(value, self.kernel.shape[0]))

    def follow(self, value: jax.Array, actions: jax.Array) -> jax.Array:
        """`q_of` for each of `actions` `[L, B, H, W, O]` in turn: values `[L, B, H, W, O]`."""
        return conv_backup.follow(self.q_reward, self.kernel, value, actions)

    def follow_vjp(
        self, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: "ConvMDP"
    ) -> tuple[jax.Array, "ConvMDP"]:
        """The pull-back of `follow`; see `hvin_jax.planning.mdp.follow_vjp`."""
        value_grad, q_reward_grad, kernel_grad = conv_backup.follow_vjp(
            self.kernel, inputs, actions, cotangents, grad.q_reward, grad.kernel
        )
        return value_grad, ConvMDP.tree_unflatten(None, (q_reward_grad, kernel_grad))

    def sharing_actions(self) -> SharedConvMDP:
        """The form in which all examples take the same actions."""
        return SharedConvMDP.of(self.q_reward, self.kernel)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, for JAX."""
        return (self.q_reward, self.kernel), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any, ...]) -> "ConvMDP":
        """The way back; nothing is checked again."""
        self = object.__new__(cls)
        self.q_reward, self.kernel = children
        return self


def _check_kernel(name: str, kernel: jax.Array, orientations: int, actions: int) -> None:
    checks.check_rank(name, kernel, 5, "[F, F, O, O, A]")
    size = kernel.shape[0]
    expected = (size, size, orientations, orientations, actions)
    checks.check_shape(name, kernel.shape, expected, "[F, F, O, O, A]")
    checks.check_odd(f"the side F of {name}", size)
