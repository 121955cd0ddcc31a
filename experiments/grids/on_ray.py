"""Jobs as trials of Ray Tune: the one file that imports Ray (extra `sweep`).

Ray decides when and where a job is started, with which GPU (it sets CUDA_VISIBLE_DEVICES, which the
training command inherits), and starts a failed one again. What has been done is known from the
folders of the runs alone, so nothing of Tune's own is restored: the same command again keeps what
is finished, goes on with what is not, and may have other trials than before.

A trial is asked to stop by a file, `stop`, in Tune's folder: it ends the training command gently
and waits for it. If the driver is killed, so are Ray's processes; the training commands notice that
their parent is gone, save and stop.
"""

import contextlib
import dataclasses
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",  # nobody is told
    RAY_AIR_NEW_OUTPUT="0",  # the table is ours
    TUNE_DISABLE_SIGINT_HANDLER="1",  # so is the way to stop
    TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
)

import ray
from ray import tune
from ray._private import ray_constants

from experiments.grids.jobs import ELSEWHERE, FINISHED, Job
from experiments.grids.scratch import TUNE_PREFIX, scratch
from experiments.grids.trials_table import Row, TrialsTable
from experiments.launch.exits import BUSY, INTERRUPTED, STOPPED
from hvin_jax._private import private_folder
from hvin_jax.training.devices import even_number
from hvin_jax.training.workdir import read_metrics

LOOPBACK = "127.0.0.1"
# So long a run whose process was orphaned a moment ago has to save and to let go of its folder.
WAIT_FOR_FOLDER = 60.0
# How often a trial tells how it is doing.
REPORT_SECONDS = 1.0
# So long the trials have to save and to stop.
STOP_SECONDS = 45.0
STOPPED_STATE = "stopped"


@dataclasses.dataclass(frozen=True)
class Options:
    """How jobs are run.

    Attributes:
      data_dir: where data are kept.
      cpus: CPU cores of a trial.
      gpus: GPUs of a trial.
      max_failures: so often a failed trial is started again.
      max_concurrent: at most so many trials at a time; None: as many as there is room for.
      address: of an existing cluster; None starts Ray on this machine for the time being.
      end: when to stop, in seconds since the epoch; None: when everything is done.
    """

    data_dir: pathlib.Path
    cpus: float = 1.0
    gpus: float = 0.0
    max_failures: int = 2
    max_concurrent: int | None = None
    address: str | None = None
    end: float | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a training command."""
        if not self.gpus:
            return {"JAX_PLATFORMS": "cpu"}
        # By default JAX takes three quarters of a GPU's memory, which leaves none for another.
        share = {"XLA_CLIENT_MEM_FRACTION": f"{0.9 * self.gpus:.3f}"}
        return share if self.gpus < 1 else {}

    def cpu_devices(self, job: Job) -> int:
        """Into how many devices a job divides its CPU cores: several a core, as when alone."""
        if self.gpus:
            return 0
        return even_number(job.load_config().train.batch_size, max(int(self.cpus), 1))


class Trial(tune.Trainable):
    """One job."""

    def setup(
        self,
        config: dict[str, Any],
        jobs: Sequence[Job] = (),
        options: Options | None = None,
        stop_file: pathlib.Path | None = None,
    ) -> None:
        """Takes up a job, which is started by the first step."""
        assert options is not None
        assert stop_file is not None
        self._job, self._options, self._stop_file = jobs[config["job"]], options, stop_file
        self._process: subprocess.Popen | None = None
        self._waited = 0.0

    def step(self) -> dict[str, Any]:
        """Waits a moment for the job, and tells how far it is."""
        state = self._process_state() if self._process else self._start()
        done = state in (FINISHED, ELSEWHERE, STOPPED_STATE)
        return {"done": done, "state": state, **_progress(self._job)}

    def cleanup(self) -> None:
        """Ends the process gently, where Ray wants the trial to end before it is done."""
        if self._process and self._process.poll() is None:
            self._process.terminate()

    def _start(self) -> str:
        if self._asked_to_stop():
            return STOPPED_STATE
        state = self._job.state
        if state == ELSEWHERE and self._waited < WAIT_FOR_FOLDER:
            time.sleep(REPORT_SECONDS)
            self._waited += REPORT_SECONDS
            return "waiting for its folder"
        if state in (FINISHED, ELSEWHERE):
            return state
        log = log_file(self._job)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            self._process = self._job.start(
                self._options.data_dir,
                cpu_devices=self._options.cpu_devices(self._job),
                environment=self._options.environment,
                log=file,
            )
        return "started"

    def _process_state(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(REPORT_SECONDS)
        except subprocess.TimeoutExpired:
            if not self._asked_to_stop():
                return "running"
            self._process.terminate()
            code = self._process.wait()
        self._process = None
        if code == BUSY:
            return "waiting for its folder"
        # A run that is told to stop before it has begun dies of the signal itself.
        if code in (STOPPED, INTERRUPTED, -signal.SIGTERM):
            return STOPPED_STATE
        if code:
            raise RuntimeError(f"{self._job.title} ended with exit code {code}")
        return FINISHED

    def _asked_to_stop(self) -> bool:
        end = self._options.end
        return self._stop_file.exists() or (end is not None and time.time() > end)


def _progress(job: Job) -> dict[str, Any]:
    """Steps made, and the newest success rate."""
    log = read_metrics(job.folder)
    rates = [line["success_rate"] for line in log if "success_rate" in line]
    return {
        "step": log[-1]["step"] if log else 0,
        "success_rate": rates[-1] if rates else None,
    }


def log_file(job: Job) -> pathlib.Path:
    """Where the output of a job goes."""
    return job.results / "logs" / f"{job.title}.txt"


def run_jobs(jobs: Sequence[Job], num_steps: Mapping[str, int], options: Options) -> list[Job]:
    """Runs jobs side by side until they are done, or until this process is asked to stop.

    Args:
      jobs: which.
      num_steps: how many steps each will make, by its title.
      options: how.

    Returns:
      The jobs that failed more often than they may.

    Raises:
      ValueError: a trial needs more than this machine has, or the cluster can't be reached.
    """
    jobs = [dataclasses.replace(job, results=job.results.resolve()) for job in jobs]
    # Beside the runs, where all nodes of a cluster see it.
    with (
        scratch(jobs[0].results, TUNE_PREFIX) as folder,
        _ray(options),
        _stop_file(folder) as stop_file,
    ):
        trainable = tune.with_parameters(Trial, jobs=jobs, options=options, stop_file=stop_file)
        tuner = tune.Tuner(
            tune.with_resources(trainable, {"cpu": options.cpus, "gpu": options.gpus}),
            param_space={"job": tune.grid_search(list(range(len(jobs))))},
            tune_config=tune.TuneConfig(
                max_concurrent_trials=options.max_concurrent,
                trial_name_creator=lambda trial: jobs[trial.config["job"]].title,
                trial_dirname_creator=lambda trial: jobs[trial.config["job"]].title,
            ),
            run_config=tune.RunConfig(
                name="tune",
                storage_path=str(folder),
                failure_config=tune.FailureConfig(max_failures=options.max_failures),
                # A trial's checkpoints are those of its run.
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
                progress_reporter=_Reporter(TrialsTable(num_steps)),
                verbose=1,
            ),
        )
        results = tuner.fit()
        ended = [results[index] for index in range(len(results))]
    failed = [x.config["job"] for x in ended if x.error is not None and x.config is not None]
    return [jobs[index] for index in failed]


@contextlib.contextmanager
def _ray(options: Options) -> Iterator[None]:
    """Connects to a cluster, or starts one that nobody else can reach."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # the table says what fails
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if options.address:
        check_reachable(options.address)
        ray.init(address=options.address, **quiet)
        with contextlib.closing(_Connection()):
            yield
        return
    # Else Ray puts the machine's address in place of this one, and listens on all interfaces.
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"  # its other processes read it
    ray_constants.ENABLE_RAY_CLUSTER = False  # this one has read it
    # Ray opens its folder to everybody, but what is around it stays closed.
    with scratch(private_folder(), "ray-") as folder:
        ray.init(
            address="local",
            include_dashboard=False,
            _node_ip_address=LOOPBACK,
            _temp_dir=str(folder),
            **quiet,
        )
        with contextlib.closing(_Connection()):
            check_hidden(ray.util.get_node_ip_address())
            check_room(ray.cluster_resources(), options)
            yield


