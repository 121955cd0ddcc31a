r"""Runs, or goes on with, the runs of a study of the paper.

    python -m experiments.study --name=depths --scale=cpu
    python -m experiments.study --name=filter_gate,ve_modules --scale=cpu --seeds=0,1,2 --minutes=90

Each run is the ordinary maze command in a folder named after what it trains, one after another. A
run that is finished is kept, one that was interrupted goes on, one that another process is working
on is left to it: the command can be stopped and started again at any time, and several of them may
share the work. `python -m experiments.report` makes tables and figures of what has finished so far.
"""

import pathlib
import signal
import subprocess
import sys
import time

from absl import app, flags

from experiments.console import quiet_libraries, say
from experiments.exits import BUSY, STOPPED
from experiments.studies import COST, STUDIES, Cell, cells_of
from hvin_jax.training.workdir import is_locked

ROOT = pathlib.Path(__file__).parents[1]
_NAME = flags.DEFINE_list(
    "name", None, f"Which of {', '.join([*STUDIES['paper'], COST])}.", required=True
)
_SCALE = flags.DEFINE_enum("scale", "cpu", list(STUDIES), "Full size, or a size for CPUs.")
_SEEDS = flags.DEFINE_list("seeds", ["0"], "One run of each cell for each of these seeds.")
_RESULTS = flags.DEFINE_string("results", "results", "Where the folders of the runs are.")
_MINUTES = flags.DEFINE_float("minutes", None, "Stop after so long, saving the run under way.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Only say what there is to do.")


def main(argv: list[str]) -> None:
    """Runs the command; mistakes of the user end it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"study: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    quiet_libraries()
    if COST in _NAME.value:
        _measure_cost()
    try:
        seeds = [int(seed) for seed in _SEEDS.value]
        names = [name for name in _NAME.value if name != COST]
        wanted = [cell for name in names for cell in cells_of(_SCALE.value, name, seeds)]
    except ValueError as error:
        sys.exit(f"study: {error}")
    cells = list(dict.fromkeys(wanted))
    end = None if _MINUTES.value is None else time.monotonic() + 60 * _MINUTES.value
    folder = pathlib.Path(_RESULTS.value) / _SCALE.value
    failed = []
    for number, cell in enumerate(cells, 1):
        where = folder / cell.name
        state = _state(where)
        say(f"[{number}/{len(cells)}] {cell.name}: {state}")
        if _DRY_RUN.value or state in ("finished", "another process is at it"):
            continue
        if end is not None and time.monotonic() > end:
            say("the time is up")
            break
        # A run that is told to stop before it has begun dies of the signal itself.
        if _run(cell, where, end) not in (0, STOPPED, -signal.SIGTERM, BUSY):
            failed.append(cell.name)
    if failed:
        sys.exit(f"study: {len(failed)} runs failed: {', '.join(failed)}")


def _measure_cost() -> None:
    out = (pathlib.Path(_RESULTS.value) / "paper" / "cost.json").resolve()
    say(f"cost: {out}")
    if not _DRY_RUN.value:
        command = [sys.executable, "-m", "experiments.cost", f"--out={out}"]
        subprocess.run(command, cwd=ROOT, check=True)


def _state(folder: pathlib.Path) -> str:
    if (folder / "result.json").exists():
        return "finished"
    if is_locked(folder):
        return "another process is at it"
    return "to be continued" if (folder / "checkpoints").exists() else "to be done"


def _run(cell: Cell, folder: pathlib.Path, end: float | None) -> int:
    """Runs a cell until it is finished or the time is up, and returns its exit code."""
    command = [sys.executable, "-m", f"experiments.{cell.command}", *cell.flags(_SCALE.value)]
    data_dir = pathlib.Path(_DATA_DIR.value).resolve()
    command += [f"--workdir={folder.resolve()}", f"--data_dir={data_dir}"]
    shorter = cell.extends and folder.with_name(cell.extends.name)
    if shorter and (shorter / "result.json").exists():
        command.append(f"--start_from={shorter.resolve()}")
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        return process.wait(None if end is None else max(end - time.monotonic(), 1))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.terminate()
        return process.wait()


if __name__ == "__main__":
    app.run(main)
