"""Everything that one training step hands to the next."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

Params = Any
# After how many steps the training loss is reported, and its sums begin anew.
REPORT_EVERY = 50


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Window:
    """Sums over the steps since the last multiple of `REPORT_EVERY`.

    Attributes:
      steps: number of steps.
      loss: the sum of their losses.
      accuracy: the sum of their shares of states with an optimal action.
    """

    steps: jax.Array
    loss: jax.Array
    accuracy: jax.Array

    @classmethod
    def empty(cls) -> "Window":
        """No steps yet."""
        return cls(jnp.zeros((), jnp.int32), jnp.zeros(()), jnp.zeros(()))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState:
    """The state of a training run.

    Attributes:
      step: how many steps have been made, int32; the position in the data follows from it.
      params: of the model.
      opt_state: of the optimiser.
      key: a typed PRNG key that stays the same; the noise of a step folds its number in.
      skipped: how many steps had a loss or gradient that was not finite and changed nothing.
      window: sums for the next report.
    """

    step: jax.Array
    params: Params
    opt_state: Any
    key: jax.Array
    skipped: jax.Array
    window: Window


def create_state(
    key: jax.Array, params: Params, optimizer: optax.GradientTransformation
) -> TrainState:
    """The state before the first step; `key` is consumed."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=params,
        opt_state=optimizer.init(params),
        key=key,
        skipped=jnp.zeros((), jnp.int32),
        window=Window.empty(),
    )
