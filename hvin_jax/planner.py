"""A trained planner that is ready to use: `load_planner(path).plan(map, goal, start)`."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from hvin_jax import _thinking
from hvin_jax._applied import apply_stored, check_room, of_maps, stored
from hvin_jax._saved import check_params
from hvin_jax.models import (
    DynamicKernels,
    PlannerOutput,
    init_params,
    make_model,
    settings_of,
)
from hvin_jax.plan import Plan
from hvin_jax.tasks._states import are_several, as_costs, as_goals, as_maps, states_of
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.rollouts import path_costs, path_lengths, path_of
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.tasks.walls import open_at_edge
from hvin_jax.thought import Thought


class UnmeasuredWarning(UserWarning):
    """A plan is asked for on a map outside of what the planner's card has measured."""


class Planner:
    """A model with its parameters.

    Attributes:
      settings: `kind` of the model and its fields, see `hvin_jax.models.make_model`.
      model: the Flax module.
      params: its parameters.
      mechanism: how the agent moves.
      card: what is known about it: how it was trained, and how it did in a test.
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
        check_params(params, expected_params(self.model, mechanism))

    def __repr__(self) -> str:
        count = sum(x.size for x in jax.tree.leaves(self.params))
        kind = self.settings["kind"]
        return f"Planner({self.name!r}: {kind} for {self.mechanism.name}, {count:,} parameters)"

    def policy(
        self, maze: Any, goal: Any, *, layers: int | str | None = None, cost: Any = None
    ) -> PlannerOutput:
        """Logits and values of a batch of maps, all states at once; as `plan` plans on them.

        Args:
          maze: `[n, H, W]`, 1 = free, 0 = wall.
          goal: int `[n, 3]`, or `[n, K, 3]` where there are several, see `MazeData.goal`.
          layers: see `plan`.
          cost: `[n, H, W]`, what it costs to enter each cell; None: everywhere the same.

        Returns:
          A `PlannerOutput`, whose `depth` is the number of layers of each map.
        """
        maps = as_maps(maze)
        if maps.ndim != 3 or not len(maps):
            raise ValueError(f"the maps have shape {maps.shape}, expected a batch [n, H, W]")
        goals = as_goals(goal, maps, mechanism=self.mechanism)
        if cost is not None:
            self._check_knows_costs()
            cost = as_costs(cost, maps)
        return self._on_walled_maps(maps, goals, layers, cost)

    def _layers(self, layers: int | str | None) -> int | str | None:
        """What `layers` of a model's call is for the one of `plan`."""
        if layers is None:
            return "auto" if isinstance(self.model, DynamicKernels) else None
        if hasattr(layers, "item") and not np.ndim(layers):  # a number of an array library
            layers = layers.item()
        if not isinstance(layers, str | int | float):
            raise ValueError(f'layers is {layers!r}, expected "auto", "own" or a number')
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
            layers for each of them; "own": as deep as the model was trained; or a number of layers
            (whole blocks, of models that have blocks), for which it is compiled anew. By default
            "auto" for DT-VINs and "own" for others, whose shared kernels gain nothing by it. A GPPN
            knows only its own depth.
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
        if not isinstance(frames, int | np.integer) or frames < 1:
            raise ValueError(f"frames is {frames!r}, expected a whole number of 1 or more")
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
        goal = list(goal) if isinstance(goal, Iterator) else goal
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
        first = next(iter(states))
        if not hasattr(first, "__len__") or not getattr(first, "ndim", 1):  # the row of one
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
        """`_policy`; maps with free cells at the edge get a wall around them."""
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
            output = self._policy(walled, goals, layers, costs)
            rows, columns = (slice(margin, side - margin) for side in walled.shape[1:])
            parts.append(of_maps(output, rows, columns, len(index)))
            indices.append(index)
        order = np.argsort(np.concatenate(indices))
        return jax.tree.map(lambda *x: np.concatenate(x)[order], *parts)

    def _policy(
        self,
        maze: np.ndarray,
        goal: np.ndarray,
        layers: int | str | None,
        cost: np.ndarray | None,
    ) -> PlannerOutput:
        """What the model says of maps of one size, as they are."""
        count, height, width = maze.shape
        check_room(self.model, (*maze.shape, self.mechanism.num_orientations))
        arrays = stored(maze, goal, cost)
        output = apply_stored(self.model, self.params, *arrays, self._layers(layers))
        if output.depth is None and (own := getattr(self.model, "num_layers", None)):
            output = dataclasses.replace(output, depth=np.full(count, own))
        return of_maps(output, slice(height), slice(width), count)


def _other_cells(goals: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Those of goals `[..., 3]` that are in other cells than the wanted ones, `[k, 3]`."""
    cells = {tuple(x) for x in goals.reshape(-1, 3)[:, :2].tolist()}
    others = sorted(cells - {tuple(x) for x in wanted[:, :2].tolist()})
    return np.array([(*cell, -1) for cell in others], np.int32).reshape(-1, 3)


def _largest_measured(card: Mapping[str, Any]) -> int | None:
    """The side of the largest maps that a card has measured; None if it does not say."""
    try:
        measured = card.get("measured")
        sizes = measured["sizes"] if measured else [card["test"]["data"]["size"]]
        return max(int(size) for size in sizes)
    except (KeyError, TypeError, ValueError):
        return None


def check_mechanism(settings: Mapping[str, Any], mechanism: Mechanism) -> None:
    """Raises if a model is not one for agents that move so."""
    for name in ("num_orientations", "num_actions"):
        if settings[name] != getattr(mechanism, name):
            raise ValueError(
                f"the model has {name} = {settings[name]}, but {mechanism.name} has "
                f"{getattr(mechanism, name)}"
            )


def expected_params(model: Any, mechanism: Mechanism) -> Any:
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
