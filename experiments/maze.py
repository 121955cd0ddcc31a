r"""Trains and tests a planner on 2D mazes.

A small highway VIN in minutes on 2 CPU cores, then a row of the paper's tables:

    python -m experiments.maze --config=experiments/configs/quickstart.py
    python -m experiments.maze --config=experiments/configs/paper.py:highway_vin-15-100 \
        --workdir=runs/highway_vin-15-100 --config.seed=1

The same command resumes a run that was interrupted, however it was. What it writes:
hvin_jax/training/workdir.py. All settings: experiments/configs/base.py; for instance
--config.model.block_depth=10. Test a trained planner on any file of mazes:

    python -m experiments.maze --mode=eval --checkpoint=runs/quickstart --data=data/mazes15.npz \
        --layers=200
"""

import functools

from absl import flags

from experiments.launch import command
from experiments.launch.exits import run_main
from experiments.launch.mazes import (
    check_mazes,
    check_same_moves,
    configured_mazes,
    settle_data,
)
from experiments.launch.settings import model_of, recipe_of
from hvin_jax.planner_files import load_planner
from hvin_jax.report.pictures import PICTURES, draw_run
from hvin_jax.tasks.files import load_mazes
from hvin_jax.tasks.walls import walled
from hvin_jax.training.maze_task import first_weights, maze_forward, maze_split, maze_task

_LAYERS = flags.DEFINE_string(
    "layers",
    "own",
    "With --mode=eval: how deep to plan. own: as deep as the model was trained; auto: until its "
    "policy stays; or a number of layers.",
)
# Its flags are this command's, so that --help lists them.
flags.adopt_module_key_flags(command)


def main() -> None:
    """Runs the command."""
    with command.running("maze", "experiments/configs/quickstart.py") as run:
        if run.evaluates:
            _evaluate(run)
            return
        if flags.FLAGS["layers"].present:
            raise ValueError("--layers is for --mode=eval; --config.model has how deep one trains")
        config = run.config
        if "symmetries" not in config.train:
            raise ValueError("this configuration is for views: python -m experiments.vizdoom")
        check_mazes(config.data)
        mechanism, terrain = settle_data(config.data)
        recipe, model = recipe_of(config), model_of(config, mechanism, terrain=terrain)
        weights = first_weights(config.train.weights, model, mechanism)
        mazes = functools.cache(lambda: configured_mazes(config.data, run.data_dir))
        result = run.train(
            lambda: maze_task(
                model, mazes(), weights=weights, use_symmetries=config.train.symmetries
            ),
            recipe,
        )
        if result is not None:
            if run.draws:
                draw_run(run.workdir, lambda: mazes().test)
            run.show(result, *PICTURES)


def _evaluate(run: command.Command) -> None:
    planner = load_planner(run.checkpoint)
    path, split = run.data
    data = walled(getattr(load_mazes(path), split))  # as `Planner.plan` plans
    check_same_moves(path, data.mechanism, planner.mechanism)
    layers = _LAYERS.value
    forward = maze_forward(planner.model)
    if layers != "own":
        depth = int(layers) if layers.isdecimal() else layers
        forward = functools.partial(forward, layers=depth)
    run.evaluate(forward, planner.params, maze_split(data), layers=layers)


if __name__ == "__main__":
    run_main("maze", main)
