"""Pictures of a finished run: learning curves, mazes with the paths it takes, a plan."""

import pathlib
from collections.abc import Callable

import numpy as np

from hvin_jax.planner_files import load_planner
from hvin_jax.report.curves import learning_curves
from hvin_jax.report.plans import plan_figure
from hvin_jax.tasks.drawing import farthest_start, mazes_figure, save_figure
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.training.workdir import read_metrics

PICTURES = ("curves.png", "examples.png", "plan.png")
# How many mazes are shown.
SHOWN = 12


def draw_run(folder: pathlib.Path, test_mazes: Callable[[], MazeData]) -> None:
    """Draws what a finished run has not drawn yet.

    Args:
      folder: of the run.
      test_mazes: loads the mazes that it was tested on.
    """
    if all((folder / name).exists() for name in PICTURES):
        return
    planner, data = load_planner(folder), test_mazes()[:SHOWN]
    save_figure(learning_curves(read_metrics(folder), title=folder.name), folder / "curves.png")
    output = planner.policy(data.maze, data.goal, layers="own", cost=data.cost)
    policy = np.asarray(output.logits.argmax(-1))
    save_figure(mazes_figure(data, policy=policy, title=folder.name), folder / "examples.png")
    starts = [farthest_start(spl) for spl in data.spl]
    hard = max(range(len(starts)), key=lambda index: data.spl[index][starts[index]])
    maze, cost = data.maze[hard], None if data.cost is None else data.cost[hard]
    plan = planner.plan(maze, data.goal[hard], starts[hard], layers="own", cost=cost)
    figure = plan_figure(plan, maze, mechanism=data.mechanism, cost=cost)
    save_figure(figure, folder / "plan.png")
