"""A trained planner that is ready to use: `load_planner(path).plan(map, goal, start)`.

A planner is a folder of two files:

    planner.json   what it is: mechanism, kind and settings of the model, and a card about its
                   training (configuration, data, scores), and a checksum
    weights.npz    its parameters, see `hvin_jax._saved`; a planner can use those of one beside it

A run also writes `CARD.md` there, the card to read.
"""

import dataclasses
import functools
import math
import pathlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from hvin_jax import _thinking
from hvin_jax._applied import apply_model
from hvin_jax._memory import check_memory
from hvin_jax._saved import check_params, load_folder, save_folder
from hvin_jax.models import (
    DynamicKernels,
    PlannerOutput,
    init_params,
    make_model,
    settings_of,
)
from hvin_jax.plan import Plan
from hvin_jax.tasks._states import are_several, as_costs, as_maps, states_of
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.tasks.rollouts import path_costs, path_lengths, path_of
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.tasks.walls import open_at_edge
from hvin_jax.thought import Thought

# Planners that come with the package, named after their mechanism: the one for all maps by that
# alone, others with the side of the largest maps for them.
SHIPPED = pathlib.Path(__file__).parent / "weights"
# What a planner says of the goals that it was trained for.
_TRAINED_FOR = ("any_orientation", "several_goals")


class UnmeasuredWarning(UserWarning):
    """A plan is asked for on a map outside of what the planner's card has measured."""


