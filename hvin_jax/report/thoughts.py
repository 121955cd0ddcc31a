"""A moment of a thought as a picture."""

from hvin_jax._extras import needs
from hvin_jax.report.plans import NOTE
from hvin_jax.tasks.drawing import maze_figure, value_figure
from hvin_jax.thought import Thought

with needs("drawing a thought", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure


def thought_figure(thought: Thought, moment: int = -1) -> Figure:
    """The path of a moment, a shortest path beside it, and the value map with the policy."""
    if not -len(thought) <= moment < len(thought):
        raise ValueError(f"there are moments 0 to {len(thought) - 1}, not {moment}")
    plan = thought.plan
    maze, mechanism = plan.setting()
    shown = {
        "mechanism": mechanism,
        "start": plan.start,
        "goal": plan.every_goal,
        "path": None if plan.shortest is None else thought.paths[moment],
        "best_path": thought.best_path,
        "cost": plan.costs,
        "title": f"{thought.planner}, {thought.caption(moment)}",
        "caption": "its path, and a shortest one (dashed)",
    }
    if thought.values is None:
        return maze_figure(maze, **shown)  # type: ignore[arg-type]
    return value_figure(
        thought.values[moment],
        maze,
        policy=thought.policies[moment],
        value_name="latent value",
        note=NOTE,
        **shown,  # type: ignore[arg-type]
    )
