"""Maps of your own as a data set: goals, costs and sizes of any kind, labelled and split."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hvin_jax.tasks._states import are_several, as_costs, as_maps, states_of
from hvin_jax.tasks.datasets import draw_goals
from hvin_jax.tasks.generation.components import largest_components
from hvin_jax.tasks.maze_data import MazeData, MazeSplits
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.tasks.own_maps import OwnMap
from hvin_jax.tasks.shortest_paths import label_mazes


def label_maps(
    maps: Any,
    goals: Any = None,
    *,
    mechanism: str | Mechanism,
    costs: Any = None,
    per_map: int = 1,
    any_orientation: bool = False,
    pad: bool = False,
    size: tuple[int, int] | None = None,
    seed: int = 0,
) -> MazeData:
    """Maps with goals, shortest paths and labels: what planners are trained and measured on.

    Args:
      maps: an array `[n, H, W]`, 1 = free, 0 = wall; or a sequence of arrays `[H, W]` and
        `OwnMap`, which may have goals and costs of their own.
      goals: for each map (row, column) or (row, column, orientation), or a sequence of several, any
        of which counts. Without an orientation, any will do. None: those of an `OwnMap` where
        it has some, else drawn from the largest connected part of the map.
      mechanism: how the agent moves.
      costs: for each map, what it costs to enter each cell; None: those of each `OwnMap`, if any
        has some; else all actions cost the same.
      per_map: how many goals to draw for each map that has none: as many examples are made of it.
      any_orientation: whether it does not matter how the agent faces at goals that are drawn.
      pad: whether maps may have different sizes; they become those of the largest, and what is
        added lies beyond their border.
      size: (rows, columns) of the arrays, if larger than any map.
      seed: of the goals that are drawn, and of labels where several actions are optimal.

    Returns:
      The labelled mazes, `per_map` of each map in turn where goals are drawn.
    """
    mechanism, rng = get_mechanism(mechanism), np.random.default_rng(seed)
    each = [_own_map(one, number) for number, one in enumerate(maps)]
    if not each:
        raise ValueError("there are no maps to label")
    if per_map < 1:
        raise ValueError(f"per_map is {per_map}, expected 1 or more")
    for name, given in (("goals", goals), ("costs", costs)):
        if given is not None and len(given) != len(each):
            raise ValueError(f"{len(each)} maps need as many {name}, got {len(given)}")
    maze, extent = _stacked([one.maze for one in each], pad, size)
    all_costs = _costs_of(each, costs, maze)
    wanted = [one.goals or None for one in each] if goals is None else list(goals)
    drawn = [number for number, goal in enumerate(wanted) if goal is None]
    owner = np.repeat(np.arange(len(each)), [per_map if x is None else 1 for x in wanted])
    goal_of = _drawn_goals(maze[drawn], rng, per_map, mechanism, any_orientation)
    found = dict(zip(drawn, goal_of, strict=True))
    for number, goal in enumerate(wanted):
        if goal is not None:
            name = f"the goal of map {number}"
            found[number] = _goal(goal, each[number].maze, mechanism, name)[None]
    most = max(x.shape[1] for x in found.values())
    goal = np.concatenate(
        [_repeated(found[number], most) for number in range(len(each))], dtype=np.int32
    )
    data = label_mazes(
        maze[owner],
        goal[:, 0] if most == 1 else goal,
        rng,
        mechanism=mechanism,
        cost=None if all_costs is None else all_costs[owner],
        extent=None if extent is None else extent[owner],
    )
    if (nowhere := ~start_states(data.spl).any(axis=(1, 2, 3))).any():
        number = int(owner[nowhere.argmax()])
        raise ValueError(f"map {number} has no start from which {mechanism.name} reaches the goal")
    return data


def split_mazes(
    data: MazeData, shares: Sequence[float] = (0.8, 0.1, 0.1), *, seed: int = 0
) -> MazeSplits:
    """Deals mazes to training, validation and test, mixed; those of one map stay together.

    Args:
      data: the mazes.
      shares: of the maps that each split gets, relative to each other.
      seed: of the order in which they are dealt.
    """
    if len(shares) != 3 or not all(0 < share < np.inf for share in shares):
        raise ValueError(f"shares are {tuple(shares)}, expected three numbers above 0")
    _, which = np.unique(data.maze.reshape(len(data), -1), axis=0, return_inverse=True)
    maps = int(which.max()) + 1
    counts = np.maximum(1, np.floor(maps * np.array(shares) / sum(shares)).astype(int))
    counts[0] = maps - counts[1] - counts[2]
    if counts[0] < 1:
        raise ValueError(
            f"{maps} different maps are too few for three splits: label each split by itself"
        )
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(maps), np.cumsum(counts)[:2])
    # Mixed, because pictures and short validations take the first of them.
    mixed = rng.permutation(len(data))
    train, valid, test = (data[mixed[np.isin(which[mixed], part)]] for part in parts)
    return MazeSplits(train=train, valid=valid, test=test)


def _own_map(one: Any, number: int) -> OwnMap:
    if isinstance(one, OwnMap):
        return one
    try:
        return OwnMap(as_maps(one))
    except ValueError as error:
        raise ValueError(f"map {number}: {error}") from error


def _stacked(
    maps: list[np.ndarray], pad: bool, size: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """One array of all maps, and the size of each if they do not fill it."""
    extent = np.array([one.shape for one in maps], np.int32)
    if not pad and (differs := (extent != extent[0]).any(axis=1)).any():
        number = int(differs.argmax())
        sides = ["×".join(map(str, maps[which].shape)) for which in (0, number)]
        raise ValueError(
            f"map 0 has {sides[0]} cells, map {number} has {sides[1]}: maps of different size need "
            "padding to be allowed (pad)"
        )
    largest = np.maximum(extent.max(axis=0), size or (0, 0))
    maze = np.zeros((len(maps), *largest), np.uint8)
    for place, one in zip(maze, maps, strict=True):
        place[: one.shape[0], : one.shape[1]] = one
    return maze, None if (extent == largest).all() else extent


def _costs_of(maps: list[OwnMap], costs: Any, maze: np.ndarray) -> np.ndarray | None:
    given = [one.cost for one in maps] if costs is None else list(costs)
    if all(cost is None for cost in given):
        return None
    joined = np.ones(maze.shape, np.float32)
    for number, (place, one, cost) in enumerate(zip(joined, maps, given, strict=True)):
        if cost is None:
            continue
        try:
            place[: one.maze.shape[0], : one.maze.shape[1]] = as_costs(cost, one.maze)
        except ValueError as error:
            raise ValueError(f"map {number}: {error}") from error
    return joined


def _goal(goal: Any, maze: np.ndarray, mechanism: Mechanism, name: str) -> np.ndarray:
    """Goals as data have them, `[K, 3]`."""
    states = []
    for one in list(goal) if are_several(goal) else [goal]:
        of_cell = states_of(one, maze, mechanism=mechanism, name=name)
        free_choice = len(of_cell) > 1
        states.append([*of_cell[0][:2], -1 if free_choice else of_cell[0][2]])
    return np.array(states)


def _drawn_goals(
    maze: np.ndarray,
    rng: np.random.Generator,
    count: int,
    mechanism: Mechanism,
    any_orientation: bool,
) -> np.ndarray:
    """`[n, count, 1, 3]`."""
    if not len(maze):
        return np.zeros((0, count, 1, 3), np.int32)
    goals = draw_goals(largest_components(maze), rng, count=count, mechanism=mechanism)
    if any_orientation and mechanism.num_orientations > 1:
        goals[..., 2] = -1
    return goals[:, :, None]


def _repeated(goals: np.ndarray, most: int) -> np.ndarray:
    """`[m, K, 3]` as `[m, most, 3]`: the last goal several times."""
    return np.pad(goals, [(0, 0), (0, most - goals.shape[1]), (0, 0)], mode="edge")
