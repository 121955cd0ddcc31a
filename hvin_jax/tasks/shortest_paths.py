"""Shortest paths and optimal actions of whole batches of mazes.

A breadth-first search from the goals, 64 mazes in every machine word: a set of states is a bit
array with one bit per maze, and one step of the search in all mazes is a handful of bitwise
operations. The search runs over all mazes of a block in lockstep, so a block takes as many steps as
its longest shortest path.
"""

import functools
import math
from typing import Any

import numpy as np

from hvin_jax.tasks._landings import Landing, landings, stays_at_goal, with_border
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.maze_data import UNREACHABLE, MazeData, find_fault, goal_maps
from hvin_jax.tasks.mechanisms import Mechanism

# Mazes searched at once. Measured: smaller blocks spend their time in calls, larger ones leave the
# cache.
BLOCK = 512
# Labels of up to so many actions are drawn from a table of all sets.
_MOST_IN_TABLE = 8


def shortest_paths(
    maze: np.ndarray, goal: np.ndarray, *, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray]:
    """The shortest path length and all optimal actions of every state.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.
      goal: int `[n, 3]` or `[n, K, 3]`, (row, column, orientation); free cells, see
        `MazeData.goal`.
      mechanism: how the agent moves.

    Returns:
      spl: uint16 `[n, H, W, O]`, see `MazeData.spl`.
      optimal: `[n, H, W, O]`, bit sets, see `MazeData.optimal`.
    """
    if fault := find_fault(maze, goal, num_orientations=mechanism.num_orientations):
        raise ValueError(" ".join(fault))
    shape = (*maze.shape, mechanism.num_orientations)
    spl = np.empty(shape, dtype=np.uint16)
    optimal = np.empty(shape, dtype=mechanism.set_dtype)
    for start in range(0, len(maze), BLOCK):
        block = slice(start, start + BLOCK)
        spl[block], optimal[block] = _search(maze[block], goal[block], mechanism)
    return spl, optimal


def _search(
    maze: np.ndarray, goal: np.ndarray, mechanism: Mechanism
) -> tuple[np.ndarray, np.ndarray]:
    """`shortest_paths` of one block.

    The bit arrays are `[O, H, W, words]`; the frontier has a border of empty cells, so that what
    an action leads to is a slice.
    """
    n, height, width = maze.shape
    free = _pack(np.moveaxis(maze, 0, -1) != 0)
    goals = goal_maps(goal, size=maze.shape[1:], num_orientations=mechanism.num_orientations)
    frontier = with_border(_pack(np.moveaxis(goals, (3, 0), (0, 3)) != 0), reach := mechanism.reach)
    inside = frontier[:, reach : reach + height, reach : reach + width]
    # No action leaves a trap. Walls that merely block are found but not searched beyond: `& free`
    # below.
    traps = mechanism.walls == "trap"
    unseen = np.empty_like(inside, order="C")
    unseen[:] = free if traps else ~np.uint64(0)
    unseen &= ~inside

    targets = landings(frontier, free, mechanism)
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
            reached = [_reached(of_action) for of_action in of_actions]
            np.bitwise_or(reached[0], reached[-1], out=new)
            for target in reached[1:-1]:
                np.bitwise_or(new, target, out=new)
            np.bitwise_and(new, unseen[orientation], out=new)
            for action, target in enumerate(reached):
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
    optimal = _from_bits(list(chosen), n, mechanism.set_dtype)
    optimal[nowhere if traps else never_seen] = 2**mechanism.num_actions - 1
    optimal[goals != 0] = stays_at_goal(maze, goals, spl, mechanism=mechanism)
    return spl, optimal


def _reached(of_action: list[Landing]) -> np.ndarray:
    """The states from which an action leads into the frontier, bits `[H, W, words]`."""
    (view, mask), *others = of_action
    reached = view if mask is None else view & mask
    for view, mask in others:
        reached = reached | (view & mask)
    return reached


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


def _pack(bits: np.ndarray) -> np.ndarray:
    """Bool `[..., n]` → uint64 `[..., ceil(n / 64)]`, the first maze in the lowest bit."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    padding = [(0, 0)] * (packed.ndim - 1) + [(0, -packed.shape[-1] % 8)]
    return np.ascontiguousarray(np.pad(packed, padding)).view("<u8").astype(np.uint64, copy=False)


def _from_bits(planes: list[np.ndarray], n: int, dtype: Any) -> np.ndarray:
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
      optimal: `[...]`, bit sets, none empty.
      rng: where the draws come from; consumed.
      mechanism: how the agent moves.

    Returns:
      uint8 `[...]`, indices of actions.
    """
    if mechanism.num_actions > _MOST_IN_TABLE:
        return _drawn(optimal, rng, mechanism.num_actions)
    table = _draw_table(mechanism.num_actions)
    draws = rng.integers(0, table.shape[1], size=optimal.shape, dtype=np.uint16)
    return table[optimal, draws]


def _drawn(optimal: np.ndarray, rng: np.random.Generator, num_actions: int) -> np.ndarray:
    """`draw_labels` for more actions than a table of all sets has room for."""
    rank = np.floor(rng.random(optimal.shape) * np.bitwise_count(optimal)).astype(np.uint8)
    label = np.zeros(optimal.shape, np.uint8)
    before = np.zeros(optimal.shape, np.uint8)
    for action in range(num_actions):
        member = (optimal >> optimal.dtype.type(action) & optimal.dtype.type(1)).astype(bool)
        label[member & (before == rank)] = action
        before += member
    return label


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
    """Where a label, uint8 `[...]`, is none of the optimal actions, bit sets `[...]`."""
    bits = 8 * optimal.dtype.itemsize
    return (label >= bits) | (optimal >> label.clip(0, bits - 1).astype(optimal.dtype) & 1 == 0)


def count_states(wrong: np.ndarray) -> str:
    """How many states a mask `[n, H, W, O]` has, in words, and which is the first."""
    maze, *state = np.argwhere(wrong)[0].tolist()
    count = np.count_nonzero(wrong)
    which = "one state," if count == 1 else f"{count} states, the first"
    return f"{which} in maze {maze} at row, column, orientation {state}"


def label_mazes(
    maze: np.ndarray,
    goal: np.ndarray,
    rng: np.random.Generator,
    *,
    mechanism: Mechanism,
    cost: np.ndarray | None = None,
    extent: np.ndarray | None = None,
) -> MazeData:
    """Mazes with their shortest paths and labels.

    Args:
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: int32 `[n, 3]` or `[n, K, 3]`, (row, column, orientation); free cells.
      rng: breaks the ties between optimal actions; consumed.
      mechanism: how the agent moves.
      cost: `[n, H, W]`, what it costs to enter each cell, see `MazeData.cost`; None: all the same.
      extent: int32 `[n, 2]`, the size of each map, see `MazeData.extent`; None: they fill `maze`.

    Returns:
      The labelled mazes.
    """
    if fault := find_fault(
        maze, goal, num_orientations=mechanism.num_orientations, cost=cost, extent=extent
    ):
        raise ValueError(" ".join(fault))
    distance = None
    if cost is None:
        spl, optimal = shortest_paths(maze, goal, mechanism=mechanism)
    else:
        cost = np.where(maze != 0, cost, np.inf).astype(np.float32)
        distance, spl, optimal = cheapest_paths(maze, goal, cost, mechanism=mechanism)
    return MazeData(
        mechanism=mechanism,
        maze=maze,
        goal=goal,
        label=draw_labels(optimal, rng, mechanism=mechanism),
        optimal=optimal,
        spl=spl,
        cost=cost,
        distance=distance,
        extent=extent,
    )
