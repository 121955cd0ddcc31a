r"""Trains and tests a planner on first-person views from the Doom engine.

At a size for CPUs, then a row of the paper's table:

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:highway_vin-100
    python -m experiments.vizdoom --config=experiments/configs/vizdoom_paper.py:highway_vin-100

Views are made on the way if they are not there yet, which needs the engine (pip install
'hvin_jax[vizdoom]'); training from views that are there does not. Everything else is as with
`python -m experiments.maze`. Start from the perception of another run, and leave it as it is:

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:vin-40 \
        --config.perception.weights=runs/other --config.perception.learning=frozen

Test a trained one on any folder of views:

    python -m experiments.vizdoom --mode=eval --checkpoint=runs/vizdoom-cpu-vin-40 --data=data/views

or what comes with the package, with its planner for all maps or any other:

    python -m experiments.vizdoom --mode=eval --checkpoint=views --data=data/views \
        --planner=diffdrive-15 --workdir=runs/there
"""

import functools
import pathlib
from collections.abc import Callable

import numpy as np
from absl import flags
from ml_collections import ConfigDict

from experiments.launch import command
from experiments.launch.exits import run_main
from experiments.launch.mazes import check_same_moves
from experiments.launch.settings import model_of, recipe_of
from experiments.launch.views import check_views, configured_views
from hvin_jax.models.perception import VisualModel, make_perception
from hvin_jax.report.doom import map_figure, views_figure
from hvin_jax.report.pictures import PICTURES, draw_run
from hvin_jax.tasks.doom.view_data import ViewData, load_view_data
from hvin_jax.tasks.drawing import save_figure
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.batches import steps_per_epoch
from hvin_jax.training.maze_task import first_weights
from hvin_jax.training.view_task import (
    ViewCollator,
    check_learning,
    first_perception,
    view_forward,
    view_split,
    view_task,
)
from hvin_jax.visual_planner import load_visual_planner

_PLANNER = flags.DEFINE_string(
    "planner", None, "With --mode=eval: plans on the maps that are seen, in place of the run's own."
)
# Its flags are this command's, so that --help lists them.
flags.adopt_module_key_flags(command)
# Settings of config.perception that say how it is trained, not what it is.
_TRAINING = ("learning", "true_map_epochs", "weights")


def main() -> None:
    """Runs the command."""
    with command.running("vizdoom", "experiments/configs/vizdoom_cpu.py:highway_vin-100") as run:
        if run.evaluates:
            _evaluate(run)
            return
        if _PLANNER.value:
            raise ValueError("--planner is for --mode=eval; --config.train.weights to begin with")
        config = run.config
        _check(config)
        recipe = recipe_of(config)
        fields = {k: v for k, v in config.perception.items() if k not in _TRAINING}
        model = VisualModel(make_perception(fields), model_of(config))
        mechanism = get_mechanism(config.data.mechanism)
        weights = first_weights(config.train.weights, model.planner, mechanism)
        seen = first_perception(config.perception.weights, model.perception)
        views = functools.cache(lambda: configured_views(config.data, run.data_dir))

        def make_task() -> command.training.Task:
            per_epoch = steps_per_epoch(len(views().mazes.train), recipe.batch_size)
            return view_task(
                model,
                views(),
                learning=config.perception.learning,
                true_map_steps=config.perception.true_map_epochs * per_epoch,
                weights=weights,
                perception_weights=seen,
            )

        result = run.train(make_task, recipe)
        if result is not None:
            if run.draws:
                draw_run(run.workdir, lambda: views().mazes.test)
                _draw_views(run.workdir, views)
            run.show(result, *PICTURES, "perception/", "maps.png", "views.png")


def _check(config: ConfigDict) -> None:
    """Fails before views are made, which takes long."""
    if "perception" not in config:
        raise ValueError(
            "this configuration is for mazes with a map: python -m experiments.maze; those for "
            "views are experiments/configs/vizdoom_*.py"
        )
    check_views(config.data)
    check_learning(config.perception.learning)
    if not 0 <= config.perception.true_map_epochs < 2**31:
        epochs = config.perception.true_map_epochs
        raise ValueError(f"true_map_epochs is {epochs}, expected 0 to 2³¹ - 1")


def _draw_views(folder: pathlib.Path, views: Callable[[], ViewData]) -> None:
    if (folder / "maps.png").exists() and (folder / "views.png").exists():
        return
    data, planner = views(), load_visual_planner(folder)
    maze, goal = data.mazes.test.maze[:6], data.mazes.test.goal[:6]

    def seen(number: int) -> np.ndarray:
        distinct, index = np.unique(data.index["test"][number], return_inverse=True)
        row, column, orientation = (int(x) for x in goal[number])
        state = (row, column, orientation)
        return planner.decide(data.pictures(distinct), index, state).free > 0.5

    predicted = np.stack([seen(number) for number in range(len(maze))])
    save_figure(map_figure(predicted, maze), folder / "maps.png")
    save_figure(views_figure(data, "test", 0), folder / "views.png")


def _evaluate(run: command.Command) -> None:
    trained = load_visual_planner(run.checkpoint, planner=_PLANNER.value)
    path, split = run.data
    data = load_view_data(path)
    check_same_moves(path, getattr(data.mazes, split).mechanism, trained.planner.mechanism)
    run.evaluate(
        view_forward(trained.model), trained.params, view_split(data, split), ViewCollator(data)
    )


if __name__ == "__main__":
    run_main("vizdoom", main)
