"""The latent MDP of dynamic transition VINs: states on a grid, each with kernels of its own."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from hvin_jax.planning import _checks as checks
from hvin_jax.planning import _dynamic_backup as backup
from hvin_jax.planning._platforms import scan
from hvin_jax.planning._repr import repr_of_arrays

AXES = "[P, A, B, O, H, W]"
_NORMALISED = ("action", "state")
WINDOWS = ("all", "steps")
_FARTHEST = 64


def places_around(size: int, num_orientations: int, window: str = "all") -> backup.Places:
    """The places (rows down, columns to the right, orientations further) that states look at.

    Args:
      size: `F`, the side of a window around the state's cell, odd.
      num_orientations: `O`; places count from the state's own orientation on, modulo `O`.
      window: "all": every cell in every orientation, `F·F·O` places; "steps": those that a step or
        a turn leads to, every cell in the state's own orientation and its own cell in every one,
        `F·F + O - 1` places.
    """
    checks.check_odd("the side of the window", size)
    checks.check_at_least("num_orientations", num_orientations, 1)
    if window not in WINDOWS:
        raise ValueError(f"window must be one of {', '.join(WINDOWS)}, got {window!r}.")
    offsets = range(-(size // 2), size // 2 + 1)
    places = itertools.product(offsets, offsets, range(num_orientations))
    return tuple(x for x in places if window == "all" or x[:2] == (0, 0) or x[2] == 0)


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class DynamicConvMDP:
    """An MDP on `B` grids of `H` × `W` cells with `O` orientations and `A` actions in each state.

    A state is (orientation, row, column), a value a map `[B, O, H, W]` (the cells come last, since
    the inner loops run over them). Every state looks at `P` places around it, and

      Q[b, o, y, x, a] = Σ_k kernel[k, a, b, o, y, x]
                             · (R + V)[b, (o + turn_k) mod O, y + down_k, x + right_k]

    where R and V beyond the border are zero. In a `ConvMDP` all states share one kernel; here each
    has its own, made once from what it sees. With kernels that are probabilities, as `from_logits`
    makes them, a backup does not expand: two values that differ by at most δ differ by at most δ
    after it, and `|V|` grows by at most `max |R|` a layer, at any depth.

    Attributes:
      reward: `R`, `[B, O, H, W]`.
      kernel: `[P, A, B, O, H, W]` with axes (place, action, and the state: example, orientation,
        row, column).
      places: `P` triples (down, right, turn), see `places_around`.
    """

    reward: jax.Array
    kernel: jax.Array
    places: backup.Places

    batched = True
    __repr__ = repr_of_arrays

    def __init__(
        self, reward: Any, kernel: Any, places: Sequence[tuple[int, int, int]] | None = None
    ) -> None:
        """Checks and stores the arrays.

        Args:
          reward: `[B, O, H, W]`.
          kernel: `[P, A, B, O, H, W]`.
          places: `P` triples; by default all of a square window, whose side follows from `P`.
        """
        reward = checks.as_array("reward", reward)
        kernel = checks.as_array("kernel", kernel)
        checks.check_rank("reward", reward, 4, "[B, O, H, W]")
        checks.check_not_empty("reward", reward)
        checks.check_rank("kernel", kernel, 6, AXES)
        checks.check_not_empty("kernel", kernel)
        places = _checked(places, kernel.shape[0], reward.shape[1])
        expected = (len(places), kernel.shape[1], *reward.shape)
        checks.check_shape("kernel", kernel.shape, expected, AXES)
        checks.check_floating("reward", reward.dtype)
        if reward.dtype != kernel.dtype:
            raise TypeError(
                f"reward and kernel must have one type, got {reward.dtype} and {kernel.dtype}."
            )
        self._set(reward, kernel, places)

    def _set(self, reward: Any, kernel: Any, places: backup.Places) -> None:
        for name, field in (("reward", reward), ("kernel", kernel), ("places", places)):
            object.__setattr__(self, name, field)

    @classmethod
    def from_logits(
        cls,
        reward: Any,
        logits: Any,
        places: Sequence[tuple[int, int, int]] | None = None,
        *,
        normalise: str = "action",
    ) -> "DynamicConvMDP":
        """The MDP whose kernels are the softmax of logits.

        Args:
          reward: `R`, `[B, O, H, W]`.
          logits: of the shape of `kernel`.
          places: as for the class.
          normalise: "action": the weights of each action sum to one, probabilities of where it
            leads; "state": those of all actions of a state together.
        """
        logits = checks.as_array("logits", logits)
        checks.check_rank("logits", logits, 6, AXES)
        checks.check_floating("logits", logits.dtype)
        if normalise not in _NORMALISED:
            raise ValueError(
                f"normalise must be one of {', '.join(_NORMALISED)}, got {normalise!r}."
            )
        together = logits.reshape(-1, *logits.shape[2:]) if normalise == "state" else logits
        return cls(reward, backup.softmax(together).reshape(logits.shape), places)

    @property
    def num_actions(self) -> int:
        """`A`."""
        return self.kernel.shape[1]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """`(B, O, H, W)`."""
        return self.reward.shape

    def q(self, value: jax.Array) -> jax.Array:
        """All Q, `[B, O, H, W, A]`."""
        return jnp.moveaxis(backup.q_of_all(self.kernel, self.places, self.reward + value), 0, -1)

    def greedy(self, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The VI module: `max_a Q` and its argument, both `[B, O, H, W]`."""
        args = self.kernel, self.places, self.reward + value
        return backup.best(*args), backup.actions_of(*args)

    def q_of(self, value: jax.Array, action: jax.Array) -> jax.Array:
        """Q of the chosen actions only, `[B, O, H, W]`."""
        return backup.q_of(self.kernel, self.places, self.reward + value, action)

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
            self.places,
            self.reward[None] + inputs,
            actions,
            cotangents,
            grad.reward,
            grad.kernel,
        )
        return value_grad, DynamicConvMDP(reward_grad, kernel_grad, self.places)


# Made anew without a call of `__init__`: checks are for users, not for JAX, which puts anything in
# the place of arrays.
def _unflatten(places: backup.Places, arrays: Iterable[Any]) -> DynamicConvMDP:
    mdp = object.__new__(DynamicConvMDP)
    reward, kernel = arrays
    mdp._set(reward, kernel, places)
    return mdp


jax.tree_util.register_pytree_with_keys(
    DynamicConvMDP,
    lambda mdp: (
        [(jax.tree_util.GetAttrKey(name), getattr(mdp, name)) for name in ("reward", "kernel")],
        mdp.places,
    ),
    _unflatten,
)


def _checked(places: Any, count: int, orientations: int) -> backup.Places:
    """Triples of integers, turns modulo `O`."""
    if places is None:
        size = math.isqrt(count // orientations)
        if size**2 * orientations != count or size % 2 == 0:
            raise ValueError(
                f"kernel has {count} places, expected F·F·O, F odd, with O = {orientations}; "
                "or name the places."
            )
        return places_around(size, orientations)
    try:
        triples = tuple((int(down), int(right), int(turn)) for down, right, turn in places)
    except (TypeError, ValueError) as error:
        raise ValueError(f"places must be triples of integers, got {places!r}.") from error
    if not triples:
        raise ValueError("places must not be empty.")
    far = max(max(abs(down), abs(right)) for down, right, _ in triples)
    if far > _FARTHEST:
        raise ValueError(f"places may be {_FARTHEST} cells away at most, got one of {far}.")
    return tuple((down, right, turn % orientations) for down, right, turn in triples)
