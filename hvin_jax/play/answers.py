"""What the page asks for and what it gets: numbers and texts, no HTTP."""

import base64
import dataclasses
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import hvin_jax
from hvin_jax._thinking import best_path
from hvin_jax.planner import Planner, UnmeasuredWarning
from hvin_jax.planner_files import load_planner, shipped_planners
from hvin_jax.tasks._states import states_of
from hvin_jax.tasks.generation import FAMILIES, MapLaw
from hvin_jax.tasks.maps.images import from_png
from hvin_jax.tasks.maps.own_map import OwnMap
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.measures import farthest_start
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.thought import Thought

# Sides of maps: the largest that shipped planners were measured on.
SMALLEST, LARGEST = 3, 101
# Moments of a thought, and cells that all of them may have together.
_FRAMES, _MOST_CELLS = 40, 60_000
_MOST_PLANNERS = 2


class Asked(ValueError):
    """A request that can't be answered; the sentence says why."""


class Answers:
    """The planners that a page may use, and what it may ask of them."""

    def __init__(self, own: Sequence[str] = ()) -> None:
        """Planners by their names or folders, and then those that come with the package."""
        self._planners: dict[str, Planner] = {}
        for path in own:
            planner = load_planner(path)
            self._planners[planner.name] = planner
        for name in shipped_planners():
            self._planners.setdefault(name, load_planner(name))

    def info(self) -> dict[str, Any]:
        """What there is to choose from."""
        return {
            "version": hvin_jax.__version__,
            "planners": [_about(planner) for planner in self._planners.values()],
            "families": sorted(FAMILIES),
            "sides": [SMALLEST, LARGEST],
        }

    def warm_up(self) -> None:
        """Compiles what the first page will ask for: 15×15, by the first planner and its rival."""
        maze = np.zeros((15, 15), np.uint8)
        maze[1:-1, 1:-1] = 1
        asked = {"map": _rows(maze), "start": [1, 1], "goal": [13, 13]}
        first, *others = self._planners.values()
        rival = next((one for one in others if _about(one)["gate"]), None)
        for planner in filter(None, (first, rival)):
            self.think({**asked, "planners": [planner.name]})

    def think(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The thoughts of one or two planners about a map."""
        begin = time.perf_counter()
        thoughts = [
            {**_packed(thought), "caution": self._caution(thought)}
            for thought in self._thoughts(asked)
        ]
        return {"thoughts": thoughts, "seconds": time.perf_counter() - begin}

    def gif(self, asked: Mapping[str, Any]) -> bytes:
        """The first of these thoughts as a moving picture."""
        return self._thoughts(asked)[0].animate().gif()

    def _caution(self, thought: Thought) -> str | None:
        return self._planners[thought.planner].caution(thought.policies.shape[1:3])

    def _thoughts(self, asked: Mapping[str, Any]) -> list[Thought]:
        maze = _maze(asked.get("map"))
        ends = {name: _cell(name, asked.get(name)) for name in ("start", "goal")}
        names = asked.get("planners")
        if not isinstance(names, list) or not 1 <= len(names) <= _MOST_PLANNERS:
            raise Asked(f"say which planner should think, one or {_MOST_PLANNERS} of them")
        thoughts = []
        for name in names:
            planner = self._planners.get(name) if isinstance(name, str) else None
            if planner is None:
                raise Asked(f"there is no planner {str(name)[:40]!r} here")
            states = maze.size * planner.mechanism.num_orientations
            frames = max(min(_FRAMES, _MOST_CELLS // states), 8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnmeasuredWarning)
                start, goal = _faced(planner, maze, ends["start"], ends["goal"])
                thoughts.append(planner.think(maze, goal, start, frames=frames))
        return thoughts


def _faced(
    planner: Planner, maze: np.ndarray, start: tuple[int, int], goal: tuple[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Start and goal with orientations, those of a shortest path.

    Left out, a planner would plan for a goal of each orientation, four times as long; and two
    planners side by side might begin and end otherwise.
    """
    mechanism = planner.mechanism
    starts = states_of(start, maze, mechanism=mechanism, name="the start")
    goals = states_of(goal, maze, mechanism=mechanism, name="the goal")
    path = best_path(maze, goals, starts, None, mechanism)
    ends = (starts[0], goals[0]) if path is None else (path[0], path[-1])
    faced_start, faced_goal = (tuple(state.tolist()) for state in ends)
    return faced_start, goal if planner.any_orientation else faced_goal


def sample(family: str, side: int, seed: int) -> dict[str, Any]:
    """A map of a family, with a long way from start to goal."""
    if family not in FAMILIES:
        raise Asked(f"there is no family of maps {family[:40]!r}")
    if not 7 <= side <= LARGEST:
        raise Asked(f"maps of families have sides of 7 to {LARGEST} cells, not {side}")
    moves = get_mechanism("news")
    rng = np.random.default_rng(abs(seed))
    maze, goal = MapLaw((side, side), family).draw(1, num_orientations=1, rng=rng)
    spl, _ = shortest_paths(maze, goal, mechanism=moves)
    start = farthest_start(spl[0])
    return _map_answer(
        OwnMap(maze[0], (int(start[0]), int(start[1])), (int(goal[0, 0]), int(goal[0, 1])))
    )


def read_text(content: bytes) -> dict[str, Any]:
    """A map from a drawing."""
    try:
        own = from_text(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Asked("the file is not a text in UTF-8, as a drawing of a map is") from error
    if own.cost is not None and (own.cost != 1).any():
        raise Asked(
            "this page knows no costs: take the digits out of the map, or use `hvin plan` with a "
            "planner that was trained with costs, see docs/costs.md"
        )
    answer = _map_answer(own)
    if (count := len(own.goals)) > 1:
        answer["note"] = f"this page shows one goal: the first of the {count} of the map"
    return answer


def read_png(content: bytes, cell: int) -> dict[str, Any]:
    """A map from a black-and-white image, with so many pixels a cell; 0: found out."""
    with tempfile.NamedTemporaryFile(prefix="hvin-play-", suffix=".png") as file:
        file.write(content)
        file.flush()
        try:
            own = from_png(file.name, cell=max(cell, 1))
        except ValueError as error:
            raise Asked(str(error).replace(file.name, "the image")) from error
    if cell > 0:
        return _map_answer(own)
    cell = _cell_of(own.maze)
    maze = own.maze[::cell, ::cell]
    guess = f": cells of {cell}×{cell} pixels, as guessed from the image"
    _check_size(*maze.shape, more=guess)
    return _map_answer(dataclasses.replace(own, maze=maze))


def _cell_of(maze: np.ndarray) -> int:
    """The side of cells that are squares of equal pixels, as large as they can be."""
    edges = [np.flatnonzero(np.diff(maze, axis=axis).any(axis=1 - axis)) + 1 for axis in (0, 1)]
    return int(np.gcd.reduce([*maze.shape, *edges[0].tolist(), *edges[1].tolist()]))


def _map_answer(own: OwnMap) -> dict[str, Any]:
    height, width = own.maze.shape
    _check_size(height, width)
    free = [(row, column) for row, column in np.argwhere(own.maze != 0).tolist()]
    if len(free) < 2:
        raise Asked("the map has no two free cells to go between")
    start = own.start or next(cell for cell in free if cell != own.goal)
    goal = own.goal or next(cell for cell in reversed(free) if cell != start)
    return {"map": _rows(own.maze), "start": list(start), "goal": list(goal)}


def _check_size(height: int, width: int, *, more: str = "") -> None:
    if min(height, width) < SMALLEST or max(height, width) > LARGEST:
        size = f"{height}×{width} cells, expected {SMALLEST} to {LARGEST} a side"
        raise Asked(f"the map has {size}{more}")


def _rows(maze: np.ndarray) -> list[str]:
    return ["".join("." if free else "#" for free in row) for row in maze.tolist()]


def _maze(rows: Any) -> np.ndarray:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
        raise Asked("the map must be a list of rows of # (wall) and . (free)")
    height, width = len(rows), len(rows[0])
    _check_size(height, width)
    if any(len(row) != width or set(row) - set("#.") for row in rows):
        raise Asked("the rows of the map must be equally long, of # (wall) and . (free)")
    return np.array([[character == "." for character in row] for row in rows], np.uint8)


def _cell(name: str, cell: Any) -> tuple[int, int]:
    if not isinstance(cell, list) or len(cell) != 2 or any(type(x) is not int for x in cell):
        raise Asked(f"the {name} must be two whole numbers, row and column")
    return cell[0], cell[1]


def _about(planner: Planner) -> dict[str, Any]:
    mechanism = planner.mechanism
    return {
        "name": planner.name,
        "kind": planner.settings["kind"],
        "layers": getattr(planner.model, "num_layers", None),
        "mechanism": mechanism.name,
        "orientations": list(mechanism.orientations),
        "actions": list(mechanism.actions),
        "moves": mechanism.moves,
        "gate": bool(getattr(planner.model, "filter_gate", False)),
    }


def _packed(thought: Thought) -> dict[str, Any]:
    """A thought for the page: values of each moment as shares of 255 between its extremes."""
    plan = thought.plan
    maze, _ = plan.setting()
    free = np.broadcast_to((maze != 0)[None, ..., None], thought.policies.shape)
    values = None
    if thought.values is not None:
        axes = (1, 2, 3)
        low = np.min(thought.values, axis=axes, keepdims=True, where=free, initial=np.inf)
        high = np.max(thought.values, axis=axes, keepdims=True, where=free, initial=-np.inf)
        share = (thought.values - low) / np.where(high > low, high - low, 1)
        values = _base64(255 * np.clip(np.nan_to_num(share), 0, 1))
    return {
        "planner": thought.planner,
        "summary": plan.summary(),
        "shape": list(thought.policies.shape),
        "depths": thought.depths.tolist(),
        "values": values,
        "policies": _base64(thought.policies),
        "passed": None if thought.passed is None else _base64(255 * thought.passed),
        "paths": [path.tolist() for path in thought.paths],
        "reached": thought.reached.tolist(),
        "captions": [thought.caption(moment) for moment in range(len(thought))],
        "best": None if thought.best_path is None else thought.best_path.tolist(),
        "shortest": plan.shortest,
        "settled": thought.settled,
        "start": list(plan.start),
        "goals": plan.every_goal.tolist(),
    }


def _base64(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.round().astype(np.uint8).tobytes()).decode()
