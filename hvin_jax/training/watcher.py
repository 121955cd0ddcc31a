"""Whoever wants to know how a run is doing."""

import contextlib
import math
import pathlib
import time
from collections.abc import Callable, Iterator

from hvin_jax.training.evaluation import Evaluation
from hvin_jax.training.step import StepMetrics


class Watcher:
    """Is told what happens in a run, and does nothing about it: override what you need."""

    def say(self, text: str) -> None:
        """A sentence about what is going on."""

    @contextlib.contextmanager
    def watching(
        self, folder: pathlib.Path, first_step: int, num_steps: int, actions: tuple[str, ...]
    ) -> Iterator[None]:
        """Around all steps.

        Args:
          folder: of the run.
          first_step: how many steps have been made already.
          num_steps: how many there will be.
          actions: the names of the actions.
        """
        yield

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """After each step."""

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Every `REPORT_EVERY` steps, with means since the last report; NaN if all were skipped."""

    def on_validation(self, step: int, evaluation: Evaluation, is_best: bool) -> None:
        """After each validation."""

    @contextlib.contextmanager
    def testing(self, num_mazes: int) -> Iterator[Callable[[int], object]]:
        """Around the test; yields what is called with the number of mazes that are done."""
        yield lambda _: None


class Lines(Watcher):
    """Prints a line for each validation."""

    def __init__(self, write: Callable[[str], object] = print) -> None:
        """Prints by `write`."""
        self._write = write
        self._loss = math.nan

    def say(self, text: str) -> None:
        """Prints it."""
        self._write(text)

    @contextlib.contextmanager
    def watching(
        self, folder: pathlib.Path, first_step: int, num_steps: int, actions: tuple[str, ...]
    ) -> Iterator[None]:
        """Remembers what lines are about."""
        self._num_steps, self._actions = num_steps, actions
        self._since = (first_step, time.monotonic())
        yield

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """Remembers the loss."""
        self._loss = float(metrics.loss)

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Says if there was nothing to learn from."""
        if math.isnan(loss):
            self.say(f"step {step}: not finite, as all since the last report; they are skipped")

    def on_validation(self, step: int, evaluation: Evaluation, is_best: bool) -> None:
        """Prints how the model does on the validation mazes."""
        scores, constant = evaluation.scores, evaluation.constant_action
        last_step, last_time = self._since
        speed = (step - last_step) / max(time.monotonic() - last_time, 1e-9)
        self._since = (step, time.monotonic())
        seen = evaluation.map_accuracy
        self.say(
            f"step {step}/{self._num_steps}  loss {self._loss:.4f}  "
            f"SR {100 * scores.success_rate:.2f} %  OR {100 * scores.optimality_rate:.2f} %  "
            + ("" if seen is None else f"map {100 * seen:.2f} %  ")
            + f"{speed:.2f} steps/s"
            + ("  best so far" if is_best else "")
        )
        if constant is not None:
            self.say(
                f"step {step}: the policy has collapsed to a constant: "
                f"{self._actions[constant]!r} in nearly every state"
            )
