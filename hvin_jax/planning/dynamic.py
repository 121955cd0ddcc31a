"""The latent MDP of dynamic transition VINs: states on a grid, each with kernels of its own."""

from typing import Any

import chex
import jax

from hvin_jax.planning import _checks as checks
from hvin_jax.planning import _dynamic_backup as backup
from hvin_jax.planning._platforms import scan
from hvin_jax.planning._repr import repr_of_arrays

AXES = "[F, F, O, A, B, O, H, W]"
# What sums to one.
_AXES_OF = {"action": (0, 1, 2), "state": (0, 1, 2, 3)}


# Chex makes a pytree anew without a call of `__init__`: checks are for users, not for JAX.
@chex.dataclass(frozen=True, init=False, repr=False, eq=False, mappable_dataclass=False)
class DynamicConvMDP:
    """An MDP on `B` grids of `H` × `W` cells with `O` orientations and `A` actions in each state.

    A state is (orientation, row, column), a value a map `[B, O, H, W]` (the cells come last, since
    the inner loops run over them), and

      Q[b, o, y, x, a] = Σ_(i, j, p) kernel[i, j, p, a, b, o, y, x]
                                     · (R + V)[b, p, y + i - F//2, x + j - F//2]

    where R and V beyond the border are zero. In a `ConvMDP` all states share one kernel; here each
    has its own, made once from what it sees. With kernels that are probabilities, as `from_logits`
    makes them, a backup does not expand: two values that differ by at most δ differ by at most δ
    after it, and |V| grows by at most max |R| a layer, at any depth.

    Attributes:
      reward: `R`, `[B, O, H, W]`.
      kernel: `[F, F, O, A, B, O, H, W]` with axes (window row, window column, orientation of the
        value, action, and the state: example, orientation, row, column); F is odd.
    """

    reward: jax.Array
    kernel: jax.Array

    batched = True
    __repr__ = repr_of_arrays

    def __init__(self, reward: Any, kernel: Any) -> None:
        """Checks and stores the arrays."""
        reward = checks.as_array("reward", reward)
        kernel = checks.as_array("kernel", kernel)
        checks.check_rank("reward", reward, 4, "[B, O, H, W]")
        checks.check_not_empty("reward", reward)
        checks.check_rank("kernel", kernel, 8, AXES)
        size, actions = kernel.shape[0], kernel.shape[3]
        expected = (size, size, reward.shape[1], actions, *reward.shape)
        checks.check_shape("kernel", kernel.shape, expected, AXES)
        checks.check_not_empty("kernel", kernel)
        checks.check_odd("the side F of kernel", size)
        checks.check_floating("reward", reward.dtype)
        if reward.dtype != kernel.dtype:
            raise TypeError(
                f"reward and kernel must have one type, got {reward.dtype} and {kernel.dtype}."
            )
        object.__setattr__(self, "reward", reward)
        object.__setattr__(self, "kernel", kernel)

    @classmethod
    def from_logits(
        cls, reward: Any, logits: Any, *, normalise: str = "action"
    ) -> "DynamicConvMDP":
        """The MDP whose kernels are the softmax of logits.

        Args:
          reward: `R`, `[B, O, H, W]`.
          logits: of the shape of `kernel`.
          normalise: "action": the weights of each action sum to one, probabilities of where it
            leads; "state": those of all actions of a state together.
        """
        logits = checks.as_array("logits", logits)
        checks.check_rank("logits", logits, 8, AXES)
        checks.check_floating("logits", logits.dtype)
        if normalise not in _AXES_OF:
            raise ValueError(f"normalise must be 'action' or 'state', got {normalise!r}.")
        return cls(reward, jax.nn.softmax(logits, axis=_AXES_OF[normalise]))

    @property
    def num_actions(self) -> int:
        """`A`."""
        return self.kernel.shape[3]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """`(B, O, H, W)`."""
        return self.reward.shape

    def q(self, value: jax.Array) -> jax.Array:
        """All Q, `[B, O, H, W, A]`."""
        return backup.q_of_all(self.kernel, self.reward + value)

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The VI module: `max_a Q` and its argument, both `[B, O, H, W]`."""
        future = self.reward + value
        return backup.best(self.kernel, future), backup.actions_of(self.kernel, future)

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """Q of the chosen actions only, `[B, O, H, W]`."""
        return backup.q_of(self.kernel, self.reward + value, action)

    def follow(self, value: jax.Array, actions: jax.Array) -> jax.Array:
        """`q_of` for each of `actions` `[L, B, O, H, W]` in turn: values `[L, B, O, H, W]`."""

        def layer(value: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
            value = self.q_of(value, action)
            return value, value

        return scan(layer, value, actions)[1]

    def follow_vjp(
        self, inputs: jax.Array, actions: jax.Array, cotangents: jax.Array, grad: "DynamicConvMDP"
    ) -> tuple[jax.Array, "DynamicConvMDP"]:
        """The pull-back of `follow`; see `hvin_jax.planning.FastMDP`."""
        value_grad, reward_grad, kernel_grad = backup.follow_vjp(
            self.kernel,
            self.reward[None] + inputs,
            actions,
            cotangents,
            grad.reward,
            grad.kernel,
        )
        return value_grad, DynamicConvMDP(reward_grad, kernel_grad)
