"""The training loop: steps, validation, the best model, checkpoints.

It prints nothing and knows no logger: whoever calls it passes functions that are told what happens.
When a run has several processes, each runs this loop and they stay in step: what only one of them
knows (a signal, the time) goes with its next batch, and all learn of it by that step's metrics.
"""

import collections
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.training.checkpoints import Best, Checkpoints, Snapshot
from hvin_jax.training.devices import steps_in_flight
from hvin_jax.training.evaluation import Evaluation
from hvin_jax.training.hosts import is_first
from hvin_jax.training.state import REPORT_EVERY, Params
from hvin_jax.training.step import WISHES, StepMetrics, TrainStep


class Watcher(Protocol):
    """Whoever wants to know how a run is doing."""

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """After each step."""

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Every `REPORT_EVERY` steps, with means since the last report; NaN if all were skipped."""

    def on_validation(self, step: int, evaluation: Evaluation, score: float, is_best: bool) -> None:
        """After each validation."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long to train, and what to do on the way.

    Attributes:
      num_steps: the number of steps.
      validate_every: validate after so many steps (and at the end).
      save_seconds: besides at each validation, write a checkpoint after so many seconds.
      skip_not_finite: whether to go on when a loss or gradient is not finite; the step is skipped
        and counted. Otherwise the run stops.
      stop_after_collapses: stop when so many validations in a row found a constant policy, or when
        one comes with a report whose steps were all skipped, so that parameters stand still; 0 goes
        on whatever happens.
    """

    num_steps: int
    validate_every: int
    save_seconds: float = 120.0
    skip_not_finite: bool = False
    stop_after_collapses: int = 0

    def __post_init__(self) -> None:
        for name in ("num_steps", "validate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")


class NotFiniteError(FloatingPointError):
    """A loss or gradient is not finite."""


class Interrupted(Exception):
    """The run was asked to stop, and has saved everything."""


def fit(
    snapshot: Snapshot,
    plan: Plan,
    *,
    train_step: TrainStep,
    batches: Iterator[Any],
    validate: Callable[[Params], Evaluation],
    score: Callable[[Evaluation], float],
    checkpoints: Checkpoints,
    watcher: Watcher,
    asked_to_stop: Callable[[], bool] = lambda: False,
) -> Snapshot:
    """Trains from a snapshot to the end of the plan.

    Args:
      snapshot: where to start from; its arrays are consumed.
      plan: how long to train.
      train_step: split over devices, see `devices.pmap_train_step`.
      batches: the batches from the snapshot's step on.
      validate: measures parameters on the validation mazes.
      score: what makes one model better than another.
      checkpoints: where to save.
      watcher: is told what happens.
      asked_to_stop: looked at before each step; if true in any process, the run saves after it and
        raises `Interrupted`.

    Returns:
      The last snapshot, which is saved.
    """
    state, best, collapsed = snapshot.state, snapshot.best, int(snapshot.collapsed)
    began = time.monotonic() - float(snapshot.seconds)
    saved_at = time.monotonic()
    in_flight: collections.deque[tuple[int, StepMetrics]] = collections.deque()
    wished = np.zeros(2)

    def wishes() -> np.ndarray:
        nonlocal saved_at
        is_due = is_first() and time.monotonic() - saved_at > plan.save_seconds
        if is_due:
            saved_at = time.monotonic()
        mine = np.asarray([asked_to_stop(), is_due], np.float32)
        return np.tile(mine, (jax.local_device_count(), 1))

    def look(at_most: int) -> None:
        nonlocal wished
        while len(in_flight) > at_most:
            step, metrics = jax.block_until_ready(in_flight.popleft())
            wished = wished + np.asarray(metrics.wishes)
            if not plan.skip_not_finite and not metrics.finite:
                raise NotFiniteError(
                    f"step {step} has a loss of {float(metrics.loss)} and a gradient of norm "
                    f"{float(metrics.grad_norm)}; the last good checkpoint is {checkpoints.newest}"
                )
            watcher.on_step(step, metrics)

    def take_snapshot() -> Snapshot:
        seconds = jnp.asarray(time.monotonic() - began, jnp.float32)
        return Snapshot(state, best, jnp.asarray(collapsed, jnp.int32), seconds)

    def given_up() -> bool:
        return 0 < plan.stop_after_collapses <= collapsed

    step = int(state.step)
    while step < plan.num_steps and not given_up():
        batch: dict[str, Any] = {**next(batches), WISHES: wishes()}
        state, metrics = train_step(state, batch)
        step += 1
        in_flight.append((step, metrics))
        look(at_most=steps_in_flight())
        to_stop, to_save = wished > 0
        wished = np.zeros(2)
        if step % REPORT_EVERY == 0:
            look(at_most=0)
            window = state.window
            steps = float(window.steps) or math.nan
            watcher.on_report(step, float(window.loss) / steps, float(window.accuracy) / steps)
        if step % plan.validate_every == 0 or step == plan.num_steps:
            look(at_most=0)
            evaluation = validate(state.params)
            collapsed = 0 if evaluation.constant_action is None else collapsed + 1
            if step % REPORT_EVERY == 0 and not int(state.window.steps):
                collapsed = max(collapsed, plan.stop_after_collapses, 1)
            value = float(np.float32(score(evaluation)))
            if is_best := value > float(best.score):
                # A copy, since the state's own arrays are given away to the next step.
                params = jax.tree.map(jnp.copy, state.params)
                best = Best(params, jnp.asarray(value, jnp.float32), jnp.asarray(step, jnp.int32))
            watcher.on_validation(step, evaluation, value, is_best)
            to_save = True
        if to_save or to_stop:
            look(at_most=0)
            checkpoints.save(take_snapshot())
            saved_at = time.monotonic()
        if to_stop:
            checkpoints.wait()
            raise Interrupted(f"stopped after step {step}, saved in {checkpoints.newest}")
    look(at_most=0)
    checkpoints.wait()
    return take_snapshot()
