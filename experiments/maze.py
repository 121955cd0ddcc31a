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

import pathlib

from absl import app, flags
from ml_collections import ConfigDict

from experiments import command, launch
from experiments.data import configured_mazes
from experiments.maze_task import make_task
from hvin_jax.planner import load_planner
from hvin_jax.tasks.files import load_mazes
from hvin_jax.training.evaluation import planner_arrays
from hvin_jax.training.step import maze_forward

# Its flags are this command's, so that --help lists them.
flags.adopt_module_key_flags(command)


def main(argv: list[str]) -> None:
    """Runs the command."""
    command.run(
        command.Command(
            name="maze",
            example="experiments/configs/quickstart.py",
            prepare=_prepare,
            load=_load,
        ),
        argv,
    )


def _prepare(config: ConfigDict, data_folder: pathlib.Path) -> tuple[launch.Task, launch.Settings]:
    mazes = configured_mazes(config.data, data_folder)
    settings = launch.Settings(config, len(mazes.train))
    return make_task(config, mazes), settings


def _load(source: str, path: str, split: str) -> command.Trained:
    planner = load_planner(source)
    data = getattr(load_mazes(path), split)
    if data.mechanism.name != planner.mechanism.name:
        raise ValueError(
            f"{path} has mazes for {data.mechanism.name}, the planner is for "
            f"{planner.mechanism.name}"
        )
    return command.Trained(
        forward=maze_forward(planner.model),
        params=planner.params,
        split=launch.Split(data, planner_arrays(data)),
    )


if __name__ == "__main__":
    app.run(main)
