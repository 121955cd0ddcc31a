"""Plain Python mazes, written from the rules of the protocol and not from the code under test."""

import collections

import numpy as np

from hvin_jax.tasks.maze_data import UNREACHABLE

ACTIONS = {"diffdrive": 3, "news": 4, "moore": 8}
NORTH, EAST, WEST, SOUTH = range(4)
MOVES = [(-1, 0), (0, 1), (0, -1), (1, 0), (-1, 1), (-1, -1), (1, 1), (1, -1)]


def orientations(mechanism):
    return 4 if mechanism == "diffdrive" else 1


def next_state(mechanism, maze, state, action):
    """The rules in words: METHOD.md, "The 2D maze protocol"."""
    row, column, facing = state
    height, width = maze.shape
    if mechanism == "diffdrive":
        if not maze[row, column]:
            return state
        if action == 1:
            return row, column, {NORTH: EAST, EAST: SOUTH, SOUTH: WEST, WEST: NORTH}[facing]
        if action == 2:
            return row, column, {NORTH: WEST, WEST: SOUTH, SOUTH: EAST, EAST: NORTH}[facing]
        row, column = row + MOVES[facing][0], column + MOVES[facing][1]
        inside = 0 <= row < height and 0 <= column < width
        return (row, column, facing) if inside else state
    row, column = row + MOVES[action][0], column + MOVES[action][1]
    inside = 0 <= row < height and 0 <= column < width
    return (row, column, 0) if inside and maze[row, column] else state


def states(mechanism, maze):
    return list(np.ndindex(*maze.shape, orientations(mechanism)))


def distances(mechanism, maze, goal):
    """Breadth-first search backwards from the goal: [H, W, O]."""
    before = collections.defaultdict(list)
    for state in states(mechanism, maze):
        if maze[state[:2]]:
            for action in range(ACTIONS[mechanism]):
                before[next_state(mechanism, maze, state, action)].append(state)
    result = np.full((*maze.shape, orientations(mechanism)), UNREACHABLE)
    result[goal] = 0
    queue = collections.deque([goal])
    while queue:
        state = queue.popleft()
        for previous in before[state]:
            if result[previous] == UNREACHABLE:
                result[previous] = result[state] + 1
                queue.append(previous)
    return result


def optimal_sets(mechanism, maze, distance):
    """The actions that lead nearest to the goal, as bits: [H, W, O]."""
    result = np.zeros(distance.shape, dtype=int)
    for state in states(mechanism, maze):
        after = [
            distance[next_state(mechanism, maze, state, action)]
            for action in range(ACTIONS[mechanism])
        ]
        result[state] = sum(2**action for action, d in enumerate(after) if d == min(after))
    return result


def walk(mechanism, maze, goal, policy, start):
    """The number of actions until the goal is reached, or UNREACHABLE."""
    state, seen = start, set()
    if not maze[start[:2]]:
        return UNREACHABLE
    for length in range(policy.size + 1):
        if state == goal:
            return length
        if state in seen:
            return UNREACHABLE
        seen.add(state)
        state = next_state(mechanism, maze, state, int(policy[state]))
    raise AssertionError("a walk can't be longer than the number of states")


def random_maps(n, size, seed):
    """Maps without any structure, of all densities, with goals on free cells."""
    rng = np.random.default_rng(seed)
    maze = (rng.random((n, *size)) < rng.uniform(0.2, 1, (n, 1, 1))).astype(np.uint8)
    flat = rng.integers(0, size[0] * size[1], n)
    row, column = np.unravel_index(flat, size)
    maze[np.arange(n), row, column] = 1
    return maze, np.stack([row, column, rng.integers(0, 4, n)], axis=1).astype(np.int32)
