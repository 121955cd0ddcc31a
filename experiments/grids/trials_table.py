"""A live table of trials: redrawn in place on a terminal, elsewhere a line for each change."""

import collections
import dataclasses
import shutil
import sys
import time
from collections.abc import Mapping, Sequence

from experiments.launch.console import say

# How often the table is drawn, in seconds.
EVERY = 1.0
# Trials in these states are left out where there is no room for all.
QUIET = ("waiting", "finished")


@dataclasses.dataclass(frozen=True)
class Row:
    """A trial.

    Attributes:
      title: its name.
      state: what it is doing.
      step: how many steps it has made, if that is known.
      success_rate: its newest one on the validation mazes, if there is one.
      failures: how often it has failed.
    """

    title: str
    state: str
    step: int | None
    success_rate: float | None
    failures: int


class TrialsTable:
    """Shows how trials are doing."""

    def __init__(self, num_steps: Mapping[str, int]) -> None:
        """Takes how many steps each trial will make, by its title."""
        self._num_steps = num_steps
        self._drawn_at = -EVERY
        self._height = 0
        self._states: dict[str, tuple[str, int]] = {}

    def is_due(self, done: bool) -> bool:
        """Whether the table should be drawn again."""
        return done or time.monotonic() - self._drawn_at >= EVERY

    def show(self, rows: Sequence[Row], done: bool) -> None:
        """Draws the table, or says what has changed."""
        self._drawn_at = time.monotonic()
        if sys.stdout.isatty():
            up = f"\x1b[{self._height}A\x1b[J" if self._height else ""
            lines = self._lines(rows)
            room = shutil.get_terminal_size().lines - 2
            if len(lines) > room and not done:
                lines = self._lines([row for row in rows if row.state not in QUIET])[:room]
            lines.append(", ".join(f"{n} {state}" for state, n in _count(rows).items()))
            sys.stdout.write(up + "".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
            self._height = len(lines)
            return
        for row in rows:
            if self._states.get(row.title) != (row.state, row.failures):
                self._states[row.title] = (row.state, row.failures)
                say(f"{row.title}: {row.state}{_tries(row)}")
        if done:
            for line in self._lines(rows):
                say(line)

    def _lines(self, rows: Sequence[Row]) -> list[str]:
        width = max([len(row.title) for row in rows], default=0)
        lines = [f"{'trial':<{width}}  {'step':>13}  {'success rate':>12}  state"]
        for row in rows:
            steps = "" if row.step is None else f"{row.step}/{self._num_steps.get(row.title, '?')}"
            rate = "" if row.success_rate is None else f"{100 * row.success_rate:.2f} %"
            lines.append(f"{row.title:<{width}}  {steps:>13}  {rate:>12}  {row.state}{_tries(row)}")
        return lines


def _count(rows: Sequence[Row]) -> collections.Counter[str]:
    return collections.Counter(row.state for row in rows)


def _tries(row: Row) -> str:
    times = "once" if row.failures == 1 else f"{row.failures} times"
    return f" (has failed {times})" if row.failures else ""
