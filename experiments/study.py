r"""Runs, or goes on with, the runs of a study of the paper.

    python -m experiments.study --name=depths --scale=cpu
    python -m experiments.study --name=filter_gate,ve_modules --scale=cpu --seeds=0,1,2 --minutes=90
    python -m experiments.study --name=depths --scale=paper --cells='highway_vin-25-*'

Each run is the ordinary training command in a folder named after what it trains, one after another,
or side by side with --parallel (Ray Tune, extra `sweep`; see `python -m experiments.sweep`). A run
that is finished is kept, one that was interrupted goes on, one that another process is working on
is left to it: the command can be stopped and started again at any time, and several of them may
share the work. `python -m experiments.report` makes tables and figures of what has finished so far.
"""

import pathlib
import signal
import subprocess
import sys
import time

from absl import app, flags

from experiments import parallel
from experiments.console import quiet_libraries, say
from experiments.exits import BUSY, STOPPED, readable_errors
from experiments.jobs import ELSEWHERE, FINISHED, ROOT, Job, share_devices
from experiments.studies import MEASUREMENTS, NAMES, STUDIES, cells_of, matching

_NAME = flags.DEFINE_list("name", None, f"Which of {', '.join(NAMES)}.", required=True)
_SCALE = flags.DEFINE_enum("scale", "cpu", list(STUDIES), "Full size, or a size for CPUs.")
_SEEDS = flags.DEFINE_list("seeds", ["0"], "One run of each cell for each of these seeds.")
_CELLS = flags.DEFINE_list("cells", ["*"], "Only runs with such names: vin-15-*,*-100-seed2.")
_RESULTS = flags.DEFINE_string("results", "results", "Where the folders of the runs are.")
_MINUTES = flags.DEFINE_float("minutes", None, "Stop after so long, saving the run under way.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Only say what there is to do.")
_SEEDS_PER_DEVICE = flags.DEFINE_integer(
    "seeds_per_device", 1, "Train so many seeds of a cell together, in one process."
)
_PARALLEL = flags.DEFINE_bool("parallel", False, "Run cells side by side, on Ray Tune.")
_CPUS = flags.DEFINE_float("cpus", 1.0, "With --parallel: CPU cores of each run.")
_GPUS = flags.DEFINE_float("gpus", 0.0, "With --parallel: GPUs of each run; may be a fraction.")
flags.adopt_module_key_flags(parallel)


def main(argv: list[str]) -> None:
    """Runs the command; mistakes of the user end it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"study: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    quiet_libraries()
    for name in _NAME.value:
        if name in MEASUREMENTS:
            _measure(name)
    folder = pathlib.Path(_RESULTS.value) / _SCALE.value
    try:
        seeds = [int(seed) for seed in _SEEDS.value]
        names = [name for name in _NAME.value if name not in MEASUREMENTS]
        wanted = [cell for name in names for cell in cells_of(_SCALE.value, name, seeds)]
        cells = matching(wanted, _CELLS.value)
        every = [cell.job(_SCALE.value, folder) for cell in cells]
        jobs = share_devices(every, _SEEDS_PER_DEVICE.value)
    except ValueError as error:
        sys.exit(f"study: {error}")
    side_by_side = _PARALLEL.value and not _DRY_RUN.value
    failed = _run_parallel(jobs) if side_by_side else _run_in_turn(jobs)
    if failed:
        sys.exit(f"study: {len(failed)} runs failed: {', '.join(job.title for job in failed)}")


def _measure(name: str) -> None:
    out = (pathlib.Path(_RESULTS.value) / "paper" / f"{name}.json").resolve()
    say(f"{name}: {out}")
    if not _DRY_RUN.value:
        command = [sys.executable, "-m", f"experiments.{name}", f"--out={out}"]
        subprocess.run(command, cwd=ROOT, check=True)


def _run_parallel(jobs: list[Job]) -> list[Job]:
    with readable_errors("study", ValueError, TypeError, ImportError):
        return parallel.run_parallel(
            jobs,
            parallel.check_jobs(jobs, gpus=_GPUS.value),
            data_dir=pathlib.Path(_DATA_DIR.value),
            cpus=_CPUS.value,
            gpus=_GPUS.value,
            minutes=_MINUTES.value,
        )


def _run_in_turn(jobs: list[Job]) -> list[Job]:
    end = None if _MINUTES.value is None else time.monotonic() + 60 * _MINUTES.value
    failed = []
    for number, job in enumerate(jobs, 1):
        state = job.state
        say(f"[{number}/{len(jobs)}] {job.title}: {state}")
        if _DRY_RUN.value or state in (FINISHED, ELSEWHERE):
            continue
        if end is not None and time.monotonic() > end:
            say("the time is up")
            break
        # A run that is told to stop before it has begun dies of the signal itself.
        if _run(job, end) not in (0, STOPPED, -signal.SIGTERM, BUSY):
            failed.append(job)
    return failed


def _run(job: Job, end: float | None) -> int:
    """Runs a job until it is finished or the time is up, and returns its exit code."""
    process = job.start(pathlib.Path(_DATA_DIR.value))
    try:
        return process.wait(None if end is None else max(end - time.monotonic(), 1))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.terminate()
        return process.wait()


if __name__ == "__main__":
    app.run(main)