class Planner:
    """A model with its parameters.

    Attributes:
      settings: `kind` of the model and its fields, see `hvin_jax.models.make_model`.
      model: the Flax module.
      params: its parameters.
      mechanism: how the agent moves.
      card: what is known about it, see `planner.json`.
      name: what it is called: the name or folder that it was loaded by.
      any_orientation: whether it was trained for goals at which it does not matter how the agent
        faces.
      several_goals: whether it was trained for several goals at once, any of which counts.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        params: Any,
        mechanism: Mechanism,
        card: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        any_orientation: bool = False,
        several_goals: bool = False,
    ) -> None:
        """See the attributes; parameters that do not fit the model are an error."""
        self.settings, self.params, self.mechanism = dict(settings), params, mechanism
        self.card = dict(card or {})
        self.name = name or self.card.get("name") or "unnamed"
        self.any_orientation, self.several_goals = any_orientation, several_goals
        self.model = make_model(**self.settings)
        check_params(params, _expected(self.model, mechanism))

    def __repr__(self) -> str:
        count = sum(x.size for x in jax.tree.leaves(self.params))
        kind = self.settings["kind"]
        return f"Planner({self.name!r}: {kind} for {self.mechanism.name}, {count:,} parameters)"

    def policy(
        self, maze: Any, goal: Any, *, layers: int | str | None = None, cost: Any = None
    ) -> PlannerOutput:
        """Logits and values of maps `[n, H, W]`, all states at once.

        Args:
          maze: `[n, H, W]`, 1 = free, 0 = wall.
          goal: int `[n, 3]`, or `[n, K, 3]` where there are several, see `MazeData.goal`.
          layers: see `plan`.
          cost: `[n, H, W]`, what it costs to enter each cell; None: everywhere the same.

        Returns:
          A `PlannerOutput`, whose `depth` is the number of layers of each map.
        """
        if cost is not None:
            self._check_knows_costs()
        count, height, width = np.shape(maze)
        output = _apply(
            self.model, self.params, *self._stored(maze, goal, cost), self._layers(layers)
        )
        if output.depth is None and (own := getattr(self.model, "num_layers", None)):
            output = dataclasses.replace(output, depth=np.full(count, own))
        return _of_maps(output, slice(height), slice(width), count)

    def _stored(self, maze: Any, goal: Any, cost: Any) -> tuple[Any, ...]:
        """Maps, goals and costs in arrays that are planned in, and the size of the maps."""
        # One type and one of few shapes whatever comes in: each would be compiled for anew.
        maze, goal = np.asarray(maze, np.float32), np.asarray(goal, np.int32)
        shape = _stored_shape(*maze.shape)
        _check_memory(self.model, (*maze.shape, self.mechanism.num_orientations))
        more = [(0, larger - own) for own, larger in zip(maze.shape, shape, strict=True)]
        if goal.ndim == 3:  # one of few numbers of goals, too: the last once more
            count_of = _power_of_two(goal.shape[1]) - goal.shape[1]
            goal = np.pad(goal, [(0, 0), (0, count_of), (0, 0)], mode="edge")
        return (
            np.pad(maze, more),
            np.pad(goal, [more[0], *[(0, 0)] * (goal.ndim - 1)]),
            None if shape[1:] == maze.shape[1:] else np.array(maze.shape[1:]),
            None if cost is None else np.pad(np.asarray(cost, np.float32), more, constant_values=1),
        )

    def _layers(self, layers: int | str | None) -> int | str | None:
        """What `layers` of a model's call is for the one of `plan`."""
        if layers is None:
            return "auto" if isinstance(self.model, DynamicKernels) else None
        return None if layers == "own" else layers

    def _check_knows_costs(self) -> None:
        if not self.model.terrain:
            raise ValueError(
                f"{self.name} knows no costs: it was trained on maps where all actions cost the "
                "same; train one that does, see docs/costs.md"
            )

    def plan(
        self,
        maze: Any,
        goal: Any,
        start: Any,
        *,
        layers: int | str | None = None,
        cost: Any = None,
    ) -> Any:
        """Plans a path on a map, or on each map of a batch.

        A map of any size will do. Planners are trained on maps that end in walls; where a map has
        free cells at its edge, it is planned on with a wall around it.

        Args:
          maze: `[H, W]`, 1 = free, 0 = wall; or a batch `[n, H, W]`.
          goal: (row, column) or (row, column, orientation), the orientation as a number or by its
            name in `mechanism.orientations`; when it is left out, the best one. A sequence of
            several: any of them counts. For a batch, a sequence of `n` of these.
          start: (row, column) or (row, column, orientation), as for the goal.
          layers: how deep to plan: "auto": as deep as each map needs, until the policy at its free
            cells no longer changes (see `hvin_jax.planning.until_settled`), or there are eight
            layers for each of them; "own": as deep as the model was trained; or a number of layers,
            for which it is compiled anew. By default "auto" for DT-VINs and "own" for others, whose
            shared kernels gain nothing by it. A GPPN knows only its own depth.
          cost: of the map's shape, what it costs to enter each cell, more than 0; for planners that
            were trained with costs. Those of walls do not matter.

        Returns:
          A `Plan`, or a list of `n` for a batch.
        """
        maps = as_maps(maze)
        if caution := self.caution(maps.shape[-2:]):
            warnings.warn(caution, UnmeasuredWarning, stacklevel=2)
        costs = None
        if cost is not None:
            self._check_knows_costs()
            costs = as_costs(cost, maps)
        if maps.ndim == 2:
            goals = self._goals(goal, maps, "the goal")
            starts = states_of(start, maps, mechanism=self.mechanism, name="the start")
            costs = None if costs is None else costs[None]
            return self._plan(maps[None], [goals], [starts], layers, costs)[0]
        if not len(maps):
            return []
        each = self._each("goal", goal, maps), self._each("start", start, maps)
        return self._plan(maps, *each, layers, costs)

    def think(
        self,
        maze: Any,
        goal: Any,
        start: Any,
        *,
        layers: int | str | None = None,
        cost: Any = None,
        frames: int = 40,
    ) -> Thought:
        """Plans a path on a map, and tells what the plan was on the way there.

        Args:
          maze: `[H, W]`, see `plan`, as for all others.
          goal: where to go.
          start: where from.
          layers: how deep to plan.
          cost: what it costs to enter each cell.
          frames: at most so many moments are kept, evenly spread: after each block, or each layer
            of models without blocks, if there are no more of them.

        Returns:
          A `Thought`.
        """
        if frames < 1:
            raise ValueError(f"frames is {frames}, expected 1 or more")
        maps = as_maps(maze)
        if maps.ndim != 2:
            raise ValueError(f"a planner thinks about one map at a time, got a batch {maps.shape}")
        plan = self.plan(maps, goal, start, layers=layers, cost=cost)
        return _thinking.think(
            self,
            plan,
            every_goal=self._goals(goal, maps, "the goal").reshape(-1, 3),
            every_start=states_of(start, maps, mechanism=self.mechanism, name="the start"),
            frames=frames,
        )

    def _goals(self, goal: Any, maze: np.ndarray, name: str) -> np.ndarray:
        """What to plan for: `[cases, K, 3]`, of each of which any goal counts.

        A planner that was trained for one goal plans for each, one by one, since two need not be
        worth the same to it; and so, unless trained otherwise, for each orientation that is left
        out.
        """
        given = list(goal) if are_several(goal) else [goal]
        states = [states_of(one, maze, mechanism=self.mechanism, name=name) for one in given]
        if self.any_orientation:
            # More than one state of a cell: any orientation will do.
            states = [x if len(x) == 1 else x[:1] * (1, 1, 0) - (0, 0, 1) for x in states]
        if not self.several_goals:
            return np.concatenate(states)[:, None]
        cases = max(map(len, states))
        return np.array([[x[case % len(x)] for x in states] for case in range(cases)])

    def caution(self, size: Sequence[int]) -> str | None:
        """A sentence about maps of a size (height, width) that are larger than any measured one.

        The card says how large those were: `sizes` of `measured`, or the mazes of its test.
        """
        largest = _largest_measured(self.card)
        if largest is None or max(size) <= largest:
            return None
        return (
            f"{self.name} was measured on maps of up to {largest}×{largest}, and this one has "
            f"{size[0]}×{size[1]}: nobody knows how well it does there"
        )

    def _each(self, name: str, states: Any, maps: np.ndarray) -> list[np.ndarray]:
        """The states of each map of a batch, `[k, 3]` each."""
        count = len(states) if hasattr(states, "__len__") else "none"
        if count != len(maps):
            raise ValueError(f"{len(maps)} maps need as many {name}s, got {count}")
        if not hasattr(next(iter(states)), "__len__"):  # the row of a single one
            raise ValueError(
                f"a batch of {count} maps needs a {name} for each of them, such as "
                f"[(1, 1), (1, 1)] for two, got {states}"
            )
        said = [f"the {name} of map {index}" for index in range(len(maps))]
        if name == "goal":
            return [self._goals(*each) for each in zip(states, maps, said, strict=True)]
        return [
            states_of(state, one, mechanism=self.mechanism, name=what)
            for state, one, what in zip(states, maps, said, strict=True)
        ]

    def _plan(
        self,
        maze: np.ndarray,
        goals: list[np.ndarray],
        starts: list[np.ndarray],
        layers: int | str | None,
        cost: np.ndarray | None,
    ) -> list[Plan]:
        # One case for each goal and each of its orientations, all planned for at once.
        owner = np.repeat(np.arange(len(maze)), [len(cases) for cases in goals])
        most = max(cases.shape[1] for cases in goals)
        all_goals = np.concatenate(
            [np.pad(x, [(0, 0), (0, most - x.shape[1]), (0, 0)], mode="edge") for x in goals]
        )
        all_goals = all_goals[:, 0] if most == 1 else all_goals
        maps, costs = maze[owner], None if cost is None else cost[owner]
        output = self._on_walled_maps(maps, all_goals, layers, costs)
        policies = np.asarray(output.logits).argmax(-1).astype(np.uint8)
        far = _measured(policies, maps, all_goals, costs, self.mechanism)

        def plan(index: int) -> Plan:
            cases = np.flatnonzero(owner == index)
            at_start = {
                name: np.stack([x[cases, r, c, o] for r, c, o in starts[index]])
                for name, x in far.items()
            }
            planned, best = (at_start[x] for x in ("planned", "best"))
            from_start, to_goal = np.unravel_index(planned.argmin(), planned.shape)
            case = cases[to_goal]
            first = _triple(starts[index][from_start])
            wanted = all_goals[case].reshape(-1, 3)
            path = path_of(policies[case], maps[case], first, wanted, mechanism=self.mechanism)
            reached = bool(np.isfinite(planned.min()))
            shortest = at_start["shortest"].ravel()[best.argmin()]
            exists = bool(np.isfinite(best.min()))
            return Plan(
                path=path,
                reached=reached,
                shortest=int(shortest) if exists else None,
                start=first,
                goal=_triple(path[-1] if reached else np.maximum(wanted[0], 0)),
                policy=policies[case],
                values=None if output.value is None else np.asarray(output.value[case]),
                layers=None if output.depth is None else int(output.depth[case]),
                cost=None if costs is None else float(costs[case][tuple(path[1:, :2].T)].sum()),
                least_cost=None if costs is None or not exists else float(best.min()),
                maze=maze[index],
                mechanism=self.mechanism,
                goals=wanted.astype(np.int32),
                other_goals=_other_cells(all_goals[cases], wanted),
                costs=None if cost is None else cost[index],
            )

        return [plan(index) for index in range(len(maze))]

    def _on_walled_maps(
        self,
        maze: np.ndarray,
        goal: np.ndarray,
        layers: int | str | None,
        cost: np.ndarray | None,
    ) -> PlannerOutput:
        """`policy`; maps with free cells at the edge get a wall around them."""
        open_edge = open_at_edge(maze)
        parts, indices = [], []
        for margin in (0, 1):
            index = np.flatnonzero(open_edge == bool(margin))
            if not index.size:
                continue
            sides = ((0, 0), (margin, margin), (margin, margin))
            walled = np.pad(maze[index], sides)
            goals = goal[index] + np.array([margin, margin, 0])
            costs = None if cost is None else np.pad(cost[index], sides, constant_values=1)
            output = self.policy(walled, goals, layers=layers, cost=costs)
            rows, columns = (slice(margin, side - margin) for side in walled.shape[1:])
            parts.append(_of_maps(output, rows, columns, len(index)))
            indices.append(index)
        order = np.argsort(np.concatenate(indices))
        return jax.tree.map(lambda *x: np.concatenate(x)[order], *parts)


