"""What the training commands have in common: flags, and from them to `experiments.launch`."""

import contextlib
import dataclasses
import json
import math
import pathlib
import sys
from collections.abc import Callable

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from experiments import launch
from experiments.console import announce, quiet_libraries, say
from experiments.exits import ending_at_once, readable_errors, stop_signals
from experiments.seeds import folder_of, parse_seeds, train_seeds
from hvin_jax._files import write_json
from hvin_jax.report.results import scores_table
from hvin_jax.tasks.maze_data import SPLITS
from hvin_jax.training import batches, devices, hosts, workdir
from hvin_jax.training.checkpoints import Snapshot
from hvin_jax.training.state import Params
from hvin_jax.training.step import Forward, make_eval_step

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "What to train: a file of experiments/configs, see there."
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run; by default runs/NAME.")
_SEEDS = flags.DEFINE_list(
    "seeds",
    None,
    "Train these seeds together, each as --config.seed=SEED --workdir=WORKDIR-seedSEED would.",
)
_MODE = flags.DEFINE_enum(
    "mode",
    "both",
    ["train", "eval", "both"],
    "train: without a test. eval: test a trained planner. both: train, then test the best model.",
)
_START_FROM = flags.DEFINE_string(
    "start_from", None, "Go on from this finished run, of the same configuration but shorter."
)
_CHECKPOINT = flags.DEFINE_string(
    "checkpoint", None, "With --mode=eval: the folder of a run or planner; by default --workdir."
)
_DATA = flags.DEFINE_string("data", None, "With --mode=eval: the data to test on.")
_SPLIT = flags.DEFINE_enum("split", "test", SPLITS, "With --mode=eval: which mazes of the data.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where data are kept once they are made.")
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices", 0, "Without an accelerator: over how many devices to split; 0: several a core."
)
_COORDINATOR = flags.DEFINE_string(
    "coordinator",
    None,
    "HOST:PORT of the first of several processes that train together; it listens there, without a "
    "password. Start each with the same command but for --process_id, on a file system that all "
    "of them see.",
)
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "How many they are.")
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "Which of them this is, from 0.")
_PARENT = flags.DEFINE_integer(
    "parent", 0, "The process that starts this one: when it is gone, save and stop."
)


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained model and what to test it on.

    Attributes:
      forward: applies the model to a batch.
      params: its parameters.
      split: the mazes.
      collate: makes a batch for the devices, if more is to be done than to split it.
    """

    forward: Forward
    params: Params
    split: launch.Split
    collate: batches.Collate | None = None


@dataclasses.dataclass(frozen=True)
class Command:
    """A training command.

    Attributes:
      name: as it is called.
      example: a configuration file for it.
      prepare: from a configuration and the folder of data to what is trained; `ValueError` and
        `TypeError` are mistakes in the configuration.
      load: from the folder of a run, the data to test on and the name of a split to a trained
        model; `ValueError` says what is wrong with them.
      files: what a finished run has to look at.
    """

    name: str
    example: str
    prepare: Callable[[ConfigDict, pathlib.Path], tuple[launch.Task, launch.Settings]]
    load: Callable[[str, str, str], Trained]
    files: tuple[str, ...] = (
        "result.json",
        "planner/",
        "curves.png",
        "examples.png",
        "plan.png",
    )


def run(command: Command, argv: list[str]) -> None:
    """Runs a command; what a user can mend ends it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(
            f"{command.name}: unexpected argument {argv[1]!r}: flags begin with --, see --help"
        )
    quiet_libraries()
    launch.use_cpu_devices(_CPU_DEVICES.value, _batch_size())
    with readable_errors(command.name, ValueError):
        _join()
    with ending_at_once(command.name):
        if _MODE.value == "eval":
            with readable_errors(command.name, ValueError, ImportError):
                _evaluate(command)
        else:
            _train(command)
    hosts.leave_together()


