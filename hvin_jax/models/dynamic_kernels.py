"""The latent MDP of DT-VIN: every state has kernels of its own, made from what it sees."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.tree_util import Partial

from hvin_jax.models._layers import uniform_fan_in
from hvin_jax.models._symmetric import Seen, averaged, kernel_tables, reward_tables
from hvin_jax.models.latent_planner import LatentPlanner
from hvin_jax.planning import DynamicConvMDP, places_around
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._dynamic_backup import Places
from hvin_jax.planning._products import einsum, matmul
from hvin_jax.planning._windows import windows

_LARGEST_KERNEL = 15


class DynamicKernels(LatentPlanner):
    """A model whose latent MDP has kernels for every state, which are probabilities.

    The reward map R comes from the observation by a 1×1 convolution, the kernels by a 3×3
    convolution (or one as large as the kernels, which must see where they lead) and a softmax, both
    once; the logits are the last Q, or come from it by a dense
    layer, or from a window of the last value. What the paper leaves open is a setting.

    Parameters: `transition` `[3·3·C, P·A, O]` over (row, column, channel of the observation; with
    `goal_seen="own"`, of all but the goal, and then the goal of the cell itself),
    place and action as in `DynamicConvMDP`, and the orientation of the state; `transition_bias`
    `[P·A, O]`, `reward` `[C, O]`, `reward_bias`, `policy`
    `[O·A, O·num_actions]` (or `[F·F·O, O·num_actions]`).

    Attributes:
      latent_actions: `A`, latent actions per orientation; 0: as many as the task has.
      kernel_size: `F`, the side of the kernels, odd.
      window: which of the `F·F·O` places around a state they weigh, "all" or "steps", see
        `hvin_jax.planning.places_around`; it makes a difference where there are orientations.
      goal_seen: where kernels see goals: "around", as they see the map, or "own", in their own cell
        only: then what is learned of walls does not depend on where the goal is.
      normalise: "action": the weights of each action are probabilities; "state": those of all
        actions of a state together.
      head: what the policy is made of: "actions": the last Q, where latent actions are those of the
        task; or of a dense layer that sees "q", the last Q of its cell, or "window", the last
        values around.
      sharpness: what the logits of the kernels are multiplied by in use, not in training, so that
        paths may be much longer than those that were trained; 0: 16 where the policy is Q itself,
        else 1, since a dense layer has learned from Q as it was.
      kernel_start: how the actions start to differ: "neighbours": each as a step to a place of its
        own, those of `moves` first, then the nearest (other orientations of the cell, the four
        cells beside it, then the diagonal ones); "random".
      symmetric: whether weights that mean the same after a turn or reflection under which `moves`
        stay themselves are replaced by their mean: what is learned facing one way holds for all.
      moves: the moves of the agent, if they are known: `[O][num_actions]` triples (rows, columns,
        new orientation), as those of a `Mechanism`.
      apart: how much: the log-odds of an action's own place against any other, or the standard
        deviation of random ones. With 0 all actions start alike.
      reward_start: "goal": R starts at 2 for the goal and -0.1 elsewhere (with `terrain`, at 0.1
        and -0.1 times what the cell costs); "random".
      head_start: "identity": latent actions start as those of the task; "random".
    """

    latent_actions: int = 0
    kernel_size: int = 3
    window: str = "steps"
    goal_seen: str = "around"
    normalise: str = "action"
    head: str = "actions"
    sharpness: float = 0.0
    kernel_start: str = "neighbours"
    symmetric: bool = False
    moves: tuple[tuple[tuple[int, int, int], ...], ...] = ()
    apart: float = 4.0
    reward_start: str = "goal"
    head_start: str = "identity"

    def latent(
        self, observed: jax.Array, inside: jax.Array | None, *, train: bool
    ) -> tuple[DynamicConvMDP, Callable[[], Partial]]:
        """A `DynamicConvMDP`."""
        self._check()
        places = places_around(self.kernel_size, self.num_orientations, self.window)
        mdp = DynamicConvMDP.from_logits(
            self._reward(observed),
            self._transitions(observed, places) * (1.0 if train else self.used_sharpness),
            places,
            normalise=self.normalise,
        )
        if inside is not None:  # weights of zero keep values at zero
            cells = inside[:, None]
            mdp = DynamicConvMDP(
                jnp.where(cells, mdp.reward, 0),
                jnp.where(cells[None, None], mdp.kernel, 0),
                places,
            )
        if self.head == "actions":
            return mdp, lambda: Partial(_read_actions, mdp)
        if self.head == "q":
            return mdp, lambda: Partial(_read_q, mdp, self._head())
        return mdp, lambda: Partial(partial(_read_window, self.kernel_size), self._head())

    def as_map(self, value: jax.Array) -> jax.Array:
        """`[..., O, H, W]` to `[..., H, W, O]`."""
        return jnp.moveaxis(value, -3, -1)

    @property
    def _actions(self) -> int:
        return self.latent_actions or self.num_actions

    @property
    def used_sharpness(self) -> float:
        """What logits of kernels are multiplied by in use, see `sharpness`."""
        return self.sharpness or (16.0 if self.head == "actions" else 1.0)

    def _check(self) -> None:
        checks.check_at_least("latent_actions", self.latent_actions, 0)
        checks.check_odd("kernel_size", self.kernel_size)
        if self.kernel_size > _LARGEST_KERNEL:
            raise ValueError(
                f"kernel_size must be at most {_LARGEST_KERNEL}, got {self.kernel_size}: each "
                "state has kernels of its own."
            )
        for name, options in (
            ("goal_seen", ("around", "own")),
            ("head", ("actions", "q", "window")),
            ("kernel_start", ("neighbours", "random")),
            ("reward_start", ("goal", "random")),
            ("head_start", ("identity", "random")),
        ):
            if getattr(self, name) not in options:
                raise ValueError(
                    f"{name} must be one of {', '.join(options)}, got {getattr(self, name)!r}."
                )
        shape = (self.num_orientations, self.num_actions, 3)
        if self.moves and np.shape(self.moves) != shape:
            raise ValueError(
                f"moves must have shape {shape}, (orientations, actions, 3), got "
                f"{np.shape(self.moves)}."
            )
        if self.head == "actions" and self._actions != self.num_actions:
            raise ValueError(
                f"head='actions' takes latent actions for those of the task, {self.num_actions}; "
                f"with {self._actions} it must be 'q' or 'window'."
            )
        if self.symmetric and (not self.moves or self.head != "actions"):
            raise ValueError("symmetric=True needs moves, and head='actions'.")
        if not 0 <= self.sharpness < math.inf:
            raise ValueError(f"sharpness must be 0 or more, got {self.sharpness}.")
        if not self.apart >= 0:
            raise ValueError(f"apart must be 0 or more, got {self.apart}.")

    def _transitions(self, observed: jax.Array, places: Places) -> jax.Array:
        """Logits of the kernels, `[P, A, B, O, H, W]`."""
        seen = self._seen(observed)
        shape, fan_in = (len(places), self._actions), seen.shape[-1]
        fan_out = (math.prod(shape), self.num_orientations)
        weights = self.param("transition", uniform_fan_in(fan_in), (fan_in, *fan_out))
        bias = self.param("transition_bias", self._start(places), fan_out)
        if self.symmetric:
            tables = kernel_tables(self.moves, self.names_of_seen(observed.shape[-1]), places)
            weights, bias = map(averaged, (weights, bias), tables)
        logits = einsum("bhwc,cko->kbohw", seen, weights)
        logits = logits + bias[:, None, :, None, None]
        return logits.reshape(*shape, *logits.shape[1:])

    def _seen(self, observed: jax.Array) -> jax.Array:
        """What kernels are made from, `[B, H, W, ...]`."""
        side = max(3, self.kernel_size)
        if self.goal_seen == "around":
            return windows(observed, side)
        maze, goals, costs = jnp.split(observed, [1, 1 + self.num_orientations], axis=-1)
        around = windows(jnp.concatenate([maze, costs], axis=-1), side)
        return jnp.concatenate([around, goals], axis=-1)

    def names_of_seen(self, channels: int) -> Seen:
        """(rows down, columns to the right, channel) of what `_seen` returns."""
        reach = max(3, self.kernel_size) // 2
        cells = list(itertools.product(range(-reach, reach + 1), repeat=2))
        goals = range(1, 1 + self.num_orientations)
        own = goals if self.goal_seen == "own" else ()
        around = [x for x in range(channels) if x not in own]
        seen = [(down, right, channel) for down, right in cells for channel in around]
        return seen + [(0, 0, channel) for channel in own]

    def _start(self, places: Places) -> nn.initializers.Initializer:
        """How the biases `[P·A, O]` start."""
        if self.kernel_start == "random":
            return nn.initializers.normal(self.apart)
        nearest = [k for k, place in sorted(enumerate(places), key=_nearness) if any(place)]
        known = _places_of(self.moves, places) or [[]] * self.num_orientations
        bias = np.zeros((len(places), self._actions, self.num_orientations), np.float32)
        for orientation, steps in enumerate(known):
            steps = [*steps, *(k for k in nearest if k not in steps)] or [0]
            for action in range(self._actions):
                bias[steps[action % len(steps)], action, orientation] = self.apart
        return lambda key, shape, dtype=jnp.float32: jnp.asarray(bias.reshape(shape), dtype)

    def _reward(self, observed: jax.Array) -> jax.Array:
        """`[B, O, H, W]`."""
        channels, orientations = observed.shape[-1], self.num_orientations
        weights = uniform_fan_in(channels)
        bias: nn.initializers.Initializer = uniform_fan_in(channels)
        if self.reward_start == "goal":
            weights = partial(_goal_reward, terrain=self.terrain)
            bias = nn.initializers.constant(0.0 if self.terrain else -0.1)
        kernel = self.param("reward", weights, (channels, orientations))
        offset = self.param("reward_bias", bias, (orientations,))
        if self.symmetric:
            tables = reward_tables(self.moves, channels)
            kernel, offset = map(averaged, (kernel, offset), tables)
        return jnp.moveaxis(matmul(observed, kernel) + offset[None, None, None], -1, 1)

    def _head(self) -> jax.Array:
        window = self.kernel_size**2 * self.num_orientations
        channels = self.num_orientations * self._actions if self.head == "q" else window
        identity = self.head_start == "identity" and self.head == "q"
        init = _identity if identity else uniform_fan_in(channels)
        return self.param("policy", init, (channels, self.num_orientations * self.num_actions))


def _nearness(numbered: tuple[int, tuple[int, int, int]]) -> tuple[int, ...]:
    """Sorts places: other orientations of the cell, then cells of the same orientation, others.

    Cells by distance, and those of one distance as mechanisms count them: N, E, W, S, NE, NW, SE,
    SW.
    """
    down, right, turn = numbered[1]
    distance = down**2 + right**2
    return (bool(distance and turn), distance, 2 * down - right, turn)


def _places_of(moves: Any, places: Places) -> list[list[int]]:
    """The number of the place that each of moves `[O][A]` leads to."""
    number = {place: k for k, place in enumerate(places)}
    found = []
    for orientation, of_actions in enumerate(moves):
        steps = [(down, right, (new - orientation) % len(moves)) for down, right, new in of_actions]
        beyond = [step for step in steps if step not in number]
        if beyond:
            raise ValueError(
                f"a move of {beyond[0]}, (rows, columns, turn), is beyond the kernels: make "
                "kernel_size larger, or window='all'."
            )
        found.append([number[step] for step in steps])
    return found


def _goal_reward(
    key: jax.Array, shape: Any, dtype: Any = jnp.float32, *, terrain: bool
) -> jax.Array:
    """2.1 for the goal in a state's own orientation, nothing for the map.

    With costs, every unit of them is -0.1 but at the goal, which is worth as much as an average
    cell costs: more would make paths of few actions better than cheap ones.
    """
    del key
    rows, columns = shape
    if not terrain:
        return 2.1 * jnp.eye(rows, columns, k=-1, dtype=dtype)
    reward = 0.1 * jnp.eye(rows, columns, k=-1, dtype=dtype)
    return reward.at[-2].set(-0.1).at[-1].set(0.1)


def _identity(key: jax.Array, shape: Any, dtype: Any = jnp.float32) -> jax.Array:
    del key
    rows, columns = shape
    return jnp.eye(rows, columns, dtype=dtype)


def _read_actions(mdp: DynamicConvMDP, value: jax.Array) -> jax.Array:
    return jnp.moveaxis(mdp.q(value), 1, -2)


def _read_q(mdp: DynamicConvMDP, head: jax.Array, value: jax.Array) -> jax.Array:
    q = jnp.moveaxis(mdp.q(value), 1, -2)
    return _by_orientation(matmul(_differences(q.reshape(*q.shape[:3], -1)), head), value)


def _read_window(size: int, head: jax.Array, value: jax.Array) -> jax.Array:
    around = windows(jnp.moveaxis(value, 1, -1), size)
    return _by_orientation(matmul(_differences(around), head), value)


def _differences(numbers: jax.Array) -> jax.Array:
    """To the largest of a cell: values grow with every layer, which weights would carry over."""
    return numbers - numbers.max(-1, keepdims=True)


def _by_orientation(logits: jax.Array, value: jax.Array) -> jax.Array:
    """`[B, H, W, O·num_actions]` to `[B, H, W, O, num_actions]`."""
    return logits.reshape(*logits.shape[:3], value.shape[1], -1)
