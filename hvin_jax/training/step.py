"""One step of training or evaluation, as pure functions of state and batch.

They know nothing of devices but the name of the axis over which a batch is split: with
`axis_name=None` they run as they are, under `jit` or under `vmap` over the states of several seeds
(`jax.vmap(train_step, in_axes=(0, None))`). `hvin_jax.training.devices` splits them over devices.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree

from hvin_jax.models import PlannerOutput
from hvin_jax.training.objective import Batch, Imitation, LossSums
from hvin_jax.training.optimizers import tree_norm

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
        # Arrays of their own: one that is donated twice is an error.
        loss, accuracy = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.float32)
        return cls(jnp.zeros((), jnp.int32), loss, accuracy)


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


class Forward(Protocol):
    """Applies a model to a batch of a task."""

    def __call__(
        self,
        params: Params,
        batch: Batch,
        *,
        key: jax.Array | None = None,
        example_index: jax.Array | None = None,
        step: jax.Array | None = None,
        **options: Any,
    ) -> PlannerOutput:
        """Plans; with a `key`, in training mode, and then with the number of steps made so far.

        Options are what an objective asks of the model's call.
        """


class StepMetrics(NamedTuple):
    """What a step reports, scalars over the whole batch.

    Attributes:
      loss: the mean loss.
      accuracy: the share of states whose likeliest action is optimal.
      grad_norm: the norm of the gradient before clipping.
      finite: whether loss and gradient were finite; if not, the step changed nothing.
      requests: `[2]`, how many devices' processes asked to stop and to save, see `REQUESTS`.
    """

    loss: jax.Array
    accuracy: jax.Array
    grad_norm: jax.Array
    finite: jax.Array
    requests: jax.Array


class Decisions(NamedTuple):
    """What a model decides on a batch.

    Attributes:
      policy: uint8 `[B, H, W, O]`, the greedy action in every state.
      free: bool `[B, H, W]`, the predicted map; None for models that are given the map.
    """

    policy: Any
    free: Any


class Augment(Protocol):
    """Changes a training batch at random."""

    def __call__(self, batch: Batch, *, key: jax.Array, example_index: jax.Array) -> Batch:
        """The changed batch; what happens to an example depends on `key` and its index alone."""


# A batch may carry under this name what its process asks for, float `[2]`: to stop, and to save.
# Requests join the all-reduce of the losses: all processes learn of them after the same step.
REQUESTS = "requests"
# Keeps the randomness of augmentation apart from that of the steps, whose numbers are smaller.
_AUGMENT = 2**32 - 1
TrainStep = Callable[[TrainState, Batch], tuple[TrainState, StepMetrics]]
EvalStep = Callable[[Params, Any], Decisions]


def make_train_step(
    forward: Forward,
    objective: Imitation,
    optimizer: optax.GradientTransformation,
    *,
    axis_name: str | None = None,
    augment: Augment | None = None,
) -> TrainStep:
    """A training step `(state, batch) -> (state, metrics)`.

    The noise of an example depends on the state's key, the step and the example's place in the
    global batch, so the result is the same (up to rounding) however the batch is split.

    Args:
      forward: applies the model.
      objective: what is minimised.
      optimizer: how.
      axis_name: the mapped axis over which the batch is split, if any.
      augment: what to do to a batch before the step, if anything.

    Returns:
      The step. A loss or gradient that is not finite leaves parameters and optimiser as they were.
    """
    options = {"policies_every": objective.policies_every} if objective.policies_every else {}

    def all_reduce(tree: Any) -> Any:
        if axis_name is None:
            return tree
        # One vector: on CPU every sum under way blocks a thread until all devices have joined it,
        # and several at once can block all of them. On GPUs one large sum is faster, too.
        flat, restore = ravel_pytree(tree)
        return restore(lax.psum(flat, axis_name))

    def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, StepMetrics]:
        size = batch["goal"].shape[0]
        first = 0 if axis_name is None else lax.axis_index(axis_name) * size
        example_index = first + jnp.arange(size)
        if augment is not None:
            key = jax.random.fold_in(jax.random.fold_in(state.key, _AUGMENT), state.step)
            batch = augment(batch, key=key, example_index=example_index)

        def loss(params: Params) -> tuple[jax.Array, LossSums]:
            output = forward(
                params,
                batch,
                key=jax.random.fold_in(state.key, state.step),
                example_index=example_index,
                step=state.step,
                **options,
            )
            sums = objective(output, batch)
            return sums.loss, sums

        grads, local_sums = jax.grad(loss, has_aux=True)(state.params)
        requests = batch.get(REQUESTS, jnp.zeros(2, jnp.float32))
        grads, sums, requests = all_reduce((grads, local_sums, requests))
        grads = jax.tree.map(lambda x: x / sums.weight, grads)
        metrics = _metrics(sums, grads, requests)
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)

        def if_finite(new: Any, old: Any) -> Any:
            return jax.tree.map(lambda x, y: jnp.where(metrics.finite, x, y), new, old)

        new_state = TrainState(
            step=state.step + 1,
            params=if_finite(params, state.params),
            opt_state=if_finite(opt_state, state.opt_state),
            key=state.key,
            skipped=state.skipped + (~metrics.finite).astype(jnp.int32),
            window=_add(state, metrics),
        )
        return new_state, metrics

    return train_step


def make_eval_step(forward: Forward) -> EvalStep:
    """An evaluation step `(params, batch) -> Decisions`."""

    def eval_step(params: Params, batch: Batch) -> Decisions:
        output = forward(params, batch)
        free = None if output.map_logits is None else output.map_logits > 0
        return Decisions(output.logits.argmax(-1).astype(jnp.uint8), free)

    return eval_step


def _metrics(sums: LossSums, grads: Params, requests: jax.Array) -> StepMetrics:
    loss, norm = sums.loss / sums.weight, tree_norm(grads)
    return StepMetrics(
        loss=loss,
        accuracy=sums.correct / sums.weight,
        grad_norm=norm,
        finite=jnp.isfinite(loss) & jnp.isfinite(norm),
        requests=requests,
    )


def _add(state: TrainState, metrics: StepMetrics) -> Window:
    kept = jnp.where(state.step % REPORT_EVERY == 0, 0, 1)
    added = Window(jnp.ones((), jnp.int32), metrics.loss, metrics.accuracy)

    def add(total: jax.Array, amount: jax.Array) -> jax.Array:
        return kept.astype(total.dtype) * total + jnp.where(metrics.finite, amount, 0)

    return jax.tree.map(add, state.window, added)
