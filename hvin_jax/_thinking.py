"""How a planner comes to its plan: the same plan again, with looks at it on the way."""

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hvin_jax._applied import apply_model, power_of_two, stored
from hvin_jax.plan import Plan
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.rollouts import path_of
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.thought import Thought

if TYPE_CHECKING:
    from hvin_jax.planner import Planner


def think(
    planner: "Planner",
    plan: Plan,
    *,
    every_goal: np.ndarray,
    every_start: np.ndarray,
    frames: int,
) -> Thought:
    """What a planner thought on the way to a plan of its own.

    Args:
      planner: who thinks.
      plan: what it came to.
      every_goal: int `[K, 3]`, the goals that it could choose from, which a shortest path may use.
      every_start: int `[k, 3]`, the same for the start.
      frames: how many moments to keep, at most.
    """
    maze, mechanism = plan.setting()
    assert plan.goals is not None
    assert plan.layers is not None
    per_block = getattr(planner.model, "block_layers", 1)
    stops = _spread(plan.layers // per_block, frames)
    values, policies, passed = _look_at(planner, maze, plan.goals, plan.costs, stops)
    paths = [
        path_of(policy, maze, plan.start, plan.goals, mechanism=mechanism) for policy in policies
    ]
    reached = np.array([_is_goal(path[-1], plan.goals) for path in paths])
    last = paths[-1]
    cost = None if plan.costs is None else float(plan.costs[tuple(last[1:, :2].T)].sum())
    row, column, orientation = last[-1].tolist()
    # The same layers in another program: what rounding decided may be decided otherwise.
    plan = dataclasses.replace(
        plan,
        path=last,
        reached=bool(reached[-1]),
        goal=(row, column, orientation) if reached[-1] else plan.goal,
        policy=policies[-1],
        values=None if values is None else values[-1],
        cost=cost,
    )
    return Thought(
        planner=planner.name,
        plan=plan,
        depths=per_block * stops,
        values=values,
        policies=policies,
        paths=tuple(paths),
        reached=reached,
        passed=passed,
        best_path=best_path(maze, every_goal, every_start, plan.costs, mechanism),
    )


def _spread(blocks: int, frames: int) -> np.ndarray:
    """Up to so many numbers of blocks, evenly spread, the last of which is all of them."""
    count = min(blocks, frames)
    return -(-np.arange(1, count + 1, dtype=np.int32) * blocks // count)


def _look_at(
    planner: "Planner",
    maze: np.ndarray,
    goals: np.ndarray,
    costs: np.ndarray | None,
    stops: np.ndarray,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray | None]:
    """Values, policies and what gates let through, `[M, H, W, O]` each, after so many blocks."""
    margin = int(maze[1:-1, 1:-1].sum() < maze.sum())  # as `Planner.plan` plans on such maps
    walled = np.pad(maze, margin)[None]
    around = None if costs is None else np.pad(costs, margin, constant_values=1)[None]
    wanted = (goals + np.array([margin, margin, 0]))[None]
    arrays = stored(walled, wanted[:, 0] if len(goals) == 1 else wanted, around)
    # One of few numbers of moments: the last once more.
    more = power_of_two(len(stops)) - len(stops)
    looked = _look(planner.model, planner.params, *arrays, np.pad(stops, (0, more), mode="edge"))
    height, width = maze.shape
    own = (slice(len(stops)), slice(margin, margin + height), slice(margin, margin + width))
    values, policies, passed = (None if x is None else np.asarray(x)[own] for x in looked)
    assert policies is not None
    return values, policies, passed


@functools.partial(jax.jit, static_argnames="model")
def _look(
    model: Any,
    params: Any,
    maze: jax.Array,
    goal: jax.Array,
    size: jax.Array | None,
    cost: jax.Array | None,
    stops: jax.Array,
) -> tuple[jax.Array | None, jax.Array, jax.Array | None]:
    """Of the first map; see `_look_at`."""
    output = apply_model(model, params, maze, goal, size, cost, stops=stops)
    layers = output.layers
    assert layers is not None
    policies = lax.map(
        lambda value: layers.read(value)[0].argmax(-1).astype(jnp.uint8), layers.values
    )
    values = None
    if output.value is not None:
        values = model.as_map(layers.values.astype(jnp.float32))[:, 0]
    return values, policies, None if layers.passed is None else layers.passed[:, 0]


def _is_goal(state: np.ndarray, goals: np.ndarray) -> bool:
    same = goals == state[None]
    same[:, 2] |= goals[:, 2] < 0
    return bool(same.all(axis=1).any())


def best_path(
    maze: np.ndarray,
    goals: np.ndarray,
    starts: np.ndarray,
    costs: np.ndarray | None,
    mechanism: Mechanism,
) -> np.ndarray | None:
    """A shortest path, or a cheapest one, from any of the starts to any goal; None: no path."""
    if costs is None:
        far, optimal = shortest_paths(maze[None], goals[None], mechanism=mechanism)
    else:
        far, _, optimal = cheapest_paths(maze[None], goals[None], costs[None], mechanism=mechanism)
    at_starts = far[0][tuple(starts.T)]
    row, column, orientation = starts[at_starts.argmin()].tolist()
    # Of a set of actions, which is never empty, the first.
    first = (optimal[0][..., None] >> np.arange(mechanism.num_actions, dtype=optimal.dtype)) & 1
    policy = first.argmax(-1).astype(np.uint8)
    path = path_of(policy, maze, (row, column, orientation), goals, mechanism=mechanism)
    return path if _is_goal(path[-1], goals) else None
