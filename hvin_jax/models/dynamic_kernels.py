"""The latent MDP of DT-VIN: every state has kernels of its own, made from what it sees."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.tree_util import Partial

from hvin_jax.models._layers import uniform_fan_in
from hvin_jax.models.latent_planner import LatentPlanner
from hvin_jax.planning import DynamicConvMDP
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._products import einsum, matmul
from hvin_jax.planning._windows import windows

_LARGEST_KERNEL = 15


class DynamicKernels(LatentPlanner):
    """A model whose latent MDP has kernels for every state, which are probabilities.

    The reward map R comes from the observation by a 1×1 convolution, the kernels by a 3×3
    convolution and a softmax, both once; the logits by a dense layer from the last Q, or from a
    window of the last value. What the paper leaves open is a setting.

    Parameters: `transition` `[3·3·(1 + O), F·F·O·A, O]` over (row, column, channel of the
    observation), the window and action as in `DynamicConvMDP`, and the orientation of the state;
    `transition_bias` `[F·F·O·A, O]`, `reward` `[1 + O, O]`, `reward_bias`, `policy`
    `[O·A, O·num_actions]` (or `[F·F·O, O·num_actions]`).

    Attributes:
      latent_actions: `A`, latent actions per orientation; 0: as many as the task has.
      kernel_size: `F`, the side of the kernels, odd.
      normalise: "action": the weights of each action are probabilities; "state": those of all
        actions of a state together.
      head: what the policy sees: "q", the last Q of its state, or "window", the last values around.
      kernel_start: how the actions start to differ: "neighbours": each as a step to a place of its
        own, the nearest first (other orientations of the cell, the four cells beside it, then the
        diagonal ones); "random".
      apart: how much: the log-odds of an action's own place against any other, or the standard
        deviation of random ones. With 0 all actions start alike.
      reward_start: "goal": R starts at 2 for the goal and -0.1 elsewhere; "random".
      head_start: "identity": latent actions start as those of the task; "random".
    """

    latent_actions: int = 0
    kernel_size: int = 3
    normalise: str = "action"
    head: str = "q"
    kernel_start: str = "neighbours"
    apart: float = 4.0
    reward_start: str = "goal"
    head_start: str = "identity"

    def latent(
        self, observed: jax.Array, inside: jax.Array | None
    ) -> tuple[DynamicConvMDP, Callable[[], Partial]]:
        """A `DynamicConvMDP`."""
        self._check()
        mdp = DynamicConvMDP.from_logits(
            self._reward(observed), self._transitions(observed), normalise=self.normalise
        )
        if inside is not None:  # weights of zero keep values at zero
            cells = inside[:, None]
            mdp = DynamicConvMDP(
                jnp.where(cells, mdp.reward, 0),
                jnp.where(cells[None, None, None, None], mdp.kernel, 0),
            )
        read = _read_q if self.head == "q" else _read_window
        return mdp, lambda: Partial(read, mdp, self._head())

    def as_map(self, value: jax.Array) -> jax.Array:
        """`[..., O, H, W]` to `[..., H, W, O]`."""
        return jnp.moveaxis(value, -3, -1)

    @property
    def _actions(self) -> int:
        return self.latent_actions or self.num_actions

    def _check(self) -> None:
        checks.check_at_least("latent_actions", self.latent_actions, 0)
        checks.check_odd("kernel_size", self.kernel_size)
        if self.kernel_size > _LARGEST_KERNEL:
            raise ValueError(
                f"kernel_size must be at most {_LARGEST_KERNEL}, got {self.kernel_size}: each "
                "state has kernels of its own."
            )
        for name, options in (
            ("head", ("q", "window")),
            ("kernel_start", ("neighbours", "random")),
            ("reward_start", ("goal", "random")),
            ("head_start", ("identity", "random")),
        ):
            if getattr(self, name) not in options:
                raise ValueError(
                    f"{name} must be one of {', '.join(options)}, got {getattr(self, name)!r}."
                )
        if not self.apart >= 0:
            raise ValueError(f"apart must be 0 or more, got {self.apart}.")

    def _transitions(self, observed: jax.Array) -> jax.Array:
        """Logits of the kernels, `[F, F, O, A, B, O, H, W]`."""
        size, orientations = self.kernel_size, self.num_orientations
        window, fan_in = (size, size, orientations, self._actions), 3 * 3 * observed.shape[-1]
        fan_out = (math.prod(window), orientations)
        weights = self.param("transition", uniform_fan_in(fan_in), (fan_in, *fan_out))
        start = nn.initializers.normal(self.apart)
        if self.kernel_start == "neighbours":
            start = _steps_to_neighbours(window, self.apart)
        bias = self.param("transition_bias", start, fan_out)
        logits = einsum("bhwc,cko->kbohw", windows(observed, 3), weights)
        logits = logits + bias[:, None, :, None, None]
        return logits.reshape(*window, *logits.shape[1:])

    def _reward(self, observed: jax.Array) -> jax.Array:
        """`[B, O, H, W]`."""
        channels, orientations = observed.shape[-1], self.num_orientations
        weights = uniform_fan_in(channels)
        bias: nn.initializers.Initializer = uniform_fan_in(channels)
        if self.reward_start == "goal":
            weights = _goal_reward
            bias = nn.initializers.constant(-0.1)
        kernel = self.param("reward", weights, (channels, orientations))
        offset = self.param("reward_bias", bias, (orientations,))
        return jnp.moveaxis(matmul(observed, kernel) + offset[None, None, None], -1, 1)

    def _head(self) -> jax.Array:
        window = self.kernel_size**2 * self.num_orientations
        channels = self.num_orientations * self._actions if self.head == "q" else window
        identity = self.head_start == "identity" and self.head == "q"
        init = _identity if identity else uniform_fan_in(channels)
        return self.param("policy", init, (channels, self.num_orientations * self.num_actions))


def _steps_to_neighbours(window: tuple[int, ...], height: float) -> nn.initializers.Initializer:
    """Biases `[F·F·O·A, O]` by which each action of a state leads to a place of its own."""
    size, _, orientations, actions = window
    middle = size // 2

    def init(key: jax.Array, shape: tuple[int, ...], dtype: Any = jnp.float32) -> jax.Array:
        del key
        bias = np.zeros((*window, orientations), np.float32)
        for own in range(orientations):
            places = [(middle, middle, p) for p in range(orientations) if p != own]
            cells = itertools.product(range(size), range(size))
            away = sorted(cells, key=lambda x: _nearness(x[0] - middle, x[1] - middle))
            places += [(*cell, own) for cell in away[1:]]
            for action in range(actions):
                bias[(*places[action % len(places)], action, own)] = height
        return jnp.asarray(bias.reshape(shape), dtype)

    return init


def _nearness(down: int, right: int) -> tuple[int, int]:
    """Sorts the cells around one by distance, and those of one distance as mechanisms count them.

    N, E, W, S, NE, NW, SE, SW.
    """
    return down**2 + right**2, 2 * down - right


def _goal_reward(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
    """2.1 for the goal in a state's own orientation, nothing for the map."""
    del key
    rows, columns = shape
    return 2.1 * jnp.eye(rows, columns, k=-1, dtype=dtype)


def _identity(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
    del key
    rows, columns = shape
    return jnp.eye(rows, columns, dtype=dtype)


def _read_q(mdp: DynamicConvMDP, head: jax.Array, value: jax.Array) -> jax.Array:
    q = jnp.moveaxis(mdp.q(value), 1, -2)
    return _by_orientation(matmul(q.reshape(*q.shape[:3], -1), head), value)


def _read_window(mdp: DynamicConvMDP, head: jax.Array, value: jax.Array) -> jax.Array:
    around = windows(jnp.moveaxis(value, 1, -1), mdp.kernel.shape[0])
    return _by_orientation(matmul(around, head), value)


def _by_orientation(logits: jax.Array, value: jax.Array) -> jax.Array:
    """`[B, H, W, O·num_actions]` to `[B, H, W, O, num_actions]`."""
    return logits.reshape(*logits.shape[:3], value.shape[1], -1)
