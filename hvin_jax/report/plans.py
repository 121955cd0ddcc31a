"""A plan as a picture."""

from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax.plan import Plan
from hvin_jax.tasks.drawing import maze_figure, value_figure
from hvin_jax.tasks.mechanisms import Mechanism

with needs("drawing a plan", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure

_NOTE = (
    "Values are latent: they have no unit and need not rise towards the goal; the arrows are what "
    "the planner does."
)


def plan_figure(plan: Plan, maze: np.ndarray, *, mechanism: Mechanism) -> Figure:
    """The path, and the value map with the policy where the planner has one.

    Where there is no path to the goal, none is drawn.

    Args:
      plan: what to draw.
      maze: `[H, W]`, the map that it is a plan for.
      mechanism: how the agent moves.
    """
    if plan.shortest is None:
        caption = "no path"
    elif plan.reached:
        caption = f"path of {plan.length} actions"
    else:
        caption = f"lost after {plan.length} actions"
    shown: dict[str, Any] = {
        "mechanism": mechanism,
        "start": plan.start,
        "goal": plan.goal,
        "path": None if plan.shortest is None else plan.path,
        "title": plan.summary(),
        "caption": caption,
    }
    if plan.values is None:
        return maze_figure(maze, **shown)
    return value_figure(
        plan.values, maze, policy=plan.policy, value_name="latent value", note=_NOTE, **shown
    )
