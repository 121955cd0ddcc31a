"""What a run shows while it is running: progress bar, a line per validation, TensorBoard."""

import contextlib
import math
import pathlib
import sys
from collections.abc import Callable, Iterator

from tensorboardX import SummaryWriter
from tqdm import tqdm

from hvin_jax.training import Lines, hosts
from hvin_jax.training.evaluation import Evaluation
from hvin_jax.training.step import StepMetrics


class Console(Lines):
    """Prints lines, moves a progress bar where there is a terminal, writes for TensorBoard."""

    def __init__(self) -> None:
        """Prints by `say`, which does not disturb the bar."""
        super().__init__(say)
        self._shown: dict[str, str] = {}

    @contextlib.contextmanager
    def watching(
        self, folder: pathlib.Path, first_step: int, num_steps: int, actions: tuple[str, ...]
    ) -> Iterator[None]:
        """Opens and closes bar and log."""
        with (
            super().watching(folder, first_step, num_steps, actions),
            tqdm(
                total=num_steps,
                initial=first_step,
                unit=" steps",
                desc="training",
                disable=not sys.stderr.isatty(),
                dynamic_ncols=True,
            ) as self._bar,
            SummaryWriter(str(folder / "tensorboard"), purge_step=first_step + 1) as self._board,
        ):
            yield

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """Moves the bar."""
        super().on_step(step, metrics)
        self._shown["loss"] = f"{self._loss:.3f}"
        self._bar.set_postfix(self._shown, refresh=False)
        self._bar.update(step - self._bar.n)

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Logs the training loss."""
        super().on_report(step, loss, accuracy)
        if not math.isnan(loss):
            self._board.add_scalar("train/loss", loss, step)
            self._board.add_scalar("train/accuracy", accuracy, step)

    def on_validation(self, step: int, evaluation: Evaluation, is_best: bool) -> None:
        """Prints and logs how the model does on the validation mazes."""
        for name, value in evaluation.rates.items():
            self._board.add_scalar(f"valid/{name}", value, step)
        self._board.flush()
        self._shown["SR"] = f"{100 * evaluation.scores.success_rate:.1f}%"
        super().on_validation(step, evaluation, is_best)

    @contextlib.contextmanager
    def testing(self, num_mazes: int) -> Iterator[Callable[[int], object]]:
        """A progress bar for the test."""
        hidden = not sys.stderr.isatty()
        with tqdm(total=num_mazes, unit=" mazes", desc="testing", disable=hidden, leave=False) as x:
            yield x.update


def say(text: str) -> None:
    """Prints a line without disturbing the progress bar."""
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def announce(text: str) -> None:
    """Prints a line if this is the first process of a run."""
    if hosts.is_first():
        say(text)