def _of_maps(output: PlannerOutput, rows: slice, columns: slice, count: int) -> PlannerOutput:
    """What is said of some cells of the first maps, as numpy arrays."""

    def part(x: Any) -> np.ndarray:
        x = np.asarray(x)[:count]
        return x[:, rows, columns] if x.ndim > 1 else x

    return jax.tree.map(part, output)


def _other_cells(goals: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Those of goals `[..., 3]` that are in other cells than the wanted ones, `[k, 3]`."""
    cells = {tuple(x) for x in goals.reshape(-1, 3)[:, :2].tolist()}
    others = sorted(cells - {tuple(x) for x in wanted[:, :2].tolist()})
    return np.array([(*cell, -1) for cell in others], np.int32).reshape(-1, 3)


def save_planner(folder: str | pathlib.Path, planner: Planner) -> None:
    """Writes a planner to a folder; each of its files appears when it is complete."""
    content = {
        "mechanism": planner.mechanism.to_json(),
        "model": planner.settings,
        "card": planner.card,
    }
    for name in _TRAINED_FOR:
        if getattr(planner, name):
            content[name] = True
    save_folder(folder, "planner", planner.params, content)


def load_planner(
    path: str | pathlib.Path | None = None,
    *,
    size: int | Sequence[int] | None = None,
    mechanism: str | None = None,
) -> Planner:
    """Loads a planner of yours, or one that comes with the package.

    Args:
      path: a folder with a `planner.json`, the folder of a training run, or the name of a planner
        that comes with the package; `shipped_planners()` lists those.
      size: without a path, the side of your maps or their (height, width).
      mechanism: without a path, how the agent moves: "diffdrive", which is the default, "news" or
        "moore". The planner is the one that comes with the package for it, and for maps of that
        size if there is none for all of them, see `shipped_planner_for`; its name says which.

    Returns:
      The planner.
    """
    if path is None:
        path = shipped_planner_for(size, mechanism or "diffdrive")
    elif size is not None or mechanism is not None:
        what, value = ("size", size) if mechanism is None else ("mechanism", mechanism)
        raise ValueError(f"both a path, {path}, and a {what}, {value}: a {what} chooses the path")
    folder = planner_folder(path)
    name = folder.name if folder.parent == SHIPPED else str(path)

    def expect(content: dict[str, Any]) -> Any:
        for entry in ("model", "card"):
            if not isinstance(content.get(entry, {}), dict):
                raise ValueError(f"its {entry} is {content[entry]!r}, expected a JSON object")
        model = make_model(**content["model"])
        return _expected(model, Mechanism.from_json(content["mechanism"]))

    def make(content: dict[str, Any], params: Any) -> Planner:
        return Planner(
            content["model"],
            params,
            Mechanism.from_json(content["mechanism"]),
            content.get("card"),
            name=name,
            **{entry: bool(content.get(entry)) for entry in _TRAINED_FOR},
        )

    return load_folder(folder, "planner", expect, make)


def shipped_planners() -> list[str]:
    """The names of the planners that come with the package."""
    return sorted(x.parent.name for x in SHIPPED.glob("*/planner.json"))


def shipped_planner_for(
    size: int | Sequence[int] | None = None, mechanism: str = "diffdrive"
) -> str:
    """The name of the planner that comes with the package for a mechanism and maps of a size.

    It is the one for all maps, which is called like the mechanism. Where there is none, it is the
    one for the smallest maps that are as large as the size, or for the largest.

    Args:
      size: the side of the maps, or (height, width); None: the largest.
      mechanism: how the agent moves.
    """
    get_mechanism(mechanism)
    names = [name for name in shipped_planners() if name.partition("-")[0] == mechanism]
    if mechanism in names:
        return mechanism
    if not names:
        raise ValueError(
            f"no planner for {mechanism} comes with the package, which has: "
            f"{', '.join(shipped_planners())}; train one, see docs/train.md"
        )
    by_side = {int(name.rpartition("-")[2]): name for name in names}
    needed = max(by_side) if size is None else size if isinstance(size, int) else max(size)
    return by_side[min((side for side in by_side if side >= needed), default=max(by_side))]


def _largest_measured(card: Mapping[str, Any]) -> int | None:
    """The side of the largest maps that a card has measured; None if it does not say."""
    try:
        measured = card.get("measured")
        sizes = measured["sizes"] if measured else [card["test"]["data"]["size"]]
        return max(int(size) for size in sizes)
    except (KeyError, TypeError, ValueError):
        return None


def planner_folder(path: str | pathlib.Path) -> pathlib.Path:
    """The folder with the `planner.json` that `load_planner(path)` reads."""
    for folder in (pathlib.Path(path), pathlib.Path(path) / "planner", SHIPPED / str(path)):
        if (folder / "planner.json").is_file():
            return folder
    raise ValueError(
        f"{path}: no planner there (a folder with planner.json, or one of a training run), and "
        f"none of that name comes with the package, which has: {', '.join(shipped_planners())}"
    )


def _stored_shape(count: int, height: int, width: int) -> tuple[int, int, int]:
    """The shape that maps are planned in: one of a few, so that new sizes need no compilation.

    Maps become squares, of 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, ... cells a side; long
    ones have their sides rounded up to powers of two, as the number of maps is up to 64.
    """
    count = _power_of_two(count) if count < 64 else -(-count // 64) * 64
    larger = max(height, width)
    if 2 * min(height, width) < larger:
        return count, _power_of_two(height), _power_of_two(width)
    step = max(4, _power_of_two(larger) // 8)
    side = max(8, -(-larger // step) * step)
    return count, side, side


def _power_of_two(number: int) -> int:
    """The least that is no less."""
    return 1 << (number - 1).bit_length()


@functools.partial(jax.jit, static_argnames=("model", "layers"))
def _apply(
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


def _check_memory(model: Any, states: tuple[int, ...]) -> None:
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


def check_mechanism(settings: Mapping[str, Any], mechanism: Mechanism) -> None:
    """Raises if a model is not one for agents that move so."""
    for name in ("num_orientations", "num_actions"):
        if settings[name] != getattr(mechanism, name):
            raise ValueError(
                f"the model has {name} = {settings[name]}, but {mechanism.name} has "
                f"{getattr(mechanism, name)}"
            )


def _expected(model: Any, mechanism: Mechanism) -> Any:
    """Shapes and types of the parameters of a model."""
    check_mechanism(settings_of(model), mechanism)
    return jax.eval_shape(lambda: init_params(model, jax.random.key(0)))


def _measured(
    policy: np.ndarray,
    maze: np.ndarray,
    goal: np.ndarray,
    cost: np.ndarray | None,
    mechanism: Mechanism,
) -> dict[str, np.ndarray]:
    """How far every state is from the goal, `[n, H, W, O]` each, infinite where it never arrives.

    Returns:
      planned: as the policy goes, in actions or by cost; best: as one should go; shortest: the
      actions of a path that is best.
    """
    if cost is None:
        planned = path_lengths(policy, maze, goal, mechanism=mechanism)
        spl, _ = shortest_paths(maze, goal, mechanism=mechanism)
        far = {"planned": planned, "best": spl, "shortest": spl}
        return {name: np.where(x == UNREACHABLE, np.inf, x) for name, x in far.items()}
    best, spl, _ = cheapest_paths(maze, goal, cost, mechanism=mechanism)
    planned = path_costs(policy, maze, goal, cost, mechanism=mechanism)
    return {"planned": planned, "best": best, "shortest": spl}


def _triple(state: np.ndarray) -> tuple[int, int, int]:
    row, column, orientation = (int(x) for x in state)
    return row, column, orientation
