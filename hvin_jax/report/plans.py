"""A plan as a picture."""

import io
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._words import counted
from hvin_jax.plan import Plan
from hvin_jax.tasks.drawing import maze_figure, value_figure
from hvin_jax.tasks.mechanisms import Mechanism

with needs("drawing a plan", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure

NOTE = (
    "Values are latent: they have no unit and need not rise towards the goal; the arrows, or "
    "colours, are what the planner does."
)


def plan_figure(
    plan: Plan, maze: np.ndarray, *, mechanism: Mechanism, cost: np.ndarray | None = None
) -> Figure:
    """The path, and the value map with the policy where the planner has one.

    Where there is no path to the goal, none is drawn.

    Args:
      plan: what to draw.
      maze: `[H, W]`, the map that it is a plan for.
      mechanism: how the agent moves.
      cost: `[H, W]`, what it costs to enter each cell, if that was planned with.
    """
    taken = counted(plan.length, "action")
    if plan.shortest is None:
        caption = "no path"
    elif plan.reached:
        costs = "" if plan.cost is None else f", cost {plan.cost:.6g}"
        caption = f"path of {taken}{costs}"
    else:
        caption = f"lost after {taken}"
    shown: dict[str, Any] = {
        "mechanism": mechanism,
        "start": plan.start,
        "goal": plan.every_goal,
        "path": None if plan.shortest is None else plan.path,
        "title": plan.summary(),
        "caption": caption,
        "cost": cost,
    }
    if plan.values is None:
        return maze_figure(maze, **shown)
    return value_figure(
        plan.values, maze, policy=plan.policy, value_name="latent value", note=NOTE, **shown
    )


def png_of(figure: Figure) -> bytes:
    """A figure as a picture for notebooks."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80, facecolor="white")
    return file.getvalue()
