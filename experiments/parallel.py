"""Jobs side by side: what `experiments.sweep` and `experiments.study --parallel` share."""

import multiprocessing
import pathlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import jax
from absl import flags
from ml_collections import ConfigDict

from experiments import launch
from experiments.console import say
from experiments.jobs import FINISHED, Job
from experiments.scratch import TUNE_PREFIX, clear_abandoned

_ADDRESS = flags.DEFINE_string(
    "address", None, "A Ray cluster to run on, HOST:PORT; by default this machine."
)
_MAX_CONCURRENT = flags.DEFINE_integer(
    "max_concurrent", None, "At most so many trials at a time.", lower_bound=1
)


class Checked(NamedTuple):
    """What is known of a job before it runs.

    Attributes:
      config: the configuration.
      num_steps: training steps of each of its runs.
    """

    config: ConfigDict
    num_steps: int


def check_jobs(jobs: Sequence[Job], *, gpus: float) -> dict[str, Checked]:
    """Checks jobs before any of them starts, in a process of its own.

    For JAX starts threads, and Ray forks.

    Args:
      jobs: which.
      gpus: GPUs that each will have.

    Returns:
      What is known of each, by its name.

    Raises:
      ValueError, TypeError: a configuration is wrong.
      WorkdirError: a folder belongs to another configuration.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_check_jobs, jobs, gpus).result()


def _check_jobs(jobs: Sequence[Job], gpus: float) -> dict[str, Checked]:
    # The GPUs are for the trials: here CPU devices stand for them. CPU cores share any batch.
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", max(int(gpus), 1))
    known: dict[str, Checked] = {}
    for job in jobs:
        if job.name not in known:
            config = job.load_config()
            known[job.name] = Checked(config, launch.check(config).plan.num_steps)
        job.check_folders()
    return known


def run_parallel(
    jobs: Sequence[Job],
    checked: Mapping[str, Checked],
    *,
    data_dir: pathlib.Path,
    cpus: float,
    gpus: float,
    max_failures: int = 2,
    minutes: float | None = None,
) -> list[Job]:
    """Runs jobs side by side, and says how that ended.

    Args:
      jobs: which.
      checked: what is known of them.
      data_dir: where data are kept.
      cpus: CPU cores of each.
      gpus: GPUs of each.
      max_failures: so often a failed one is started again.
      minutes: stop after so long, saving what is under way.

    Returns:
      The jobs that failed.

    Raises:
      ImportError: Ray Tune is missing.
      ValueError: there is no room for a job, or no cluster.
    """
    left = [job for job in jobs if job.state != FINISHED]
    if not left:
        for parent in {job.results for job in jobs}:
            clear_abandoned(parent, TUNE_PREFIX)
        return []
    try:
        from experiments import on_ray
    except ImportError as error:
        raise ImportError(
            f"jobs side by side need Ray Tune: pip install 'hvin_jax[sweep]' ({error})"
        ) from error
    failed = on_ray.run_jobs(
        left,
        {job.title: checked[job.name].num_steps for job in left},
        on_ray.Options(
            data_dir=data_dir.resolve(),
            cpus=cpus,
            gpus=gpus,
            max_failures=max_failures,
            max_concurrent=_MAX_CONCURRENT.value,
            address=_ADDRESS.value,
            end=None if minutes is None else time.time() + 60 * minutes,
        ),
    )
    for job in failed:
        say(f"{job.title} has failed; what it said: {on_ray.log_file(job)}")
    return failed
