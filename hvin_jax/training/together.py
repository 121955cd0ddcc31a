"""Several runs, such as seeds of one configuration, that make their training steps together.

Each is an ordinary run in a thread of its own, with its own loop, checkpoints and step count. Only
its training step is another one: a meeting point that waits until all runs that are still there
have handed in state and batch, makes one step of all of them as a single computation (`jax.vmap`),
and gives each its own part back. So runs need not be at the same step, may finish or fail when they
like, and go on alone as well as together: a run does not know that it has company.

The threads take turns. All but one of them wait, for their turn or at the meeting point, so what a
run does besides (validation, checkpoints) needs no locks, and at most one computation that is split
over devices is under way.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import numpy as np

from hvin_jax.training.devices import TrainSteps, pmap_train_steps
from hvin_jax.training.state import TrainState
from hvin_jax.training.step import StepMetrics, TrainStep

T = TypeVar("T")


class Place:
    """The place of one run among several."""

    def __init__(self, meeting: "_Meeting", run: int) -> None:
        self._meeting, self._run = meeting, run

    @property
    def num_runs(self) -> int:
        """How many runs began together."""
        return self._meeting.num_runs

    def train_step(self, step: TrainStep) -> TrainStep:
        """What to call instead of a step that is made with `axis_name=BATCH_AXIS`.

        All runs must bring the same step: that of the first one is used.
        """
        self._meeting.use(step)
        return lambda state, batch: self._meeting.meet(self._run, state, batch)

    def asked_to_stop(self) -> bool:
        """Whether everybody was asked to stop at the last step; the same for all runs."""
        return self._meeting.stopping


def train_together(
    runs: Sequence[Callable[[Place], T]], asked_to_stop: Callable[[], bool] = lambda: False
) -> list[T | BaseException]:
    """Lets runs train together, each in a thread.

    Args:
      runs: each is given its place, trains by `place.train_step`, and returns what it likes.
      asked_to_stop: looked at after each step.

    Returns:
      For each run what it returned, or the exception that ended it.
    """
    meeting = _Meeting(len(runs), asked_to_stop)

    def go(number: int) -> T:
        with meeting.turn:
            try:
                return runs[number](Place(meeting, number))
            finally:
                meeting.leave(number)

    with ThreadPoolExecutor(len(runs)) as pool:
        futures = [pool.submit(go, number) for number in range(len(runs))]
    return [future.exception() or future.result() for future in futures]


class _Meeting:
    def __init__(self, num_runs: int, asked_to_stop: Callable[[], bool]) -> None:
        self.turn = threading.Condition()
        self.num_runs = num_runs
        self.stopping = False
        self._asked_to_stop = asked_to_stop
        self._there = set(range(num_runs))
        self._handed_in: dict[int, tuple[TrainState, Any]] = {}
        self._made: dict[int, tuple[TrainState, StepMetrics] | Exception] = {}
        self._steps: TrainSteps | None = None

    def use(self, step: TrainStep) -> None:
        self._steps = self._steps or pmap_train_steps(step)

    def leave(self, run: int) -> None:
        self._there.discard(run)
        self._step_if_all_are_here()

    def meet(self, run: int, state: TrainState, batch: Any) -> tuple[TrainState, StepMetrics]:
        self._handed_in[run] = state, batch
        self._step_if_all_are_here()
        self.turn.wait_for(lambda: run in self._made)
        made = self._made.pop(run)
        if isinstance(made, Exception):
            raise made
        return made

    def _step_if_all_are_here(self) -> None:
        if not self._handed_in or self._handed_in.keys() != self._there:
            return
        # Batches of different shapes, which some tasks have now and then, can't be stacked.
        alike: dict[Any, list[int]] = {}
        for run, (_, batch) in sorted(self._handed_in.items()):
            shapes = tuple(np.shape(x) for x in jax.tree.leaves(batch))
            alike.setdefault(shapes, []).append(run)
        for runs in alike.values():
            self._step(runs)
        self.stopping = self._asked_to_stop()
        self.turn.notify_all()

    def _step(self, runs: list[int]) -> None:
        states, batches = zip(*(self._handed_in.pop(run) for run in runs), strict=True)
        assert self._steps is not None
        try:
            made = self._steps(states, batches)
            if self._handed_in:  # one computation at a time
                jax.block_until_ready(made)
            self._made.update(zip(runs, made, strict=True))
        except Exception as error:
            self._made.update(dict.fromkeys(runs, error))
