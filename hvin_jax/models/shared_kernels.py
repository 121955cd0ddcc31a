"""The latent MDP of VIN, highway network and highway VIN: all states share their kernels."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.tree_util import Partial

from hvin_jax.models._layers import Initializer, first_at, starting_at, uniform_fan_in
from hvin_jax.models.latent_planner import LatentPlanner
from hvin_jax.planning import ConvMDP
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._bounded import Bounded
from hvin_jax.planning._conv_backup import kernel_matrix
from hvin_jax.planning._products import matmul
from hvin_jax.planning._windows import windows

# What `start_as_moves` starts at: the reward of walls, the value of all but the goal, and how much
# logits differ for a difference of Q.
_WALL, _FAR, _SHARPNESS = -20.0, -50.0, 10.0


class SharedKernels(LatentPlanner):
    """A model whose latent MDP has one reward map and kernels that all states share.

    The reward map R comes from the observation by a 3×3 convolution to `hidden` channels and a 1×1
    convolution to `O`, with no non-linearity between; Q from R and V by a kernel each; the logits
    from the last Q by a dense layer over all `O·A` channels.

    Parameters, for whoever brings weights along: `hidden_kernel` `[3·3·(1 + O), hidden]` with rows
    over (row, column, channel of the observation), `hidden_bias`, `reward` `[hidden, O]`,
    `reward_kernel` and `value_kernel` `[F, F, O, O, A]` as in `ConvMDP`, `policy`
    `[O·A, O·num_actions]`, both axes with the orientation outside.

    Attributes:
      latent_actions: `A`, latent actions per orientation.
      kernel_size: `F`, the side of the kernels, odd.
      hidden: channels between the observation and R.
      tie_kernels: whether R and V share one kernel, as the paper writes it. By default they have
        one each, and that of V starts at zero: a shared random one multiplies values in every
        layer, and a VIN of 100 layers did not train with it (RESULTS.md).
      moves: the moves of the agent, if they are known: `[O][num_actions]` triples (rows, columns,
        new orientation), as those of a `Mechanism`.
      start_as_moves: whether latent actions start as the moves of the agent, and as staying, in
        turn, walls with a reward that hardly a detour is worth, and planning with a value, a
        parameter too, that is low but at the goal: with zero everywhere, to stay in a cheap cell
        would be as good as to arrive. What is left to learn is what the rest of the map means.
      dtype: the type that is planned in: "float32" (that of the parameters), or "bfloat16", with
        parameters, observation and logits in float32. None of it depends on `jax_enable_x64`.
    """

    latent_actions: int = 100
    kernel_size: int = 5
    hidden: int = 150
    tie_kernels: bool = False
    moves: tuple[tuple[tuple[int, int, int], ...], ...] = ()
    start_as_moves: bool = False
    dtype: str = "float32"

    def latent(
        self, observed: jax.Array, inside: jax.Array | None, *, train: bool
    ) -> tuple[Any, Callable[[], Partial]]:
        """A `ConvMDP`."""
        for name in ("latent_actions", "hidden"):
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_odd("kernel_size", self.kernel_size)
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype must be float32 or bfloat16, got {self.dtype!r}.")
        reward = self._reward(observed)
        if inside is not None:
            reward = jnp.where(inside[..., None], reward, 0)
        reward_kernel, value_kernel = self._kernels()
        mdp: Any = ConvMDP.from_reward(*map(self._narrow, (reward, value_kernel, reward_kernel)))
        if inside is not None:
            mdp = Bounded(mdp, jnp.broadcast_to(inside[..., None], mdp.value_shape))

        def make_head() -> Partial:
            # The last Q and the policy layer are linear, so they are multiplied first: the large Q
            # itself is never formed.
            head = self._head()
            of_reward = matmul(
                windows(reward, self.kernel_size), matmul(kernel_matrix(reward_kernel), head)
            )
            return Partial(_read, of_reward, matmul(kernel_matrix(value_kernel), head))

        return mdp, make_head

    def first_value(self, observed: jax.Array, inside: jax.Array | None) -> jax.Array | None:
        """Zero, or a 1×1 convolution of the observation that starts at the goal."""
        if not self.start_as_moves:
            return None
        channels, orientations = observed.shape[-1], self.num_orientations
        at_goal = starting_at(-_FAR * np.eye(channels, orientations, k=-1))
        kernel = self.param("first_value", at_goal, (channels, orientations))
        bias = self.param("first_value_bias", nn.initializers.constant(_FAR), (orientations,))
        value = self._narrow(matmul(observed, kernel) + bias[None, None, None])
        return value if inside is None else jnp.where(inside[..., None], value, 0)

    def _narrow(self, x: jax.Array) -> jax.Array:
        return x.astype(jnp.bfloat16) if self.dtype == "bfloat16" else x

    def _reward(self, observed: jax.Array) -> jax.Array:
        fan_in = 3 * 3 * observed.shape[-1]
        init, init_reward = uniform_fan_in(fan_in), uniform_fan_in(self.hidden)
        init_bias = init
        if self.start_as_moves:  # the first of the hidden units is -1 at walls, else 0
            own_cell = fan_in // 9 * 4
            init = first_at(init, np.eye(fan_in)[own_cell], axis=1)
            init_bias = first_at(init_bias, -1.0, axis=0)
            init_reward = first_at(init_reward, -_WALL, axis=0)
        kernel = self.param("hidden_kernel", init, (fan_in, self.hidden))
        bias = self.param("hidden_bias", init_bias, (self.hidden,))
        reward = self.param("reward", init_reward, (self.hidden, self.num_orientations))
        # Two linear layers in a row are one.
        of_window = matmul(windows(observed, 3), matmul(kernel, reward))
        return of_window + matmul(bias, reward)[None, None, None]

    def _kernels(self) -> tuple[jax.Array, jax.Array]:
        size, orientations = self.kernel_size, self.num_orientations
        shape = (size, size, orientations, orientations, self.latent_actions)
        init: Initializer = uniform_fan_in(size * size * orientations)
        init_value: Initializer = nn.initializers.zeros
        if self.start_as_moves:
            init = init_value = starting_at(self._moves_as_kernels(shape))
        if self.tie_kernels:
            kernel = self.param("kernel", init, shape)
            return kernel, kernel
        return (
            self.param("reward_kernel", init, shape),
            self.param("value_kernel", init_value, shape, jnp.float32),
        )

    def _moves_as_kernels(self, shape: tuple[int, ...]) -> np.ndarray:
        """1 where each latent action leads, `[F, F, O, O, A]`."""
        wanted = (self.num_orientations, self.num_actions, 3)
        if np.shape(self.moves) != wanted:
            raise ValueError(
                f"start_as_moves needs moves of shape {wanted}, (orientations, actions, 3), got "
                f"{np.shape(self.moves)}."
            )
        if self.latent_actions <= self.num_actions:
            raise ValueError(
                f"start_as_moves needs more latent actions than the task has, to stay, got "
                f"{self.latent_actions}."
            )
        half = self.kernel_size // 2
        if np.abs(np.array(self.moves)[..., :2]).max() > half:
            raise ValueError(f"a move is beyond kernels of {self.kernel_size}×{self.kernel_size}.")
        kernel = np.zeros(shape, np.float32)
        for orientation, of_actions in enumerate(self.moves):
            steps = [*of_actions, (0, 0, orientation)]
            for action in range(self.latent_actions):
                down, right, new = steps[action % len(steps)]
                kernel[half + down, half + right, new, orientation, action] = 1
        return kernel

    def _head(self) -> jax.Array:
        channels = self.num_orientations * self.latent_actions
        shape = (channels, self.num_orientations * self.num_actions)
        init: Initializer = uniform_fan_in(channels)
        if self.start_as_moves:
            own = np.eye(self.latent_actions, self.num_actions)
            init = starting_at(_SHARPNESS * np.kron(np.eye(self.num_orientations), own))
        return self.param("policy", init, shape)


def _read(of_reward: jax.Array, matrix: jax.Array, value: jax.Array) -> jax.Array:
    """Logits `[B, H, W, O, num_actions]` of a value `[B, H, W, O]`."""
    size = math.isqrt(matrix.shape[0] // value.shape[-1])
    logits = of_reward + matmul(windows(value.astype(matrix.dtype), size), matrix)
    return logits.reshape(*value.shape, -1)
