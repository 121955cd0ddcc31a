"""A model applied to maps that lie in larger arrays."""

from typing import Any

import jax
from jax import lax

from hvin_jax.models import PlannerOutput
from hvin_jax.tasks.maze_data import goal_maps


def apply_model(
    model: Any,
    params: Any,
    maze: jax.Array,
    goal: jax.Array,
    size: jax.Array | None,
    cost: jax.Array | None,
    **how: Any,
) -> PlannerOutput:
    """Plans on the maps in the corner of `maze`, of one size.

    Args:
      model: the Flax module.
      params: its parameters.
      maze: `[n, H, W]`, 1 = free.
      goal: int `[n, 3]` or `[n, K, 3]`, see `MazeData.goal`.
      size: int `[2]`, (height, width) of the maps; None: that of the array.
      cost: `[n, H, W]`, what it costs to enter each cell, or None.
      **how: further arguments of the model's call; those that are None are left out.
    """
    maps = goal_maps(goal, size=maze.shape[1:], num_orientations=model.num_orientations)
    how = {name: value for name, value in {**how, "cost": cost}.items() if value is not None}
    if size is not None:
        rows, columns = (lax.broadcasted_iota(size.dtype, maze.shape, axis) for axis in (1, 2))
        how["inside"] = (rows < size[0]) & (columns < size[1])
    return model.apply(params, maze, maps, train=False, **how)
