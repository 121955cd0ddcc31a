"""The MDP that a map really is, with its costs and goals, to plan in without learning anything.

Value iteration and `highway_vi` in these find V = -(cost of a cheapest path): what trained planners
are to be compared with, and a way to plan on a map inside other JAX code.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from hvin_jax.planning import ConvMDP, TabularMDP
from hvin_jax.tasks._states import as_costs, as_maps
from hvin_jax.tasks.maze_data import find_fault, goal_maps
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism, transition_table

# What a move costs that is not possible, relative to the cost of entering every cell once.
_IMPOSSIBLE = 10.0


def tabular_mdp(
    maze: Any, goal: Any, *, mechanism: str | Mechanism, cost: Any = None, discount: float = 1.0
) -> TabularMDP:
    """One map as a table: `S = H · W · O` states, of which goals are left no more.

    Args:
      maze: `[H, W]`, 1 = free, 0 = wall.
      goal: int `[3]` or `[K, 3]`, see `MazeData.goal`.
      mechanism: how the agent moves.
      cost: `[H, W]`, what it costs to enter each cell; None: every action costs 1.
      discount: γ.

    Returns:
      The MDP; a value `[S]` is one of flat states, `value.reshape(H, W, O)` a map.
    """
    mechanism = get_mechanism(mechanism)
    maps, goals, costs = _checked(np.asarray(maze)[None], goal, mechanism, cost)
    following = transition_table(maps, mechanism=mechanism)[0]
    count = len(following)
    at_goal = goals.reshape(count, 1) != 0
    following = np.where(at_goal, np.arange(count)[:, None], following)
    costs[maps == 0] = _IMPOSSIBLE * costs.sum()  # a trap is worse than any path
    entering = np.repeat(costs[0].ravel(), mechanism.num_orientations)
    reward = np.where(at_goal, 0, -entering[following])
    transition = np.zeros((count, mechanism.num_actions, count), np.float32)
    state, action = np.indices(following.shape)
    transition[state, action, following] = 1
    return TabularMDP(transition, reward.astype(np.float32), discount)


def conv_mdp(maze: Any, goal: Any, *, mechanism: str | Mechanism, cost: Any = None) -> ConvMDP:
    """A batch of maps as one `ConvMDP`, whose kernel are the agent's moves.

    There is one action more than the agent has, the last: to stay, which is free of charge at
    goals. Whatever is not possible, walls and the edge of the map above all, costs more than any
    path.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goal: int `[n, 3]` or `[n, K, 3]`, see `MazeData.goal`.
      mechanism: how the agent moves; one that stops on its way has no such kernel.
      cost: `[n, H, W]`, what it costs to enter each cell; None: every action costs 1.

    Returns:
      The MDP, with `A + 1` actions.
    """
    mechanism = get_mechanism(mechanism)
    if mechanism.between == "stop" and mechanism.reach > 1:
        raise ValueError(
            f"where {mechanism.name} stops depends on walls, which a kernel does not see: use "
            "tabular_mdp"
        )
    maps, goals, costs = _checked(np.asarray(maze), goal, mechanism, cost)
    orientations, actions, reach = (
        mechanism.num_orientations,
        mechanism.num_actions,
        mechanism.reach,
    )
    side = 2 * reach + 1
    kernel = np.zeros((side, side, orientations, orientations, actions + 1), np.float32)
    free = np.pad(maps != 0, ((0, 0), (reach, reach), (reach, reach)))
    price = np.pad(costs, ((0, 0), (reach, reach), (reach, reach)))
    most = _IMPOSSIBLE * float(costs.sum(axis=(1, 2)).max(initial=1.0)) * orientations
    height, width = maps.shape[1:]
    q_reward = np.full((*maps.shape, orientations, actions + 1), -most, np.float32)
    for orientation in range(orientations):
        for action, (rows, columns, new) in enumerate(mechanism.moves[orientation]):
            kernel[reach + rows, reach + columns, new, orientation, action] = 1
            place = (
                slice(None),
                slice(reach + rows, reach + rows + height),
                slice(reach + columns, reach + columns + width),
            )
            possible = free[place] & (maps != 0)
            q_reward[..., orientation, action] = np.where(possible, -price[place], -most)
        kernel[reach, reach, orientation, orientation, actions] = 1
    q_reward[..., actions] = np.where(goals != 0, 0, -most)
    return ConvMDP(jnp.asarray(q_reward), jnp.asarray(kernel))


def _checked(
    maze: np.ndarray, goal: Any, mechanism: Mechanism, cost: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Maps `[n, H, W]`, goals `[n, H, W, O]` and costs `[n, H, W]`, 1 at walls."""
    maps, goals = as_maps(maze), np.asarray(goal)
    if len(maps) == 1 and goals.ndim <= 2 and goals.shape[:1] != (1,):
        goals = goals[None]
    fault = find_fault(maps, goals, num_orientations=mechanism.num_orientations)
    if fault:
        raise ValueError(" ".join(fault))
    costs = np.ones(maps.shape, np.float32)
    if cost is not None:
        costs = as_costs(np.reshape(cost, maps.shape), maps)
    where = goal_maps(goals, size=maps.shape[1:], num_orientations=mechanism.num_orientations)
    return maps, where, costs
