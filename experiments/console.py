"""What a run shows while it is running: progress bar, a line per validation, logs for tools."""

import contextlib
import math
import pathlib
import sys
import time
from collections.abc import Callable, Iterator

from absl import flags, logging
from tensorboardX import SummaryWriter
from tqdm import tqdm

from hvin_jax.training.evaluation import Evaluation
from hvin_jax.training.hosts import is_first
from hvin_jax.training.step import StepMetrics
from hvin_jax.training.workdir import MetricsLog


class Console:
    """A `Watcher` that writes to the terminal, to `metrics.jsonl` and for TensorBoard."""

    def __init__(
        self,
        folder: pathlib.Path,
        *,
        first_step: int,
        num_steps: int,
        actions: tuple[str, ...],
        say: Callable[[str], None],
        label: str = "",
    ) -> None:
        """Continues the logs of a run.

        Args:
          folder: of the run.
          first_step: how many steps have been made already.
          num_steps: how many there will be.
          actions: the names of the actions.
          say: prints a line.
          label: what the bar begins with.
        """
        self.log = MetricsLog(folder, resume_step=first_step)
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=first_step + 1)
        self._bar = tqdm(
            total=num_steps,
            initial=first_step,
            unit=" steps",
            desc=f"{label}training",
            disable=not sys.stderr.isatty(),
            dynamic_ncols=True,
        )
        self._num_steps, self._actions, self._say = num_steps, actions, say
        self._shown: dict[str, str] = {}
        self._loss = float("nan")
        self._since = (first_step, time.monotonic())

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """Moves the bar."""
        self._loss = float(metrics.loss)
        self._shown["loss"] = f"{self._loss:.3f}"
        self._bar.set_postfix(self._shown, refresh=False)
        self._bar.update(step - self._bar.n)

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Logs the training loss."""
        if math.isnan(loss):
            self.log.write({"step": step, "loss": None, "accuracy": None})
            self._say(f"step {step}: not finite, as all since the last report; they are skipped")
            return
        self.log.write({"step": step, "loss": loss, "accuracy": accuracy})
        self._board.add_scalar("train/loss", loss, step)
        self._board.add_scalar("train/accuracy", accuracy, step)

    def on_validation(self, step: int, evaluation: Evaluation, score: float, is_best: bool) -> None:
        """Prints and logs how the model does on the validation mazes."""
        scores = evaluation.scores
        constant = evaluation.constant_action
        rates = {
            "success_rate": scores.success_rate,
            "optimality_rate": scores.optimality_rate,
            "percent_optimal": scores.percent_optimal,
            "percent_success": scores.percent_success,
        }
        if evaluation.map_accuracy is not None:
            rates["map_accuracy"] = evaluation.map_accuracy
        self.log.write({"step": step, **rates, "constant_action": constant})
        for name, value in rates.items():
            self._board.add_scalar(f"valid/{name}", value, step)
        self._board.flush()
        self._shown["SR"] = f"{100 * scores.success_rate:.1f}%"
        last_step, last_time = self._since
        speed = (step - last_step) / max(time.monotonic() - last_time, 1e-9)
        self._since = (step, time.monotonic())
        self._say(
            f"step {step}/{self._num_steps}  loss {self._loss:.4f}  "
            f"SR {100 * scores.success_rate:.2f} %  OR {100 * scores.optimality_rate:.2f} %  "
            + (f"map {100 * rates['map_accuracy']:.2f} %  " if "map_accuracy" in rates else "")
            + f"{speed:.2f} steps/s"
            + ("  best so far" if is_best else "")
        )
        if constant is not None:
            self._say(
                f"step {step}: the policy has collapsed to a constant: "
                f"{self._actions[constant]!r} in nearly every state"
            )

    def close(self) -> None:
        """Closes bar and logs."""
        self._bar.close()
        self._board.close()
        self.log.close()


class Silence:
    """A `Watcher` for the processes of a run that are not the first."""

    def on_step(self, step: int, metrics: StepMetrics) -> None:
        """Nothing."""

    def on_report(self, step: int, loss: float, accuracy: float) -> None:
        """Nothing."""

    def on_validation(self, step: int, evaluation: Evaluation, score: float, is_best: bool) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


@contextlib.contextmanager
def bar(total: int, what: str) -> Iterator[tqdm]:
    """A progress bar for something other than training; none where there is no terminal."""
    hidden = not sys.stderr.isatty() or not is_first()
    with tqdm(total=total, unit=" mazes", desc=what, disable=hidden, leave=False) as progress:
        yield progress


def quiet_libraries() -> None:
    """Lets libraries print warnings only, unless --verbosity asks for more."""
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)


def say(text: str) -> None:
    """Prints a line without disturbing the progress bar."""
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def announce(text: str) -> None:
    """Prints a line if this is the first process of a run."""
    if is_first():
        say(text)
