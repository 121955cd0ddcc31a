r"""Trains and tests a planner on 2D mazes.

A small highway VIN in minutes on 2 CPU cores, then a row of the paper's tables:

    python -m experiments.maze --config=experiments/configs/quickstart.py
    python -m experiments.maze --config=experiments/configs/paper.py:highway_vin-15-100 \
        --workdir=runs/highway_vin-15-100 --config.seed=1

The same command resumes a run that was interrupted, however it was. What it writes:
hvin_jax/training/workdir.py. All settings: experiments/configs/base.py; for instance
--config.model.block_depth=10. Test a trained planner on any file of mazes:

    python -m experiments.maze --mode=eval --checkpoint=runs/quickstart --data=data/mazes15.npz
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
from absl import app, flags
from ml_collections import ConfigDict, config_flags

from experiments import launch
from experiments.console import quiet_libraries, say
from experiments.data import configured_mazes
from hvin_jax.planner import load_planner
from hvin_jax.report.results import scores_table
from hvin_jax.tasks.files import load_mazes
from hvin_jax.tasks.maze_data import SPLITS, MazeSplits
from hvin_jax.training import workdir
from hvin_jax.training.evaluation import planner_arrays, training_arrays
from hvin_jax.training.step import maze_forward

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
_DATA = flags.DEFINE_string("data", None, "With --mode=eval: a file of mazes.")
_SPLIT = flags.DEFINE_enum("split", "test", SPLITS, "With --mode=eval: which mazes of the file.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices", 0, "Without an accelerator: over how many devices to split; 0: one per core."
)


def main(argv: list[str]) -> None:
    """Runs the command; what a user can mend ends it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"maze: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    quiet_libraries()
    launch.use_cpu_cores(_CPU_DEVICES.value)
    if _MODE.value == "eval":
        with launch.readable_errors("maze", ValueError):
            _evaluate()
    else:
        _train()


def _train() -> None:
    config: ConfigDict | None = _CONFIG.value
    if config is None:
        sys.exit("maze: --config is missing, for instance experiments/configs/quickstart.py")
    folder = pathlib.Path(_WORKDIR.value or f"runs/{config.name}")
    with launch.readable_errors("maze"), workdir.locked(folder):
        workdir.claim(folder, config.to_dict())
        if _START_FROM.value:
            workdir.start_from(folder, pathlib.Path(_START_FROM.value))
        if (folder / "result.json").exists():
            say(f"{folder} is complete")
        else:
            with launch.readable_errors("maze", ValueError, TypeError):
                mazes = configured_mazes(config.data, pathlib.Path(_DATA_DIR.value))
                settings = launch.Settings(config, len(mazes.train))
                task = make_task(config, mazes)
            last = launch.train(task, settings, folder)
            if _MODE.value == "train":
                return
            launch.finish(task, settings, folder, last)
        _show(folder)


def make_task(config: ConfigDict, mazes: MazeSplits) -> launch.Task:
    """Planning on maps that are given."""
    model = launch.model_of(config, mazes.train)
    shape = (1, *mazes.train.size)

    def init(key: jax.Array) -> launch.Params:
        goal = jnp.zeros((*shape, model.num_orientations))
        return model.init(key, jnp.zeros(shape), goal, train=False)

    jax.eval_shape(init, jax.random.key(0))  # impossible settings show here
    return launch.Task(
        forward=maze_forward(model),
        init=init,
        train=training_arrays(mazes.train),
        valid=launch.Split(mazes.valid, planner_arrays(mazes.valid)),
        test=launch.Split(mazes.test, planner_arrays(mazes.test)),
    )


def _show(folder: pathlib.Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    minutes = result["wall_seconds"] / 60
    say(
        f"\n{result['name']}: {result['num_params']:,} parameters, {result['steps']} steps in "
        f"{minutes:.1f} minutes, best after step {result['best_step']}; unseen mazes:\n"
    )
    say(scores_table(result["test"]))
    say(f"\n{folder}: result.json, planner/, curves.png, examples.png, plan.png")


def _evaluate() -> None:
    source = _CHECKPOINT.value or _WORKDIR.value
    if source is None or _DATA.value is None:
        raise ValueError("--mode=eval needs --checkpoint (or --workdir) and --data")
    planner = load_planner(source)
    data = getattr(load_mazes(_DATA.value), _SPLIT.value)
    if data.mechanism.name != planner.mechanism.name:
        raise ValueError(
            f"{_DATA.value} has mazes for {data.mechanism.name}, the planner is for "
            f"{planner.mechanism.name}"
        )
    if not len(data):
        raise ValueError(f"{_DATA.value} has no {_SPLIT.value} mazes")
    split = launch.Split(data, planner_arrays(data))
    forward = maze_forward(planner.model)
    batch = 32 * jax.device_count()
    _, scores = launch.test_policy(forward, planner.params, split, batch)
    say(scores_table(scores))
    out = pathlib.Path(source) / f"eval-{pathlib.Path(_DATA.value).stem}-{_SPLIT.value}.json"
    if out.parent.is_dir():
        workdir.write_json(out, {"data": f"{_DATA.value}:{_SPLIT.value}", **scores})
        say(f"\n{out}")


if __name__ == "__main__":
    app.run(main)
