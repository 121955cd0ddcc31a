"""Maps of your own as a data set: goals, costs and sizes of any kind, labelled and split."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from hvin_jax._memory import check_memory
from hvin_jax.tasks._states import are_several, as_costs, as_maps, states_of
from hvin_jax.tasks.datasets import bytes_of_maze, draw_goals
from hvin_jax.tasks.generation.components import largest_components
from hvin_jax.tasks.maps.own_map import OwnMap
from hvin_jax.tasks.maze_data import MazeData, MazeSplits
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism, transition_table
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
        it has some, else drawn from the largest connected part of the map, and drawn again where
        no start leads there.
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
    each = _own_maps(maps)
    if not isinstance(per_map, int | np.integer) or per_map < 1:
        raise ValueError(f"per_map is {per_map!r}, expected a whole number of 1 or more")
    for name, given in (("goals", goals), ("costs", costs)):
        _check_count(name, given, len(each))
    maze, extent = _stacked(each, pad, size)
    all_costs = _costs_of(each, costs, maze)
    wanted = [one.goals or None for one in each] if goals is None else list(goals)
    drawn = [number for number, goal in enumerate(wanted) if goal is None]
    if closed := [each[number].name for number in drawn if not each[number].maze.any()]:
        raise ValueError(f"{closed[0]} has no free cell for a goal")
    count = len(each) + len(drawn) * (int(per_map) - 1)
    per_maze = bytes_of_maze(maze.shape[1:], mechanism=mechanism, has_costs=all_costs is not None)
    # Twice, as while they are labelled and when they are dealt to splits.
    check_memory(2 * count * per_maze, f"{count:,} labelled mazes of {_sides(maze[0])}")
    owner = np.repeat(np.arange(len(each)), [per_map if x is None else 1 for x in wanted])
    goal_of = _drawn_goals(maze[drawn], rng, per_map, mechanism, any_orientation)
    found = dict(zip(drawn, goal_of, strict=True))
    for number, goal in enumerate(wanted):
        if goal is not None:
            name = f"the goal of {each[number].name}"
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
    _draw_again(data, np.isin(owner, drawn), rng)
    if (nowhere := _without_start(data)).any():
        name = each[owner[nowhere.argmax()]].name
        raise ValueError(f"{name} has no start from which {mechanism.name} reaches the goal")
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


def _own_maps(maps: Any) -> list[OwnMap]:
    """All maps, each with a name."""
    try:
        given = list(maps)
    except TypeError as error:
        raise ValueError(
            f"the maps are a {type(maps).__name__}, expected an array [n, H, W] or a sequence of "
            "maps"
        ) from error
    if not given:
        raise ValueError("there are no maps to label")
    return [_own_map(one, f"map {number}") for number, one in enumerate(given)]


def _own_map(one: Any, name: str) -> OwnMap:
    if isinstance(one, OwnMap):
        return dataclasses.replace(one, name=one.name or name)
    try:
        return OwnMap(as_maps(one), name=name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _check_count(name: str, given: Any, count: int) -> None:
    """Raises unless there is one for each map, or nothing at all."""
    if given is None:
        return
    try:
        found = str(len(given))
    except TypeError:
        found = f"a single {type(given).__name__}"
    if found != str(count):
        raise ValueError(f"{count} maps need as many {name}, got {found}")


def _stacked(
    each: list[OwnMap], pad: bool, size: tuple[int, int] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """One array of all maps, and the size of each if they do not fill it."""
    maps = [one.maze for one in each]
    extent = np.array([one.shape for one in maps], np.int32)
    if not pad and (differs := (extent != extent[0]).any(axis=1)).any():
        other = each[differs.argmax()]
        raise ValueError(
            f"{each[0].name} has {_sides(maps[0])} cells, {other.name} has {_sides(other.maze)}: "
            "maps of different size need padding to be allowed: pad=True, or --pad of hvin label"
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
    for place, one, cost in zip(joined, maps, given, strict=True):
        if cost is None:
            continue
        try:
            place[: one.maze.shape[0], : one.maze.shape[1]] = as_costs(cost, one.maze)
        except ValueError as error:
            raise ValueError(f"{one.name}: {error}") from error
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


def _draw_again(data: MazeData, drawn: np.ndarray, rng: np.random.Generator) -> None:
    """Draws other goals, in place, where no start leads to those that were drawn.

    Args:
      data: the labelled mazes.
      drawn: bool `[n]`, which of them have a goal that was drawn.
      rng: consumed, unless all of these have a start.
    """
    again = np.flatnonzero(drawn & _without_start(data))
    if not len(again):
        return
    for index, part in zip(again, largest_components(data.maze[again]), strict=True):
        goal = data.goal[index]
        any_orientation = bool(goal.flat[2] < 0)
        possible = _goals_with_start(data.maze[index], any_orientation, data.mechanism)
        preferred = possible[part[possible[:, 0], possible[:, 1]]]
        if len(choice := preferred if len(preferred) else possible):
            goal[...] = choice[rng.integers(len(choice))]
    mazes = data[again]
    labelled = label_mazes(
        mazes.maze,
        mazes.goal,
        rng,
        mechanism=data.mechanism,
        cost=mazes.cost,
        extent=mazes.extent,
    )
    for name, array in labelled.arrays().items():
        getattr(data, name)[again] = array


def _goals_with_start(maze: np.ndarray, any_orientation: bool, mechanism: Mechanism) -> np.ndarray:
    """The goals of a map `[H, W]` that some start leads to, `[k, 3]`.

    They are the free states that an action enters from another one: that one is a start.
    """
    orientations = mechanism.num_orientations
    free = np.repeat(maze.ravel() != 0, orientations)
    before = np.flatnonzero(free)[:, None]
    after = transition_table(maze[None], mechanism=mechanism)[0, free]
    same = orientations if any_orientation else 1  # so many states in turn are one goal
    entered = np.zeros(free.shape, bool)
    entered[after[after // same != before // same]] = True
    states = np.argwhere((entered & free).reshape(*maze.shape, orientations))
    if any_orientation:
        states[:, 2] = -1
    return np.unique(states, axis=0)


def _without_start(data: MazeData) -> np.ndarray:
    """Which mazes have no start, bool `[n]`."""
    return np.logical_not(start_states(data.spl).any(axis=(1, 2, 3)))


def _sides(maze: np.ndarray) -> str:
    return "×".join(map(str, maze.shape))


def _repeated(goals: np.ndarray, most: int) -> np.ndarray:
    """`[m, K, 3]` as `[m, most, 3]`: the last goal several times."""
    return np.pad(goals, [(0, 0), (0, most - goals.shape[1]), (0, 0)], mode="edge")
