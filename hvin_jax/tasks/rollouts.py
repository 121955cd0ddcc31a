"""Following a policy from every state of every maze at once.

Under a policy each state has one successor, so a maze becomes a graph of pointers with the goal
pointing at itself. Doubling the pointers k times follows 2ᵏ actions; after log₂ S doublings whoever
is not at the goal never gets there.
"""

from typing import Any

import numpy as np

from hvin_jax.tasks.maze_data import UNREACHABLE, goal_maps
from hvin_jax.tasks.mechanisms import Mechanism, step

# Mazes followed at once, so that their pointers stay in the cache.
BLOCK = 64


def path_lengths(
    policy: np.ndarray, maze: np.ndarray, goal: np.ndarray, *, mechanism: Mechanism
) -> np.ndarray:
    """The number of actions after which a policy first reaches a goal.

    Args:
      policy: int `[n, H, W, O]`, indices of actions.
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goal: int `[n, 3]` or `[n, K, 3]`, (row, column, orientation), see `MazeData.goal`.
      mechanism: how the agent moves.

    Returns:
      uint16 `[n, H, W, O]`: 0 at the goal, `UNREACHABLE` at wall cells, where the goal is never
      reached, and where it takes so many actions that 16 bits can't hold them.
    """
    check_policy(policy, shape=(*maze.shape, mechanism.num_orientations), mechanism=mechanism)
    lengths = np.empty(policy.shape, dtype=np.uint16)
    for start in range(0, len(maze), BLOCK):
        block = slice(start, start + BLOCK)
        one = np.ones(policy[block].size, np.int32)
        length, arrives = _follow(policy[block], maze[block], goal[block], one, mechanism)
        lengths[block] = np.where(arrives, np.minimum(length, UNREACHABLE), UNREACHABLE)
    return lengths


def path_costs(
    policy: np.ndarray,
    maze: np.ndarray,
    goal: np.ndarray,
    cost: np.ndarray,
    *,
    mechanism: Mechanism,
) -> np.ndarray:
    """What the path of a policy to a goal costs: the sum of `cost` `[n, H, W]` over its cells.

    The other arguments are those of `path_lengths`.

    Returns:
      float64 `[n, H, W, O]`: 0 at the goal, infinite at wall cells and where the goal is never
      reached.
    """
    check_policy(policy, shape=(*maze.shape, mechanism.num_orientations), mechanism=mechanism)
    costs = np.empty(policy.shape, dtype=np.float64)
    for start in range(0, len(maze), BLOCK):
        block = slice(start, start + BLOCK)
        entering = np.where(maze[block] != 0, cost[block], 0).astype(np.float64)
        each = np.repeat(entering.ravel(), mechanism.num_orientations)
        total, arrives = _follow(policy[block], maze[block], goal[block], each, mechanism)
        costs[block] = np.where(arrives, total, np.inf)
    return costs


def _follow(
    policy: np.ndarray,
    maze: np.ndarray,
    goal: np.ndarray,
    entering: np.ndarray,
    mechanism: Mechanism,
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of `entering` `[n·S]` over the states of each path, and whether it arrives."""
    n, num_states = len(maze), policy[0].size
    following = step(maze, np.arange(num_states)[None], policy.reshape(n, -1), mechanism=mechanism)
    following += np.arange(n)[:, None] * num_states
    goals = goal_maps(goal, size=maze.shape[1:], num_orientations=mechanism.num_orientations)
    at_goal = goals.ravel() != 0
    ends = np.flatnonzero(at_goal)
    pointer = following.ravel()
    pointer[ends] = ends
    length = np.take(entering, pointer)  # of the part of the path that the pointer jumps
    length[ends] = 0
    followed = 1
    while followed < num_states:
        jump = np.take(pointer, pointer)
        if np.array_equal(jump, pointer):
            break
        length += np.take(length, pointer)
        pointer = jump
        followed *= 2
    arrives = np.take(at_goal, pointer) & np.repeat(maze.ravel() != 0, mechanism.num_orientations)
    return length.reshape(policy.shape), arrives.reshape(policy.shape)


def path_of(
    policy: np.ndarray,
    maze: np.ndarray,
    start: tuple[int, int, int],
    goal: Any,
    *,
    mechanism: Mechanism,
) -> np.ndarray:
    """The path that a policy takes through one maze.

    Args:
      policy: int `[H, W, O]`, indices of actions.
      maze: `[H, W]`, 1 = free, 0 = wall.
      start: (row, column, orientation).
      goal: the same, where an orientation of -1 stands for any; or several, `[K, 3]`.
      mechanism: how the agent moves.

    Returns:
      int32 `[k + 1, 3]`: the states from the start on. The last one is a goal, or the first state
      that repeats an earlier one: from there on the agent goes round in circles.
    """
    check_policy(policy, shape=(*maze.shape, mechanism.num_orientations), mechanism=mechanism)
    goals = np.asarray(goal).reshape(-1, np.shape(goal)[-1])
    for name, states, least in (("start", [start], 0), ("goal", goals.tolist(), -1)):
        for state in states:
            if len(state) != 3 or not all(
                low <= value < size
                for low, value, size in zip((0, 0, least), state, policy.shape, strict=True)
            ):
                raise ValueError(
                    f"{name} {tuple(state)} is not a (row, column, orientation) within "
                    f"{policy.shape}"
                )
    maps = goal_maps(goals[None], size=maze.shape, num_orientations=policy.shape[2])
    ends = set(np.flatnonzero(maps).tolist())
    following = step(
        maze[None], np.arange(policy.size)[None], policy.reshape(1, -1), mechanism=mechanism
    )[0]
    path = [int(np.ravel_multi_index(start, policy.shape))]
    visited: set[int] = set()
    while path[-1] not in ends and path[-1] not in visited:
        visited.add(path[-1])
        path.append(int(following[path[-1]]))
    return np.stack(np.unravel_index(path, policy.shape), axis=1).astype(np.int32)


def check_policy(policy: np.ndarray, *, shape: tuple[int, ...], mechanism: Mechanism) -> None:
    """Raises an error that says what is wrong with a policy.

    Args:
      policy: what should be an integer array of that shape with indices of actions.
      shape: `[n, H, W, O]` or `[H, W, O]`.
      mechanism: how the agent moves.
    """
    if policy.shape != shape:
        raise ValueError(f"the policy has shape {policy.shape}, expected {shape}")
    if not np.issubdtype(policy.dtype, np.integer):
        raise ValueError(
            f"the policy is {policy.dtype}, expected indices of actions: take the argmax of logits"
        )
    if policy.size and not (policy.min() >= 0 and policy.max() < mechanism.num_actions):
        raise ValueError(
            f"the policy has actions from {policy.min()} to {policy.max()}, but {mechanism.name} "
            f"has actions 0 to {mechanism.num_actions - 1}"
        )
