"""A trained planner that is ready to use: `load_planner(path).plan(map, goal, start)`.

A planner is a folder of two files:

    planner.json   what it is: mechanism, kind and settings of the model, and a card about its
                   training (configuration, data, scores)
    weights.npz    its parameters, one array each; nested names are joined by "/"

A run also writes `CARD.md` there, the card to read.
"""

import dataclasses
import json
import pathlib
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from hvin_jax._files import write_json
from hvin_jax.models import PlannerOutput, make_model
from hvin_jax.tasks.maze_data import UNREACHABLE, find_fault, goal_map
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.tasks.npz import write_npz
from hvin_jax.tasks.rollouts import follow, path_lengths
from hvin_jax.tasks.shortest_paths import shortest_paths

# Planners that come with the package, named after their mechanism and the largest maps for them.
SHIPPED = pathlib.Path(__file__).parent / "weights"
DEFAULT = "diffdrive-15"
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a planner wants to do on one map.

    Attributes:
      path: int32 `[k + 1, 3]`, states (row, column, orientation) from the start on. If the goal is
        not reached, the last state is the first one that repeats an earlier one.
      reached: whether the path ends at the goal.
      shortest: the length of a shortest path; None if there is none.
      start: the state that was started from.
      goal: the goal state that was planned for.
      policy: uint8 `[H, W, O]`, the action in every state.
      values: float32 `[H, W, O]`, the planner's value map; None for models that have none.
    """

    path: np.ndarray
    reached: bool
    shortest: int | None
    start: tuple[int, int, int]
    goal: tuple[int, int, int]
    policy: np.ndarray
    values: np.ndarray | None

    @property
    def length(self) -> int:
        """The number of actions on the path."""
        return len(self.path) - 1

    @property
    def optimal(self) -> bool:
        """Whether the goal is reached by a shortest path."""
        return self.reached and self.length == self.shortest


class Planner:
    """A model with its parameters.

    Attributes:
      settings: `kind` of the model and its fields, see `hvin_jax.models.make_model`.
      model: the Flax module.
      params: its parameters.
      mechanism: how the agent moves.
      card: what is known about it, see `planner.json`.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        params: Any,
        mechanism: Mechanism,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        """See the attributes; parameters that do not fit the model are an error."""
        self.settings, self.params, self.mechanism = dict(settings), params, mechanism
        self.card = dict(card or {})
        self.model = model = make_model(**self.settings)
        _check_params(model, params, mechanism)
        self._apply = jax.jit(lambda maze, goal: model.apply(params, maze, goal, train=False))

    def policy(self, maze: Any, goal: Any) -> PlannerOutput:
        """Logits and values of maps `[n, H, W]` with goals `[n, 3]`, all states at once."""
        maze, goal = np.asarray(maze), np.asarray(goal)
        orientations = self.mechanism.num_orientations
        maps = goal_map(goal, size=maze.shape[1:], num_orientations=orientations)
        return self._apply(jnp.asarray(maze), jnp.asarray(maps))

    def plan(self, maze: Any, goal: Any, start: Any) -> Any:
        """Plans a path on a map, or on each map of a batch.

        A map of any size will do. Planners are trained on maps that end in walls; where a map has
        free cells at its edge, it is planned on with a wall around it.

        Args:
          maze: `[H, W]`, 1 = free, 0 = wall; or a batch `[n, H, W]`.
          goal: (row, column) or (row, column, orientation); when the orientation is left out, the
            best one. For a batch, a sequence of `n` of them.
          start: the same.

        Returns:
          A `Plan`, or a list of `n` for a batch.
        """
        maze = np.asarray(maze)
        if maze.ndim == 2:
            return self._plan(maze[None], [goal], [start])[0]
        if maze.ndim != 3:
            raise ValueError(f"maze has shape {maze.shape}, expected [H, W] or a batch [n, H, W]")
        if len(goal) != len(maze) or len(start) != len(maze):
            raise ValueError(
                f"{len(maze)} mazes need as many goals and starts, got {len(goal)} and {len(start)}"
            )
        return self._plan(maze, goal, start)

    def _plan(self, maze: np.ndarray, goal: Sequence[Any], start: Sequence[Any]) -> list[Plan]:
        goals = [self._states("goal", g, m) for g, m in zip(goal, maze, strict=True)]
        starts = [self._states("start", s, m) for s, m in zip(start, maze, strict=True)]
        # One case for each orientation of a goal, all planned for at once.
        owner = np.repeat(np.arange(len(maze)), [len(states) for states in goals])
        maps, all_goals = maze[owner].astype(np.uint8), np.concatenate(goals)
        logits, values = self._on_walled_maps(maps, all_goals)
        policies = logits.argmax(-1).astype(np.uint8)
        lengths = path_lengths(policies, maps, all_goals, mechanism=self.mechanism)
        spl, _ = shortest_paths(maps, all_goals, mechanism=self.mechanism)

        def plan(index: int) -> Plan:
            cases = np.flatnonzero(owner == index)
            planned, shortest = (
                np.stack([x[cases, r, c, o] for r, c, o in starts[index]]).astype(int)
                for x in (lengths, spl)
            )
            from_start, to_goal = np.unravel_index(planned.argmin(), planned.shape)
            case = cases[to_goal]
            first, last = _triple(starts[index][from_start]), _triple(all_goals[case])
            path = follow(policies[case], maps[case], first, last, mechanism=self.mechanism)
            return Plan(
                path=path,
                reached=_triple(path[-1]) == last,
                shortest=None if shortest.min() == UNREACHABLE else int(shortest.min()),
                start=first,
                goal=last,
                policy=policies[case],
                values=None if values is None else values[case],
            )

        return [plan(index) for index in range(len(maze))]

    def _on_walled_maps(
        self, maze: np.ndarray, goal: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Logits and values; maps with free cells at the edge get a wall around them."""
        open_edge = maze.any(axis=(1, 2)) & (maze[:, 1:-1, 1:-1].sum((1, 2)) < maze.sum((1, 2)))
        parts = []
        for margin in (0, 1):
            index = np.flatnonzero(open_edge == bool(margin))
            if not index.size:
                continue
            walled = np.pad(maze[index], ((0, 0), (margin, margin), (margin, margin)))
            output = self.policy(walled, goal[index] + np.array([[margin, margin, 0]]))
            rows, columns = (slice(margin, side - margin) for side in walled.shape[1:])
            inside = jax.tree.map(lambda x, r=rows, c=columns: np.asarray(x)[:, r, c], output)
            parts.append((index, inside))
        order = np.argsort(np.concatenate([index for index, _ in parts]))
        logits = np.concatenate([output.logits for _, output in parts])[order]
        if parts[0][1].value is None:
            return logits, None
        return logits, np.concatenate([output.value for _, output in parts])[order]

    def _states(self, name: str, state: Sequence[int], maze: np.ndarray) -> np.ndarray:
        """The state, or the states of all orientations where that is left out: `[k, 3]`."""
        numbers = tuple(int(x) for x in np.asarray(state).ravel())
        if len(numbers) not in (2, 3):
            raise ValueError(
                f"{name} is {state!r}, expected (row, column) or (row, column, orientation)"
            )
        orientations = self.mechanism.num_orientations
        every = range(orientations) if len(numbers) == 2 else numbers[2:]
        states = np.array([(*numbers[:2], orientation) for orientation in every])
        maps = np.repeat(maze[None], len(states), axis=0)
        if fault := find_fault(maps, states, num_orientations=orientations):
            raise ValueError(f"{name if fault[0] == 'goal' else 'the map'} {fault[1]}")
        return states


def save_planner(folder: str | pathlib.Path, planner: Planner) -> None:
    """Writes a planner to a folder; each of its files appears when it is complete."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / "weights.npz", planner.params)
    content = {
        "format": "hvin_jax planner",
        "version": VERSION,
        "mechanism": planner.mechanism.name,
        "model": planner.settings,
        "card": planner.card,
    }
    write_json(folder / "planner.json", content)


def load_planner(path: str | pathlib.Path = DEFAULT) -> Planner:
    """Loads a planner.

    Args:
      path: a folder with a `planner.json`, the folder of a training run, or the name of a planner
        that comes with the package; `shipped_planners()` lists those.

    Returns:
      The planner.
    """
    folder = _find(path)
    try:
        content = json.loads((folder / "planner.json").read_text())
        if content["version"] != VERSION:
            raise ValueError(
                f"it has version {content['version']}, this hvin_jax reads {VERSION}: update it"
            )
        params = read_weights(folder / "weights.npz")
        mechanism = get_mechanism(content["mechanism"])
        return Planner(content["model"], params, mechanism, content.get("card"))
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder} is not a sound planner: {error}") from error


