r"""Runs, or goes on with, many training runs side by side, on Ray Tune (extra `sweep`).

    python -m experiments.sweep --config=experiments/sweeps/tiny.py --dry_run
    python -m experiments.sweep --config=experiments/sweeps/tiny.py
    python -m experiments.sweep --config=my_sweep.py --address=HOST:PORT

Each trial is the ordinary training command in an ordinary folder, named after what it trains:
RESULTS/FOLDER/CELL-seedN. So stop a sweep (Ctrl-C, SIGTERM, even kill -9) and give the same command
again: finished runs are kept, the others go on from their checkpoints. Add values to the file, and
what is new is run. Finish a run by hand with `python -m experiments.maze`. A folder's lock keeps
two processes from doing the same. What a trial prints is in RESULTS/FOLDER/logs.

Without --address Ray runs on this machine for as long as the sweep does, and listens on 127.0.0.1
only. With it, everybody who can reach the cluster's ports can run code there: keep it in a network
of your own. All its nodes must see this repository, its Python, --results and --data_dir under the
same paths. What a sweep consists of: experiments/grids/sweep.py.
"""

import pathlib
import sys
from typing import Any

from absl import flags
from ml_collections import ConfigDict, config_flags

from experiments.grids import Sweep, jobs_of, running
from experiments.grids.jobs import FINISHED
from experiments.launch.console import say
from experiments.launch.exits import STOPPED, check_files, readable_errors, run_main
from hvin_jax.report.page import Page, depths, finished_groups, provenance

check_files()
_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "What to run: a file of experiments/sweeps, see there."
)
flags.adopt_module_key_flags(running)


def main() -> None:
    """Runs the command."""
    with readable_errors("sweep"):
        sweep: Any = _CONFIG.value
        if not flags.FLAGS["config"].present:
            raise ValueError("--config is missing, for instance experiments/sweeps/tiny.py")
        if isinstance(sweep, ConfigDict):
            raise ValueError("this configuration is for one run: python -m experiments.maze")
        if not isinstance(sweep, Sweep):
            raise ValueError(f"--config: get_config returns {sweep!r}, expected a Sweep")
        jobs = jobs_of(sweep, pathlib.Path(running.RESULTS.value))
        share = running.Share(sweep.cpus, sweep.gpus, sweep.max_failures)
        if running.DRY_RUN.value:
            running.show_cost(jobs, share)
            return
        checked = running.check_jobs(jobs, gpus=sweep.gpus)
        failed = running.run_side_by_side(jobs, checked, share)
    if groups := finished_groups({job.folder: job.variant for job in jobs}):
        page = Page(jobs[0].results / "report", f"sweep-{_name()}")
        depths(page, groups)
        provenance(page, groups)
        say(f"\n{page.content}")
        say(str(page.write()))
    finished = sum(job.state == FINISHED for job in jobs)
    say(f"{finished} of {len(jobs)} trials are finished")
    if failed:
        sys.exit(f"sweep: {len(failed)} trials failed: {', '.join(job.title for job in failed)}")
    if finished < len(jobs):
        say("the same command goes on with the others")
        sys.exit(STOPPED)


def _name() -> str:
    """The sweep's name: that of its file and what stands after the colon."""
    path, _, argument = config_flags.get_config_filename(flags.FLAGS["config"]).partition(":")
    return "-".join(filter(None, [pathlib.Path(path).stem, argument]))


if __name__ == "__main__":
    run_main("sweep", main)
