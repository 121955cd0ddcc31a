r"""Runs, or goes on with, many training runs side by side, on Ray Tune (extra `sweep`).

    python -m experiments.sweep --config=experiments/sweeps/tiny.py --dry_run
    python -m experiments.sweep --config=experiments/sweeps/tiny.py
    python -m experiments.sweep --config=experiments/sweeps/depths.py:15 --address=HOST:PORT

Each trial is the ordinary training command in an ordinary folder, named after what it trains:
RESULTS/FOLDER/CELL-seedN. So stop a sweep (Ctrl-C, SIGTERM, even kill -9) and give the same command
again: finished runs are kept, the others go on from their checkpoints. Add values to the file, and
what is new is run. Finish a run by hand with `python -m experiments.maze`. A folder's lock keeps
two processes from doing the same. What a trial prints is in RESULTS/FOLDER/logs.

Without --address Ray runs on this machine for as long as the sweep does, and listens on 127.0.0.1
only. With it, everybody who can reach the cluster's ports can run code there: keep it in a network
of your own. All its nodes must see this repository, its Python, --results and --data_dir under the
same paths. What a sweep consists of: experiments/sweeps/base.py.
"""

import pathlib
import sys
from collections.abc import Mapping, Sequence

from absl import app, flags
from ml_collections import ConfigDict, config_flags

from experiments import parallel
from experiments.console import quiet_libraries, say
from experiments.estimate import depth_of, duration, estimate
from experiments.exits import STOPPED, readable_errors
from experiments.jobs import FINISHED, Job
from experiments.page import Page, depths, finished_groups, provenance
from experiments.sweeps.base import Sweep, jobs_of

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "What to run: a file of experiments/sweeps, see there."
)
_RESULTS = flags.DEFINE_string("results", "results", "Where the folders of the runs are.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")
_DRY_RUN = flags.DEFINE_bool("dry_run", False, "Only say what there is to do and what it costs.")
flags.adopt_module_key_flags(parallel)


def main(argv: list[str]) -> None:
    """Runs the command; mistakes of the user end it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"sweep: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    quiet_libraries()
    sweep: Sweep | None = _CONFIG.value
    if sweep is None:
        sys.exit("sweep: --config is missing, for instance experiments/sweeps/tiny.py")
    with readable_errors("sweep", ValueError, TypeError):
        jobs = jobs_of(sweep, pathlib.Path(_RESULTS.value))
        checked = parallel.check_jobs(jobs, gpus=sweep.gpus)
    if _DRY_RUN.value:
        _show_cost(sweep, jobs, checked)
        return
    with readable_errors("sweep", ValueError, ImportError):
        failed = parallel.run_parallel(
            jobs,
            checked,
            data_dir=pathlib.Path(_DATA_DIR.value),
            cpus=sweep.cpus,
            gpus=sweep.gpus,
            max_failures=sweep.max_failures,
        )
    _show_tables(sweep, jobs, checked)
    finished = sum(job.state == FINISHED for job in jobs)
    say(f"{finished} of {len(jobs)} trials are finished")
    if failed:
        sys.exit(f"sweep: {len(failed)} trials failed: {', '.join(job.title for job in failed)}")
    if finished < len(jobs):
        say("the same command goes on with the others")
        sys.exit(STOPPED)


def _show_cost(sweep: Sweep, jobs: Sequence[Job], checked: Mapping[str, parallel.Checked]) -> None:
    width = max((len(job.title) for job in jobs), default=0)
    total = 0.0
    for job in jobs:
        config, num_steps = checked[job.name]
        cost = estimate(job, config, num_steps, cpus=sweep.cpus, gpus=sweep.gpus)
        total += cost.seconds
        time = f"{cost.steps:>7} steps, {duration(cost.seconds):<12} ({cost.source})"
        say(f"{job.title:<{width}}  {job.state:<16} {'' if cost.source == FINISHED else time}")
    each = f"{sweep.gpus:g} GPUs" if sweep.gpus else f"{sweep.cpus:g} CPUs"
    say(
        f"{len(jobs)} trials on {each} each; one after another they would take about "
        f"{duration(total)}, compiling and testing not counted"
    )


def _show_tables(
    sweep: Sweep, jobs: Sequence[Job], checked: Mapping[str, parallel.Checked]
) -> None:
    groups = finished_groups(
        {
            folder: (*_cell(checked[job.name].config), job.variant)
            for job in jobs
            for folder in job.folders
        }
    )
    if not groups:
        return
    folder = pathlib.Path(_RESULTS.value) / sweep.folder / "report"
    folder.mkdir(parents=True, exist_ok=True)
    page = Page(folder, f"sweep-{_name()}")
    depths(page, groups)
    provenance(page, groups)
    say(f"\n{page.content}")
    page.write()


def _name() -> str:
    """The sweep's name: that of its file and what stands after the colon."""
    path, _, argument = config_flags.get_config_filename(flags.FLAGS["config"]).partition(":")
    return "-".join(filter(None, [pathlib.Path(path).stem, argument]))


def _cell(config: ConfigDict) -> tuple[str, int, int]:
    return config.model.kind, config.data.size, depth_of(config)


if __name__ == "__main__":
    app.run(main)
