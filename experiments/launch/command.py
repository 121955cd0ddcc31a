"""A training command: its flags, and what happens around its work.

with running("maze", argv) as command:
...
result = command.train(make_task, recipe)
"""

import contextlib
import math
import pathlib
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from experiments.launch.console import Console, say
from experiments.launch.exits import (
    check_files,
    end_alone,
    ending_at_once,
    readable_errors,
    stop_signals,
)
from experiments.launch.settings import check_structure, settle_kind, stored
from hvin_jax import training
from hvin_jax._files import write_json
from hvin_jax.tasks.maze_data import SPLITS
from hvin_jax.training import devices, hosts
from hvin_jax.training.batches import Collate
from hvin_jax.training.evaluation import evaluate_split
from hvin_jax.training.results import scores_table, test_scores
from hvin_jax.training.step import Forward, Params, make_eval_step

check_files()
_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "What to train: a file of experiments/configs, see there."
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run; by default runs/NAME.")
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
_PICTURES = flags.DEFINE_bool("pictures", True, "Draw what the finished run does.")
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices",
    0,
    "Without an accelerator: over how many devices to split; 0: several a core.",
    lower_bound=0,
    upper_bound=1024,
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
    "parent", 0, "The process that starts this one: when it is gone, save and stop.", lower_bound=0
)


@contextlib.contextmanager
def running(name: str, example: str) -> Iterator["Command"]:
    """Around the work of a command: devices, other processes, errors in one sentence.

    Args:
      name: what it is called.
      example: a configuration for it.
    """
    with readable_errors(name):
        command = Command(name, example)
        devices.use_cpu_devices(_CPU_DEVICES.value, command.shared_batch())
        _join(name)
        with ending_at_once(name):
            yield command
        hosts.leave_together()


class Command:
    """What was asked for, and how to do it."""

    def __init__(self, name: str, example: str) -> None:
        """Takes the flags.

        Raises:
          ValueError: there is no configuration, or it is wrong.
        """
        self.name = name
        self.evaluates: bool = _MODE.value == "eval"
        self.draws: bool = _PICTURES.value
        self.data_dir = pathlib.Path(_DATA_DIR.value)
        config: ConfigDict | None = _CONFIG.value
        if config is not None:
            check_structure(config)
            settle_kind(config, config_flags.get_override_values(flags.FLAGS["config"]))
        elif not self.evaluates:
            raise ValueError(f"--config is missing, for instance {example}")
        self._config = config

    @property
    def config(self) -> ConfigDict:
        """What to train."""
        assert self._config is not None
        return self._config

    @property
    def workdir(self) -> pathlib.Path:
        """The folder of the run."""
        return pathlib.Path(_WORKDIR.value or f"runs/{self.config.name}")

    def shared_batch(self) -> int:
        """What the devices of this process have to share evenly; 0: whatever they are."""
        if self.evaluates:
            return 0
        sizes = (self.config.train.batch_size, self.config.eval.batch_size)
        return max(math.gcd(*sizes) // (_NUM_PROCESSES.value or 1), 1)

    def train(
        self, make_task: Callable[[], training.Task], recipe: training.Recipe
    ) -> dict[str, Any] | None:
        """Trains, or goes on training, and tests; see `hvin_jax.training.train`.

        Returns:
          What came out; None without a test, and in all processes but the first.
        """

        def checked_task() -> training.Task:
            # Here an error is a mistake of the user, later on it would be a fault of ours.
            with readable_errors(self.name):
                task = make_task()
                recipe.for_examples(task.num_examples)
                return task

        with stop_signals(_PARENT.value) as asked_to_stop:
            try:
                result = training.train(
                    checked_task,
                    recipe,
                    self.workdir,
                    config=stored(self.config),
                    test=_MODE.value == "both",
                    start_from=_START_FROM.value,
                    watcher=Console(),
                    asked_to_stop=asked_to_stop,
                )
            except hosts.DisagreementError:
                raise
            except (ValueError, TypeError, ImportError):
                traceback.print_exc()
                sys.exit(1)
        return result if hosts.is_first() else None

    def show(self, result: dict[str, Any], *files: str) -> None:
        """Prints what came out, and which of the files there are to look at."""
        say(
            f"\n{result['name']}: {result['num_params']:,} parameters, {result['steps']} steps in "
            f"{result['wall_seconds'] / 60:.1f} minutes, best after step {result['best_step']}; "
            f"unseen mazes:\n"
        )
        say(scores_table(result["test"]))
        there = [name for name in files if (self.workdir / name).exists()]
        say(f"\n{self.workdir}: {', '.join(('result.json', 'planner/', *there))}")

    @property
    def checkpoint(self) -> str:
        """With --mode=eval, what to test."""
        source = _CHECKPOINT.value or _WORKDIR.value
        if not source or not _DATA.value:
            raise ValueError("--mode=eval needs --checkpoint (or --workdir) and --data")
        return source

    @property
    def data(self) -> tuple[str, str]:
        """With --mode=eval, on what: a path, and the name of a split."""
        return _DATA.value or "", _SPLIT.value

    def evaluate(
        self,
        forward: Forward,
        params: Params,
        split: training.Split,
        collate: Collate = devices.split,
        layers: str = "own",
    ) -> None:
        """Tests a trained model, prints its scores and writes them to --workdir or beside it."""
        path, name = self.data
        if not len(split):
            raise ValueError(f"{path} has no {name} mazes")
        with Console().testing(len(split)) as progress:
            evaluation = evaluate_split(
                devices.split_eval_step(make_eval_step(forward)),
                params,
                split,
                batch_size=32 * jax.device_count(),
                collate=collate,
                progress=progress,
            )
        scores = test_scores(evaluation, split.data)
        folder = pathlib.Path(_WORKDIR.value or self.checkpoint)
        depth = "" if layers == "own" else f"-{layers}_layers"
        out = folder / f"eval-{pathlib.Path(path).stem}-{name}{depth}.json"
        kept = bool(_WORKDIR.value) or folder.is_dir()
        if kept:  # before anything is printed, to whoever may have stopped to read
            folder.mkdir(parents=True, exist_ok=True)
            tested = {"data": f"{pathlib.Path(path).name}:{name}", "layers": layers}
            write_json(out, {**tested, **scores})
        say(scores_table(scores) + (f"\n\n{out}" if kept else ""))


def _join(name: str) -> None:
    """Joins the other processes, if there are any."""
    given = (_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
    if given == (None, None, None):
        return
    coordinator, num_processes, process_id = given
    if coordinator is None or num_processes is None or process_id is None:
        raise ValueError("--coordinator, --num_processes and --process_id belong together")
    if _MODE.value == "eval":
        raise ValueError("--mode=eval runs in one process")
    try:
        hosts.join(coordinator, num_processes, process_id, lambda: end_alone(name))
    except RuntimeError as error:
        raise ValueError(f"can't join the others at {coordinator}: {error}") from error
