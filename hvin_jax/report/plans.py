"""A plan as a picture."""

import numpy as np
from matplotlib.figure import Figure

from hvin_jax.plan import Plan
from hvin_jax.tasks.drawing import draw_maze, value_figure
from hvin_jax.tasks.mechanisms import Mechanism


def plan_figure(plan: Plan, maze: np.ndarray, *, mechanism: Mechanism) -> Figure:
    """The path, and the value map with the policy where the planner has one.

    Args:
      plan: what to draw.
      maze: `[H, W]`, the map that it is a plan for.
      mechanism: how the agent moves.
    """
    if plan.values is None:
        figure = Figure(figsize=(5.6, 6), layout="constrained")
        draw_maze(
            figure.subplots(),
            maze,
            mechanism=mechanism,
            start=plan.start,
            goal=plan.goal,
            path=plan.path,
        )
        figure.suptitle(plan.summary())
        return figure
    return value_figure(
        plan.values,
        maze,
        mechanism=mechanism,
        start=plan.start,
        goal=plan.goal,
        path=plan.path,
        policy=plan.policy,
        title=plan.summary(),
    )