def check_reachable(address: str) -> None:
    """Raises `ValueError` if nobody listens at HOST:PORT, where Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ValueError(f"can't reach Ray at {address}, expected HOST:PORT: {error}") from error


def check_hidden(address: str) -> None:
    """Raises `ValueError` if Ray has another address than loopback, and so listens everywhere."""
    if address != LOOPBACK:
        raise ValueError(
            f"this version of Ray ({ray.__version__}) listens at {address} and not at {LOOPBACK} "
            "alone: use another one, or a cluster of your own with --address"
        )


def check_room(there: Mapping[str, float], options: Options) -> None:
    """Raises `ValueError` if a trial needs more than there is, for which Ray would wait forever."""
    for what, wanted in (("GPU", options.gpus), ("CPU", options.cpus)):
        has = there.get(what, 0)
        if wanted > has:
            raise ValueError(f"a trial is to have {wanted:g} {what}s, but this machine has {has:g}")


class _Connection:
    def close(self) -> None:
        ray.shutdown()


@contextlib.contextmanager
def _stop_file(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Turns the first SIGTERM or SIGINT into a file that the trials look for.

    A signal to the whole process group ends Ray, too, and then Tune would wait for it for ever.
    """
    path = folder / "stop"
    give_up = threading.Timer(STOP_SECONDS, os._exit, [STOPPED])
    give_up.daemon = True

    def ask(number: int, _: object) -> None:
        path.touch()
        give_up.start()
        for other in before:  # a second one ends the process at once
            signal.signal(other, signal.SIG_DFL)
        print(f"{signal.Signals(number).name}: the trials save and stop", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield path
    finally:
        give_up.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Reporter(tune.ProgressReporter):
    """Hands what Tune knows to the table."""

    def __init__(self, table: TrialsTable) -> None:
        self._table = table

    def should_report(self, trials: list[Any], done: bool = False) -> bool:
        """Whether it is time."""
        return self._table.is_due(done)

    def report(self, trials: list[Any], done: bool, *sys_info: str) -> None:
        """Shows the table."""
        self._table.show([_row(trial) for trial in trials], done)


def _row(trial: Any) -> Row:
    last = trial.last_result or {}
    known = {"PENDING": "waiting", "ERROR": "failed"}
    state = known.get(trial.status) or last.get("state", "started")
    return Row(
        title=str(trial),
        state=state,
        step=last.get("step"),
        success_rate=last.get("success_rate"),
        failures=trial.num_failures,
    )
