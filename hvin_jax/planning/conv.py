"""The latent MDP of the planners: states on a grid, kernels shared over space."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from hvin_jax.planning import _checks as checks
from hvin_jax.planning import _conv_backup as conv_backup
from hvin_jax.planning._products import einsum
from hvin_jax.planning._repr import repr_of_arrays
from hvin_jax.planning._shared_conv import SharedConvMDP
from hvin_jax.planning._windows import windows


# Chex makes a pytree anew without a call of `__init__`: checks are for users, not for JAX, which
# puts anything in the place of arrays.
@chex.dataclass(frozen=True, init=False, repr=False, eq=False, mappable_dataclass=False)
class ConvMDP:
    """An MDP on `B` grids of `H` × `W` cells with `O` orientations and `A` actions in each state.

    A state is (row, column, orientation), a value a map `[B, H, W, O]`, and

      Q[b, y, x, o, a] = q_reward[b, y, x, o, a]
                         + Σ_(i, j, p) kernel[i, j, p, o, a] · V[b, y + i - F//2, x + j - F//2, p]

    where V beyond the border is `outside`, zero by default. Eq. (3) of the paper, with
    orientations. Where rewards are negative, a zero beyond the border makes leaving the map pay;
    a value of `outside` below all others prevents that.

    Attributes:
      q_reward: `[B, H, W, O, A]`, the reward part of Q, which no iteration changes. That of an MDP
        made with `outside` contains what the cells beyond the border add.
      kernel: `[F, F, O, O, A]` with axes (window row, window column, orientation of the value,
        orientation of the state, action); F is odd. Unlike a probability, a weight may have any
        sign and size: it stands for γ·T of a learned model.
    """

    q_reward: jax.Array
    kernel: jax.Array

    batched = True
    __repr__ = repr_of_arrays

    def __init__(self, q_reward: Any, kernel: Any, *, outside: Any = 0.0) -> None:
        """Checks and stores the arrays; see `from_reward` for the form used by the paper.

        Args:
          q_reward: `[B, H, W, O, A]`.
          kernel: `[F, F, O, O, A]`.
          outside: the value beyond the border, a scalar.
        """
        q_reward = checks.as_array("q_reward", q_reward)
        kernel = checks.as_array("kernel", kernel)
        checks.check_rank("q_reward", q_reward, 5, "[B, H, W, O, A]")
        checks.check_not_empty("q_reward", q_reward)
        _check_kernel("kernel", kernel, *q_reward.shape[-2:])
        checks.check_floating("q_reward", q_reward.dtype)
        if q_reward.dtype != kernel.dtype:
            raise TypeError(
                f"q_reward and kernel must have one type, got {q_reward.dtype} and {kernel.dtype}."
            )
        checks.check_finite("outside", outside)
        if jnp.ndim(outside) != 0:
            raise ValueError(f"outside must be a scalar, got shape {jnp.shape(outside)}.")
        # A constant beyond the border adds the same to Q in every iteration: the inner loops need
        # not know. Nothing is computed for the zero that windows are padded with anyway.
        if not isinstance(outside, int | float) or outside != 0:
            beyond = conv_backup.weight_beyond_border(kernel, q_reward.shape[1:3])
            q_reward = q_reward + jnp.asarray(outside, kernel.dtype) * beyond[None]
        object.__setattr__(self, "q_reward", q_reward)
        object.__setattr__(self, "kernel", kernel)

    @classmethod
    def from_reward(
        cls, reward: Any, value_kernel: Any, reward_kernel: Any = None, *, outside: Any = 0.0
    ) -> "ConvMDP":
        """The MDP whose reward part is itself a convolution, as in the paper.

        q_reward[b, y, x, o, a] = Σ_(i, j, p) reward_kernel[i, j, p, o, a] · R[b, y+i', x+j', p]

        Args:
          reward: `R`, `[B, H, W, O]`, of the type of the kernels, or integers.
          value_kernel: `[F, F, O, O, A]`, applied to values.
          reward_kernel: `[F, F, O, O, A]`, applied to `R`; None ties it to `value_kernel`, the
            form in which the paper writes it.
          outside: the value beyond the border, a scalar; `R` is zero there.
        """
        reward = checks.as_array("reward", reward)
        value_kernel = checks.as_array("value_kernel", value_kernel)
        tied = reward_kernel is None
        reward_kernel = value_kernel if tied else checks.as_array("reward_kernel", reward_kernel)
        checks.check_rank("reward", reward, 4, "[B, H, W, O]")
        checks.check_rank("value_kernel", value_kernel, 5, "[F, F, O, O, A]")
        orientations, actions = reward.shape[-1], value_kernel.shape[-1]
        _check_kernel("value_kernel", value_kernel, orientations, actions)
        _check_kernel("reward_kernel", reward_kernel, orientations, actions)
        if not jnp.issubdtype(reward.dtype, jnp.floating):
            reward = reward.astype(value_kernel.dtype)  # a map of ints or booleans will do
        for name, kernel in (("value_kernel", value_kernel), ("reward_kernel", reward_kernel)):
            if reward.dtype != kernel.dtype:
                raise TypeError(
                    f"reward and {name} must have one type, got {reward.dtype} and {kernel.dtype}."
                )
        return cls(conv_backup.convolve(reward, reward_kernel), value_kernel, outside=outside)

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
        return reward + einsum("bhwok,bhwk->bhwo", rows, windows(value, self.kernel.shape[0]))

    def follow(self, value: jax.Array, actions: jax.Array) -> jax.Array:
        """`q_of` for each of `actions` `[L, B, H, W, O]` in turn: values `[L, B, H, W, O]`."""
        return conv_backup.follow(self.q_reward, self.kernel, value, actions)

    def follow_vjp(
        self, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: "ConvMDP"
    ) -> tuple[jax.Array, "ConvMDP"]:
        """The pull-back of `follow`; see `hvin_jax.planning.FastMDP`."""
        value_grad, q_reward_grad, kernel_grad = conv_backup.follow_vjp(
            self.kernel, inputs, actions, cotangents, grad.q_reward, grad.kernel
        )
        return value_grad, ConvMDP(q_reward_grad, kernel_grad)

    def sharing_actions(self) -> SharedConvMDP:
        """The form in which all examples take the same actions."""
        return SharedConvMDP.of(self.q_reward, self.kernel)


def _check_kernel(name: str, kernel: jax.Array, orientations: int, actions: int) -> None:
    checks.check_rank(name, kernel, 5, "[F, F, O, O, A]")
    size = kernel.shape[0]
    expected = (size, size, orientations, orientations, actions)
    checks.check_shape(name, kernel.shape, expected, "[F, F, O, O, A]")
    checks.check_odd(f"the side F of {name}", size)
