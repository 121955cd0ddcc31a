r"""Runs, or goes on with, the runs of a study of the paper.

    python -m experiments.study --name=depths --scale=cpu --dry_run
    python -m experiments.study --name=filter_gate,ve_modules --scale=cpu --seeds=0,1,2 --minutes=90
    python -m experiments.study --name=depths --scale=paper --cells='highway_vin-25-*'

Each run is the ordinary training command in a folder named after what it trains, one after another,
or side by side with --parallel (Ray Tune, extra `sweep`; see `python -m experiments.sweep`). A run
that is finished is kept, one that was interrupted goes on, one that another process is working on
is left to it: the command can be stopped and started again at any time, and several of them may
share the work. `python -m experiments.report` makes tables and figures of what has finished so far.
"""

import pathlib
import sys

from absl import flags

from experiments.grids import running
from experiments.grids.studies import NAMES, SCALES, matching, study_jobs
from experiments.launch.exits import integers, readable_errors, run_main
from hvin_jax.training.devices import usable_cores

_NAME = flags.DEFINE_list("name", None, f"Which of {', '.join(NAMES)}.", required=True)
_SCALE = flags.DEFINE_enum("scale", "cpu", SCALES, "Full size, or a size for CPUs.")
_SEEDS = flags.DEFINE_list("seeds", ["0"], "One run of each cell for each of these seeds.")
_CELLS = flags.DEFINE_list("cells", ["*"], "Only runs with such names: vin-15-*,*-100-seed2.")
_PARALLEL = flags.DEFINE_bool("parallel", False, "Run cells side by side, on Ray Tune.")
_CPUS = flags.DEFINE_float("cpus", 1.0, "With --parallel: CPU cores of each run.")
_GPUS = flags.DEFINE_float("gpus", 0.0, "With --parallel: GPUs of each run; may be a fraction.")
flags.adopt_module_key_flags(running)


def main() -> None:
    """Runs the command."""
    with readable_errors("study"):
        results = pathlib.Path(running.RESULTS.value)
        seeds = integers("seeds", _SEEDS.value)
        jobs = matching(study_jobs(_SCALE.value, _NAME.value, seeds, results), _CELLS.value)
        # One after another, each has all cores.
        cpus = _CPUS.value if _PARALLEL.value else float(usable_cores())
        share = running.Share(cpus, _GPUS.value)
        if running.DRY_RUN.value:
            running.show_cost(jobs, share)
            return
        if _PARALLEL.value:
            checked = running.check_jobs(jobs, gpus=share.gpus)
            failed = running.run_side_by_side(jobs, checked, share)
        else:
            failed = running.run_in_turn(jobs)
    if failed:
        sys.exit(f"study: {len(failed)} runs failed: {', '.join(job.title for job in failed)}")


if __name__ == "__main__":
    run_main("study", main)
