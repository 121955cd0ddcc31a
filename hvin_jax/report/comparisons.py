"""Several planners on the same mazes: their value maps, and where one succeeds and others fail."""

from collections.abc import Mapping

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._words import counted
from hvin_jax.planner import Planner
from hvin_jax.tasks.drawing import draw_maze, draw_values
from hvin_jax.tasks.maze_data import UNREACHABLE, MazeData
from hvin_jax.tasks.measures import farthest_start

with needs("comparing planners in pictures", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure


def value_maps_figure(planners: Mapping[str, Planner], data: MazeData) -> Figure:
    """The largest value over orientations at each cell, on the maze with the longest path.

    Args:
      planners: title → planner, each with a scale of its own: latent values have no unit.
      data: mazes to choose from.

    Returns:
      The figure.
    """
    longest = np.where(data.spl == UNREACHABLE, 0, data.spl).max(axis=(1, 2, 3))
    index = int(longest.argmax())
    maze, goal = data.maze[index], data.goal[index]
    figure = Figure(figsize=(3.6 * (1 + len(planners)), 3.9), layout="constrained")
    first, *others = figure.subplots(1, 1 + len(planners))
    start = farthest_start(data.spl[index])
    draw_maze(first, maze, mechanism=data.mechanism, start=start, goal=goal)
    first.set_title(f"maze, longest path {longest[index]}", fontsize=10)
    for axes, (title, planner) in zip(others, planners.items(), strict=True):
        values = np.asarray(planner.policy(maze[None], goal[None], layers="own").value)[0].max(-1)
        draw_values(axes, values, maze)
        axes.set_title(title, fontsize=10)
        figure.colorbar(axes.images[-1], ax=axes, shrink=0.8, label="latent value")
    return figure


def examples_figure(
    planners: Mapping[str, Planner], data: MazeData, *, hero: str, count: int = 3
) -> Figure:
    """Mazes where one planner reaches the goal from the farthest start and all others do not.

    Args:
      planners: title → planner.
      data: mazes to choose from; the ones with the longest paths come first.
      hero: the title of the planner that succeeds.
      count: how many mazes; if there are fewer such ones, mazes where the hero succeeds follow.

    Returns:
      The figure, a row for each maze.
    """
    starts = [farthest_start(spl) for spl in data.spl]
    plans = {
        title: x.plan(data.maze, data.goal, starts, layers="own") for title, x in planners.items()
    }
    lengths = np.array([data.spl[index][start] for index, start in enumerate(starts)])

    def merit(index: int) -> tuple[bool, int, int]:
        failures = sum(not plans[title][index].reached for title in planners if title != hero)
        return plans[hero][index].reached, failures, int(lengths[index])

    chosen = sorted(range(len(data)), key=merit, reverse=True)[:count]
    figure = Figure(figsize=(3.3 * len(planners), 3.5 * len(chosen)), layout="constrained")
    grid = figure.subplots(len(chosen), len(planners), squeeze=False)
    for row, index in zip(grid, chosen, strict=True):
        for axes, title in zip(row, planners, strict=True):
            plan = plans[title][index]
            draw_maze(
                axes,
                data.maze[index],
                mechanism=data.mechanism,
                start=plan.start,
                goal=plan.goal,
                path=plan.path,
            )
            outcome = counted(plan.length, "action") if plan.reached else "lost"
            axes.set_title(f"{title}: {outcome}, shortest {plan.shortest}", fontsize=8)
    return figure
