"""Cheapest paths and optimal actions of whole batches of mazes whose cells cost what they cost.

Bellman's equation V(s) = min_a cost(s') + V(s'), s' = where a leads, is iterated from the goals on
until nothing changes: as many times as the cheapest paths have actions. All states of a block of
mazes are one array, in which what an action leads to is a slice.
"""

import numpy as np

from hvin_jax.tasks._landings import Landing, landings, stays_at_goal, with_border
from hvin_jax.tasks.maze_data import UNREACHABLE, goal_maps
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.rollouts import path_lengths

# Mazes searched at once; a block takes as long as its longest path, and should stay in the cache.
BLOCK = 16
# Two costs are the same if they differ by no more than this share: sums are rounded.
TOLERANCE = 1e-5


def cheapest_paths(
    maze: np.ndarray, goal: np.ndarray, cost: np.ndarray, *, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cost of a cheapest path from every state, its length and all optimal actions.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goal: int `[n, 3]` or `[n, K, 3]`, (row, column, orientation); free cells.
      cost: `[n, H, W]`, positive at free cells, see `MazeData.cost`.
      mechanism: how the agent moves.

    Returns:
      distance: float32 `[n, H, W, O]`, see `MazeData.distance`.
      spl: uint16 `[n, H, W, O]`, the number of actions of a cheapest path.
      optimal: `[n, H, W, O]`, bit sets: the actions that lead to the goal at a cost that is larger
        than the least by no more than `TOLERANCE` of it.
    """
    shape = (*maze.shape, mechanism.num_orientations)
    distance = np.empty(shape, dtype=np.float32)
    optimal = np.empty(shape, dtype=mechanism.set_dtype)
    for start in range(0, len(maze), BLOCK):
        block = slice(start, start + BLOCK)
        found = _search(maze[block], goal[block], cost[block], mechanism)
        distance[block], optimal[block] = found
    first = (optimal & -optimal.astype(np.int64)).astype(np.float64)  # the lowest bit of each set
    policy = np.log2(first).astype(np.uint8)
    spl = path_lengths(policy, maze, goal, mechanism=mechanism)
    spl[~np.isfinite(distance)] = UNREACHABLE
    return distance, spl, optimal


def _search(
    maze: np.ndarray, goal: np.ndarray, cost: np.ndarray, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray]:
    """`cheapest_paths` of one block, with arrays `[O, H, W, n]`; without lengths."""
    free = np.moveaxis(maze, 0, -1) != 0
    entering = np.where(free, np.moveaxis(cost, 0, -1), np.inf)
    goals = goal_maps(goal, size=maze.shape[1:], num_orientations=mechanism.num_orientations)
    at_goal = np.moveaxis(goals, (3, 0), (0, 3)) != 0
    distance = np.where(at_goal, 0.0, np.inf)
    # What it costs to go on from a state and to have entered it: what an action leads to.
    reach = mechanism.reach
    arriving = with_border(entering[None] + distance, reach, np.inf)
    height, width = maze.shape[1:]
    inside = arriving[:, reach : reach + height, reach : reach + width]
    targets = landings(arriving, free, mechanism)
    best = np.empty_like(distance[0])
    changes = True
    while changes:
        changes = False
        for orientation, of_actions in enumerate(targets):
            best[:] = distance[orientation]
            for of_action in of_actions:
                np.minimum(best, _arrived(of_action), out=best)
            if not np.array_equal(best, distance[orientation]):
                changes = True
                distance[orientation] = best
                np.add(entering, best, out=inside[orientation])
    if mechanism.walls == "trap":  # which no action leaves
        distance[:, ~free] = np.inf
    optimal = _optimal(distance, targets, free, mechanism)
    distance[:, ~free] = np.inf
    distance, optimal = (np.moveaxis(x, (0, 3), (3, 0)) for x in (distance, optimal))
    optimal[goals != 0] = stays_at_goal(maze, goals, distance, mechanism=mechanism)
    return distance, optimal


def _arrived(of_action: list[Landing]) -> np.ndarray:
    """What an action leads to, `[H, W, n]`."""
    arrived = of_action[0].view
    for view, mask in of_action:
        if mask is not None:
            arrived = np.where(mask, view, np.inf if view is arrived else arrived)
    return arrived


def _optimal(
    distance: np.ndarray,
    targets: list[list[list[Landing]]],
    free: np.ndarray,
    mechanism: Mechanism,
) -> np.ndarray:
    """Sets of optimal actions, `[O, H, W, n]`; all of them where none leads to the goal."""
    optimal = np.zeros(distance.shape, mechanism.set_dtype)
    least = distance * (1 + TOLERANCE)
    # An action that brings the agent no nearer is none, however little it costs.
    nearer = landings(with_border(distance, mechanism.reach, np.inf), free, mechanism)
    for orientation, of_actions in enumerate(zip(targets, nearer, strict=True)):
        for action, (arriving, after) in enumerate(zip(*of_actions, strict=True)):
            member = _arrived(arriving) <= least[orientation]
            member &= _arrived(after) < distance[orientation]
            optimal[orientation] |= member.astype(optimal.dtype) << optimal.dtype.type(action)
    optimal[~np.isfinite(distance)] = 2**mechanism.num_actions - 1
    return optimal
