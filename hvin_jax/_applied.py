"""A model applied to maps that lie in larger arrays, of few shapes, so that little is compiled."""

import functools
import math
from typing import Any

import jax
import numpy as np
from jax import lax

from hvin_jax._memory import check_memory
from hvin_jax.models import DynamicKernels, PlannerOutput, settings_of
from hvin_jax.tasks.maze_data import goal_maps


def check_room(model: Any, states: tuple[int, ...]) -> None:
    """Raises for maps with states `[n, H, W, O]` that a model has no room for."""
    settings = settings_of(model)
    # Measured on large maps: at least as many arrays of the states' size are there at once.
    channels = settings.get("latent_actions") or settings.get("hidden", settings["num_actions"])
    width = settings["kernel_size"] ** 2 + channels
    if isinstance(model, DynamicKernels):  # which has as many weights for every state
        width = settings["kernel_size"] ** 2 * settings["num_orientations"] * channels
    copies = 2 * width + settings.get("block_depth", 1)
    height, length = states[1:3]
    check_memory(4 * copies * math.prod(states), f"planning on a map of {height}×{length}")


def stored(maze: Any, goal: Any, cost: Any) -> tuple[Any, ...]:
    """Maps, goals and costs in arrays that are planned in, and the size of the maps."""
    # One type and one of few shapes whatever comes in: each would be compiled for anew.
    maze, goal = np.asarray(maze, np.float32), np.asarray(goal, np.int32)
    shape = _stored_shape(*maze.shape)
    more = [(0, larger - own) for own, larger in zip(maze.shape, shape, strict=True)]
    if goal.ndim == 3:  # one of few numbers of goals, too: the last once more
        count_of = power_of_two(goal.shape[1]) - goal.shape[1]
        goal = np.pad(goal, [(0, 0), (0, count_of), (0, 0)], mode="edge")
    return (
        np.pad(maze, more),
        np.pad(goal, [more[0], *[(0, 0)] * (goal.ndim - 1)]),
        None if shape[1:] == maze.shape[1:] else np.array(maze.shape[1:]),
        None if cost is None else np.pad(np.asarray(cost, np.float32), more, constant_values=1),
    )


@functools.partial(jax.jit, static_argnames=("model", "layers"))
def apply_stored(
    model: Any,
    params: Any,
    maze: jax.Array,
    goal: jax.Array,
    size: jax.Array | None,
    cost: jax.Array | None,
    layers: int | str | None,
) -> PlannerOutput:
    """Plans; planners of equal models share what is compiled: the parameters are an argument."""
    return apply_model(model, params, maze, goal, size, cost, layers=layers)


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


def of_maps(output: PlannerOutput, rows: slice, columns: slice, count: int) -> PlannerOutput:
    """What is said of some cells of the first maps, as numpy arrays."""

    def part(x: Any) -> np.ndarray:
        x = np.asarray(x)[:count]
        return x[:, rows, columns] if x.ndim > 1 else x

    return jax.tree.map(part, output)


def _stored_shape(count: int, height: int, width: int) -> tuple[int, int, int]:
    """The shape that maps are planned in: one of a few, so that new sizes need no compilation.

    Maps become squares, of 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, ... cells a side; long
    ones have their sides rounded up to powers of two, as the number of maps is up to 64.
    """
    count = power_of_two(count) if count < 64 else -(-count // 64) * 64
    larger = max(height, width)
    if 2 * min(height, width) < larger:
        return count, power_of_two(height), power_of_two(width)
    step = max(4, power_of_two(larger) // 8)
    side = max(8, -(-larger // step) * step)
    return count, side, side


def power_of_two(number: int) -> int:
    """The least that is no less."""
    return 1 << (number - 1).bit_length()