def write_weights(path: pathlib.Path, params: Any) -> None:
    """Writes parameters, one array each; nested names are joined by "/"."""
    names = flatten_dict(params["params"], sep="/")
    write_npz(path, {name: np.asarray(x) for name, x in names.items()})


def read_weights(path: pathlib.Path) -> dict[str, Any]:
    """Reads what `write_weights` wrote."""
    with path.open("rb") as file, np.load(file) as arrays:
        weights = {name: jnp.asarray(arrays[name]) for name in arrays.files}
    return {"params": unflatten_dict(weights, sep="/")}


def shipped_planners() -> list[str]:
    """The names of the planners that come with the package."""
    return sorted(x.parent.name for x in SHIPPED.glob("*/planner.json"))


def shipped_planner_for(size: Sequence[int]) -> str:
    """The name of the planner to use on maps of a size.

    It is the one for the smallest maps that are as large as that, or for the largest.

    Args:
      size: height and width of the maps.
    """
    by_side = {int(name.rsplit("-", 1)[1]): name for name in shipped_planners()}
    large_enough = [side for side in by_side if side >= max(size)]
    return by_side[min(large_enough, default=max(by_side))]


def _find(path: str | pathlib.Path) -> pathlib.Path:
    for folder in (pathlib.Path(path), pathlib.Path(path) / "planner", SHIPPED / str(path)):
        if (folder / "planner.json").is_file():
            return folder
    raise ValueError(
        f"{path}: no planner there (a folder with planner.json, or one of a training run), and "
        f"none of that name comes with the package, which has: {', '.join(shipped_planners())}"
    )


def _check_params(model: Any, params: Any, mechanism: Mechanism) -> None:
    maze = jnp.zeros((1, 4, 4))
    goal = jnp.zeros((1, 4, 4, mechanism.num_orientations))
    wanted = jax.eval_shape(lambda: model.init(jax.random.key(0), maze, goal, train=False))
    shapes, expected = (
        {name: x.shape for name, x in flatten_dict(tree["params"], sep="/").items()}
        for tree in (params, wanted)
    )
    for name in sorted(shapes.keys() | expected.keys()):
        if shapes.get(name) != expected.get(name):
            raise ValueError(
                f"the parameters do not fit the model: {name} has shape "
                f"{shapes.get(name, '(absent)')}, expected {expected.get(name, '(absent)')}"
            )


def _triple(state: np.ndarray) -> tuple[int, int, int]:
    row, column, orientation = (int(x) for x in state)
    return row, column, orientation
