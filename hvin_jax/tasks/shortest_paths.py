"""Shortest paths and optimal actions of whole batches of mazes.

A breadth-first search from the goals, 64 mazes in every machine word: a set of states is a bit
array with one bit per maze, and one step of the search in all mazes is a handful of bitwise
operations. The search runs over all mazes of a block in lockstep, so a block takes as many steps as
its longest shortest path.
"""

import functools
import math

import numpy as np

from hvin_jax.tasks.maze_data import UNREACHABLE, MazeData, find_fault
from hvin_jax.tasks.mechanisms import Mechanism, step

# Mazes searched at once. Measured: smaller blocks spend their time in calls, larger ones leave the
# cache.
BLOCK = 512


def shortest_paths(
    maze: np.ndarray, goal: np.ndarray, *, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest path length and all optimal actions of every state.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goal: int `[n, 3]`, (row, column, orientation); free cells.
      mechanism: how the agent moves.

    Returns:
      spl: uint16 `[n, H, W, O]`, see `MazeData.spl`.
      optimal: uint8 `[n, H, W, O]`, bit sets, see `MazeData.optimal`.
    """
    if fault := find_fault(maze, goal, num_orientations=mechanism.num_orientations):
        raise ValueError(" ".join(fault))
    shape = (*maze.shape, mechanism.num_orientations)
    spl = np.empty(shape, dtype=np.uint16)
    optimal = np.empty(shape, dtype=np.uint8)
    for start in range(0, len(maze), BLOCK):
        block = slice(start, start + BLOCK)
        spl[block], optimal[block] = _search(maze[block], goal[block], mechanism)
    return spl, optimal


def _search(
    maze: np.ndarray, goal: np.ndarray, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray]:
    """`shortest_paths` of one block.

    The bit arrays are `[O, H, W, words]`; the frontier has a border of one empty cell, so that a
    shifted frontier is a slice.
    """
    n, height, width = maze.shape
    free = _pack(np.moveaxis(maze, 0, -1) != 0)
    frontier = np.zeros(
        (mechanism.num_orientations, height + 2, width + 2, free.shape[-1]), dtype=np.uint64
    )
    inside = frontier[:, 1:-1, 1:-1]
    index = np.arange(n)
    np.bitwise_or.at(
        inside,
        (goal[:, 2], goal[:, 0], goal[:, 1], index // 64),
        np.left_shift(np.uint64(1), (index % 64).astype(np.uint64)),
    )
    # No action leaves a trap. Walls that merely block are found but not searched beyond: `& free`
    # below.
    traps = mechanism.walls == "trap"
    unseen = np.empty_like(inside, order="C")
    unseen[:] = free if traps else ~np.uint64(0)
    unseen &= ~inside

    # For each orientation, the slices of the frontier that its actions lead to.
    targets = [
        [
            frontier[new, 1 + rows : 1 + rows + height, 1 + columns : 1 + columns + width]
            for rows, columns, new in of_orientation
        ]
        for of_orientation in mechanism.moves
    ]
    chosen = np.zeros((mechanism.num_actions, *unseen.shape), dtype=np.uint64)
    found = np.empty_like(unseen)
    scratch = np.empty_like(free)
    planes: list[np.ndarray] = []
    steps = 0
    while inside.any():
        steps += 1
        if steps >= UNREACHABLE:
            raise ValueError(
                f"a shortest path of a {height}×{width} map has {UNREACHABLE} actions or more, too "
                "many for 16 bits; use a smaller map"
            )
        _count(planes, unseen, steps)
        for orientation, of_actions in enumerate(targets):
            new = found[orientation]
            np.bitwise_or(of_actions[0], of_actions[-1], out=new)
            for target in of_actions[1:-1]:
                np.bitwise_or(new, target, out=new)
            np.bitwise_and(new, unseen[orientation], out=new)
            for action, target in enumerate(of_actions):
                np.bitwise_and(target, new, out=scratch)
                np.bitwise_or(chosen[action, orientation], scratch, out=chosen[action, orientation])
        np.bitwise_xor(unseen, found, out=unseen)
        if traps:
            inside[:] = found
        else:
            np.bitwise_and(found, free, out=inside)

    spl = _from_bits(planes, n, np.uint16)
    never_seen = _from_bits([unseen], n, np.bool_)
    nowhere = never_seen | (maze == 0)[..., None]
    spl[nowhere] = UNREACHABLE
    optimal = _from_bits(list(chosen), n, np.uint8)
    optimal[nowhere if traps else never_seen] = 2**mechanism.num_actions - 1
    optimal[index, goal[:, 0], goal[:, 1], goal[:, 2]] = _at_goal(maze, goal, spl, mechanism)
    return spl, optimal


def _count(planes: list[np.ndarray], unseen: np.ndarray, steps: int) -> None:
    """Adds one to the path length of all unseen states; bit `b` of the lengths is `planes[b]`.

    A state's length is the number of steps that began with it unseen. Its bit `b` flips with every
    2ᵇ-th of them.
    """
    bit = 0
    while steps % 2**bit == 0:
        if bit == len(planes):
            planes.append(np.zeros_like(unseen))
        np.bitwise_xor(planes[bit], unseen, out=planes[bit])
        bit += 1


def _at_goal(
    maze: np.ndarray, goal: np.ndarray, spl: np.ndarray, mechanism: Mechanism
) -> np.ndarray:
    """The actions that lead from the goal to the state nearest to it, uint8 `[n]`."""
    n = len(maze)
    state = np.ravel_multi_index(tuple(goal.T), spl.shape[1:])[:, None]
    action = np.arange(mechanism.num_actions)[None].repeat(n, axis=0)
    following = step(maze, state, action, mechanism=mechanism)
    length = np.take_along_axis(spl.reshape(n, -1), following, axis=1)
    nearest = length == length.min(axis=1, keepdims=True)
    return np.packbits(nearest, axis=1, bitorder="little")[:, 0]


def _pack(bits: np.ndarray) -> np.ndarray:
    """Bool `[..., n]` → uint64 `[..., ceil(n / 64)]`, the first maze in the lowest bit."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    padding = [(0, 0)] * (packed.ndim - 1) + [(0, -packed.shape[-1] % 8)]
    return np.ascontiguousarray(np.pad(packed, padding)).view("<u8").astype(np.uint64, copy=False)


def _from_bits(planes: list[np.ndarray], n: int, dtype: type) -> np.ndarray:
    """Binary digits, each uint64 `[O, H, W, words]`, lowest first → numbers `[n, H, W, O]`."""
    total = np.zeros((*planes[0].shape[:-1], n), dtype=dtype)
    for digit, plane in enumerate(planes):
        bits = np.unpackbits(plane.view(np.uint8), axis=-1, count=n, bitorder="little")
        total |= (
            np.left_shift(bits, digit, dtype=dtype) if digit else bits.astype(dtype, copy=False)
        )
    return np.ascontiguousarray(total.transpose(3, 1, 2, 0))


def draw_labels(
    optimal: np.ndarray, rng: np.random.Generator, *, mechanism: Mechanism
) -> np.ndarray:
    """One action out of each set, all with equal probability.

    Args:
      optimal: uint8 `[...]`, bit sets, none empty.
      rng: where the draws come from; consumed.
      mechanism: how the agent moves.

    Returns:
      uint8 `[...]`, indices of actions.
    """
    table = _draw_table(mechanism.num_actions)
    draws = rng.integers(0, table.shape[1], size=optimal.shape, dtype=np.uint16)
    return table[optimal, draws]


@functools.lru_cache
def _draw_table(num_actions: int) -> np.ndarray:
    """`table[set, draw]`: the actions of a set in turn.

    The number of draws is a multiple of each set's size, so that all of its actions are as likely.
    """
    draws = math.lcm(*range(1, num_actions + 1))
    table = np.zeros((2**num_actions, draws), dtype=np.uint8)
    for bits in range(1, 2**num_actions):
        actions = [action for action in range(num_actions) if bits >> action & 1]
        table[bits] = np.resize(np.array(actions, dtype=np.uint8), draws)
    return table


def wrong_labels(label: np.ndarray, optimal: np.ndarray) -> np.ndarray:
    """Where a label, uint8 `[...]`, is none of the optimal actions, uint8 bit sets `[...]`."""
    return (optimal >> label & 1) == 0


def count_states(wrong: np.ndarray) -> str:
    """How many states a mask `[n, H, W, O]` has, in words, and which is the first."""
    maze, *state = np.argwhere(wrong)[0].tolist()
    count = np.count_nonzero(wrong)
    which = "one state," if count == 1 else f"{count} states, the first"
    return f"{which} in maze {maze} at row, column, orientation {state}"


def label_mazes(
    maze: np.ndarray, goal: np.ndarray, rng: np.random.Generator, *, mechanism: Mechanism
) -> MazeData:
    """Mazes with their shortest paths and labels.

    Args:
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: int32 `[n, 3]`, (row, column, orientation); free cells.
      rng: breaks the ties between optimal actions; consumed.
      mechanism: how the agent moves.

    Returns:
      The labelled mazes.
    """
    spl, optimal = shortest_paths(maze, goal, mechanism=mechanism)
    label = draw_labels(optimal, rng, mechanism=mechanism)
    return MazeData(
        mechanism=mechanism, maze=maze, goal=goal, label=label, optimal=optimal, spl=spl
    )
