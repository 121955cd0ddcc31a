"""A plan as a picture and in words."""

import numpy as np
from matplotlib.figure import Figure

from hvin_jax.planner import Plan
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
        figure.suptitle(plan_sentence(plan))
        return figure
    return value_figure(
        plan.values,
        maze,
        mechanism=mechanism,
        start=plan.start,
        goal=plan.goal,
        path=plan.path,
        policy=plan.policy,
        title=plan_sentence(plan),
    )


def plan_sentence(plan: Plan) -> str:
    """What the planner achieved, without flattery."""
    if plan.shortest is None:
        return "there is no path from the start to the goal"
    if not plan.reached:
        return (
            f"the planner fails: after {plan.length} actions it goes round in circles or is stuck "
            f"(a shortest path has {plan.shortest})"
        )
    if plan.optimal:
        return f"the planner reaches the goal in {plan.length} actions, as few as possible"
    return (
        f"the planner reaches the goal in {plan.length} actions, "
        f"{plan.length - plan.shortest} more than the shortest path of {plan.shortest}"
    )