def _batch_size() -> int:
    """What the devices of this process have to share evenly."""
    config: ConfigDict | None = _CONFIG.value
    if config is None or _MODE.value == "eval":
        return 0  # whatever they are
    sizes = (config.train.batch_size, config.eval.batch_size)
    return max(math.gcd(*sizes) // (_NUM_PROCESSES.value or 1), 1)


def _join() -> None:
    """Joins the other processes, if there are any."""
    given = (_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
    if given == (None, None, None):
        return
    coordinator, num_processes, process_id = given
    if coordinator is None or num_processes is None or process_id is None:
        raise ValueError("--coordinator, --num_processes and --process_id belong together")
    if _MODE.value == "eval":
        raise ValueError("--mode=eval runs in one process")
    if _SEEDS.value is not None:
        raise ValueError("--seeds trains in one process: --coordinator is for a single seed")
    try:
        hosts.join(coordinator, num_processes, process_id)
    except RuntimeError as error:
        raise ValueError(f"can't join the others at {coordinator}: {error}") from error


def _train(command: Command) -> None:
    config: ConfigDict | None = _CONFIG.value
    if config is None:
        sys.exit(f"{command.name}: --config is missing, for instance {command.example}")
    folder = pathlib.Path(_WORKDIR.value or f"runs/{config.name}")
    if _SEEDS.value is not None:
        _train_seeds(command, config, folder)
        return
    # Of several processes the first one holds the folder.
    hold = workdir.locked(folder) if hosts.is_first() else contextlib.nullcontext()
    with readable_errors(command.name), hold:
        if hosts.is_first():
            workdir.check_owner(folder, config.to_dict())
        if hosts.as_the_first((folder / "result.json").exists()):
            announce(f"{folder} is complete")
        else:
            task, settings = hosts.first_before_others(lambda: _prepare(command, config), "data")
            # Not before everything is known to be right: a folder serves one configuration only.
            if hosts.is_first():
                workdir.claim(folder, config.to_dict())
                if _START_FROM.value:
                    workdir.start_from(folder, pathlib.Path(_START_FROM.value))
            hosts.wait_for_all("claimed")
            with stop_signals(_PARENT.value) as asked:
                last = launch.train(task, settings, folder, asked_to_stop=asked)
            if _MODE.value == "train":
                return
            launch.finish(task, settings, folder, last)
            hosts.wait_for_all("finished")
        if hosts.is_first():
            _show(command, folder)


def _train_seeds(command: Command, config: ConfigDict, prefix: pathlib.Path) -> None:
    def finish(
        task: launch.Task, settings: launch.Settings, folder: pathlib.Path, last: Snapshot
    ) -> None:
        if _MODE.value == "both":
            launch.finish(task, settings, folder, last)
            _show(command, folder)

    with readable_errors(command.name, ValueError):
        if _START_FROM.value:
            raise ValueError("--start_from is for a single seed")
        folders = {seed: folder_of(prefix, seed) for seed in parse_seeds(_SEEDS.value or [])}
    with readable_errors(command.name):
        train_seeds(
            command.name,
            config,
            folders,
            prepare=lambda: _prepare(command, config),
            finish=finish,
            parent=_PARENT.value,
        )


def _prepare(command: Command, config: ConfigDict) -> tuple[launch.Task, launch.Settings]:
    with readable_errors(command.name, ValueError, TypeError, ImportError):
        launch.check(config)
        return command.prepare(config, pathlib.Path(_DATA_DIR.value))


def _show(command: Command, folder: pathlib.Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    minutes = result["wall_seconds"] / 60
    say(
        f"\n{result['name']}: {result['num_params']:,} parameters, {result['steps']} steps in "
        f"{minutes:.1f} minutes, best after step {result['best_step']}; unseen mazes:\n"
    )
    say(scores_table(result["test"]))
    say(f"\n{folder}: {', '.join(command.files)}")


def _evaluate(command: Command) -> None:
    source = _CHECKPOINT.value or _WORKDIR.value
    if source is None or _DATA.value is None:
        raise ValueError("--mode=eval needs --checkpoint (or --workdir) and --data")
    trained = command.load(source, _DATA.value, _SPLIT.value)
    if not len(trained.split.data):
        raise ValueError(f"{_DATA.value} has no {_SPLIT.value} mazes")
    batch = 32 * jax.device_count()
    _, scores = launch.test_policy(
        devices.pmap_eval_step(make_eval_step(trained.forward)),
        trained.params,
        trained.split,
        batch,
        trained.collate,
    )
    say(scores_table(scores))
    out = pathlib.Path(source) / f"eval-{pathlib.Path(_DATA.value).stem}-{_SPLIT.value}.json"
    if out.parent.is_dir():
        write_json(out, {"data": f"{_DATA.value}:{_SPLIT.value}", **scores})
        say(f"\n{out}")
