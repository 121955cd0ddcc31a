"""One step of training or evaluation, as pure functions of state and batch.

They know nothing of devices but the name of the axis over which a batch is split: with
`axis_name=None` they run as they are, under `jit` or under `vmap` over the states of several seeds
(`jax.vmap(train_step, in_axes=(0, None))`). `hvin_jax.training.devices` splits them over devices.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.flatten_util import ravel_pytree

from hvin_jax.models import PlannerOutput
from hvin_jax.tasks.maze_data import goal_maps
from hvin_jax.tasks.symmetries import Symmetries
from hvin_jax.training.objective import Batch, LossSums
from hvin_jax.training.optimizers import tree_norm
from hvin_jax.training.state import REPORT_EVERY, Params, TrainState, Window


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
    ) -> PlannerOutput:
        """Plans; with a `key`, in training mode, and then with the number of steps made so far."""


class StepMetrics(NamedTuple):
    """What a step reports, scalars over the whole batch.

    Attributes:
      loss: the mean loss.
      accuracy: the share of states whose likeliest action is optimal.
      grad_norm: the norm of the gradient before clipping.
      finite: whether loss and gradient were finite; if not, the step changed nothing.
      wishes: `[2]`, how many devices' processes wished to stop and to save, see `WISHES`.
    """

    loss: jax.Array
    accuracy: jax.Array
    grad_norm: jax.Array
    finite: jax.Array
    wishes: jax.Array


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


# A batch may carry under this name what its process wishes for, float `[2]`: to stop, and to save.
# Wishes are summed with the losses, so that all processes learn of them after the same step.
WISHES = "wishes"
# Keeps the randomness of augmentation apart from that of the steps, whose numbers are smaller.
_AUGMENT = 2**32 - 1
TrainStep = Callable[[TrainState, Batch], tuple[TrainState, StepMetrics]]
EvalStep = Callable[[Params, Any], Decisions]


def make_train_step(
    forward: Forward,
    objective: Callable[[PlannerOutput, Batch], LossSums],
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

    def total(tree: Any) -> Any:
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
            )
            sums = objective(output, batch)
            return sums.loss, sums

        grads, local_sums = jax.grad(loss, has_aux=True)(state.params)
        wishes = batch.get(WISHES, jnp.zeros(2))
        grads, sums, wishes = total((grads, local_sums, wishes))
        grads = jax.tree.map(lambda x: x / sums.weight, grads)
        metrics = _metrics(sums, grads, wishes)
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


def _metrics(sums: LossSums, grads: Params, wishes: jax.Array) -> StepMetrics:
    loss, norm = sums.loss / sums.weight, tree_norm(grads)
    return StepMetrics(
        loss=loss,
        accuracy=sums.correct / sums.weight,
        grad_norm=norm,
        finite=jnp.isfinite(loss) & jnp.isfinite(norm),
        wishes=wishes,
    )


def _add(state: TrainState, metrics: StepMetrics) -> Window:
    kept = jnp.where(state.step % REPORT_EVERY == 0, 0, 1)
    added = Window(jnp.ones((), jnp.int32), metrics.loss, metrics.accuracy)

    def add(total: jax.Array, amount: jax.Array) -> jax.Array:
        return kept.astype(total.dtype) * total + jnp.where(metrics.finite, amount, 0)

    return jax.tree.map(add, state.window, added)


def maze_forward(model: Any) -> Forward:
    """Applies a planner to mazes that are given by their maps and goals.

    Args:
      model: a module of `hvin_jax.models`.

    Returns:
      The function; it reads maze `[B, H, W]` and goal `[B, 3]` of a batch.
    """

    def forward(
        params: Params,
        batch: Mapping[str, jax.Array],
        *,
        key: jax.Array | None = None,
        example_index: jax.Array | None = None,
        step: jax.Array | None = None,
    ) -> PlannerOutput:
        del step  # training is the same from beginning to end
        maze = batch["maze"]
        return model.apply(
            params,
            maze,
            goal_maps(batch["goal"], size=maze.shape[1:], num_orientations=model.num_orientations),
            train=key is not None,
            example_index=example_index,
            rngs=None if key is None else {"exploration": key},
        )

    return forward


def random_symmetry(symmetries: Symmetries) -> Augment:
    """Turns and mirrors each maze of a batch, all ways being equally likely."""

    def augment(batch: Batch, *, key: jax.Array, example_index: jax.Array) -> Batch:
        keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(example_index)
        which = jax.vmap(lambda key: jax.random.randint(key, (), 0, symmetries.order))(keys)
        return symmetries.transform(batch, which)

    return augment
