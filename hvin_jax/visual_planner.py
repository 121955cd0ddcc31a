"""A trained planner that sees: `load_visual_planner().plan(views, index, goal, start)`.

Perception makes a map of views, and a planner like any other (`hvin_jax.load_planner`) plans on it.
The folder of a run from views has both, `perception/` and `planner/`:

    perception.json   settings of the perception and where it comes from
    weights.npz       its parameters, see `hvin_jax._saved`

The package comes with a perception, which was trained on levels of 15×15 cells and sees those of
any size, and with planners for all maps.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from hvin_jax._saved import load_folder, save_folder
from hvin_jax.models.perception import (
    Perception,
    VisualModel,
    join_params,
    make_perception,
    part_params,
)
from hvin_jax.plan import Plan
from hvin_jax.planner import Planner
from hvin_jax.planner_files import SHIPPED, load_planner
from hvin_jax.tasks.doom.camera import VIEW_SHAPE

# The perception that comes with the package; its planner is the one for all maps.
VIEWS = "views"
# Views are padded to a multiple of this many, so that most mazes share what is compiled.
_ROUND = 64


def save_perception(
    folder: pathlib.Path, settings: Mapping[str, Any], params: Any, card: Mapping[str, Any]
) -> None:
    """Writes a perception to a folder.

    Args:
      folder: where to.
      settings: the fields of the module.
      params: its parameters.
      card: what is known about it.
    """
    content = {"settings": dict(settings), "card": dict(card)}
    save_folder(folder, "perception", params, content)


def load_perception(path: str | pathlib.Path) -> tuple[dict[str, Any], Any]:
    """Settings and parameters of the perception of a run, or in a folder of its own.

    Args:
      path: the folder, or "views" for the one that comes with the package.
    """
    folder = SHIPPED / VIEWS if str(path) == VIEWS else pathlib.Path(path)
    if (folder / "perception").is_dir():
        folder = folder / "perception"
    if not (folder / "perception.json").is_file():
        raise ValueError(f"{path}: no perception there, expected the folder of a run from views")

    def expect(content: dict[str, Any]) -> Any:
        if not isinstance(content["settings"], dict):
            raise ValueError(f"its settings are {content['settings']!r}, expected a JSON object")
        perception = make_perception(content["settings"])
        views, index = np.zeros((1, *VIEW_SHAPE), np.uint8), np.zeros((1, 1, 1, 4), np.int32)
        return jax.eval_shape(lambda: perception.init(jax.random.key(0), views, index))

    return load_folder(
        folder, "perception", expect, lambda content, params: (content["settings"], params)
    )


@dataclasses.dataclass(frozen=True)
class Decision:
    """What a visual planner makes of one maze.

    Attributes:
      free: float32 `[H, W]`, how probable it is that a cell is free.
      policy: uint8 `[H, W, O]`, the action in every state.
    """

    free: np.ndarray
    policy: np.ndarray


class VisualPlanner:
    """A trained visual planner.

    Attributes:
      model: the Flax module.
      params: its parameters.
      planner: the part that plans on maps.
    """

    def __init__(self, settings: Mapping[str, Any], perception: Any, planner: Planner) -> None:
        """Puts perception and planner together."""
        self.planner = planner
        self.model = VisualModel(make_perception(settings), planner.model)
        self.params = join_params(perception, planner.params)

    def __repr__(self) -> str:
        return f"VisualPlanner({self.planner!r})"

    def see(self, views: np.ndarray, index: np.ndarray) -> np.ndarray:
        """The map of a maze: float32 `[H, W]`, how probable it is that a cell is free.

        Args:
          views: uint8 `[U, 24, 32, 3]`, distinct pictures.
          index: `[H, W, 4]`, for each cell and direction (N, E, W, S) one of `views`.
        """
        views, index = _checked(views, index)
        views = np.pad(views, ((0, -len(views) % _ROUND), *3 * [(0, 0)]))
        parts = self.model.perception, part_params(self.params, "perception")
        return np.asarray(_see(*parts, views, index[None]))[0]

    def decide(self, views: np.ndarray, index: np.ndarray, goal: tuple[int, int, int]) -> Decision:
        """What to do in every state of a maze that is seen.

        Args:
          views: as for `see`.
          index: as for `see`.
          goal: (row, column, orientation).
        """
        free = self.see(views, index)
        states = (*free.shape, self.planner.mechanism.num_orientations)
        if np.shape(goal) != (3,) or not all(0 <= x < n for x, n in zip(goal, states, strict=True)):
            raise ValueError(f"the goal {goal} is no (row, column, orientation) below {states}.")
        seen = free > 0.5
        seen[goal[0], goal[1]] = True  # whatever it looks like, one can be there
        output = self.planner.policy(seen[None], np.array([goal]))
        return Decision(free, np.asarray(output.logits[0]).argmax(-1).astype(np.uint8))

    def plan(
        self, views: np.ndarray, index: np.ndarray, goal: Any, start: Any, **options: Any
    ) -> Plan:
        """A path through a maze that is seen.

        Args:
          views: as for `see`.
          index: as for `see`.
          goal: as for `Planner.plan`.
          start: likewise.
          **options: further arguments of `Planner.plan`, such as `layers`.

        Returns:
          The plan on the map as it is seen, `see(views, index) > 0.5`.
        """
        return self.planner.plan(self.see(views, index) > 0.5, goal, start, **options)


def _checked(views: Any, index: Any) -> tuple[np.ndarray, np.ndarray]:
    """The arrays, if they are views of a maze."""
    views, index = np.asarray(views), np.asarray(index)
    if views.ndim != 4 or views.shape[1:] != VIEW_SHAPE or views.dtype != np.uint8:
        raise ValueError(
            f"views must be uint8 [U, {', '.join(map(str, VIEW_SHAPE))}], got {views.dtype} "
            f"{list(views.shape)}."
        )
    if index.ndim != 3 or index.shape[2] != 4 or not index.size:
        raise ValueError(f"index must have shape [H, W, 4], got {list(index.shape)}.")
    if not np.issubdtype(index.dtype, np.integer):
        raise TypeError(f"index must hold integers, got {index.dtype}.")
    if index.min() < 0 or index.max() >= len(views):
        raise ValueError(
            f"index has numbers from {index.min()} to {index.max()}, but there are {len(views)} "
            "views."
        )
    return views, index.astype(np.int32)


@functools.partial(jax.jit, static_argnums=0)
def _see(perception: Perception, params: Any, views: jax.Array, index: jax.Array) -> jax.Array:
    """The probability that a cell is free, `[B, H, W]`."""
    log_odds: Any = perception.apply(params, views, index)
    return jax.nn.sigmoid(log_odds)


def load_visual_planner(
    path: str | pathlib.Path = VIEWS, *, planner: Planner | str | pathlib.Path | None = None
) -> VisualPlanner:
    """Loads a planner that sees.

    Args:
      path: the folder of a finished run from views; by default the perception that comes with the
        package.
      planner: what plans on the maps that are seen, a planner or what `load_planner` takes. By
        default that of the run, or the one for all maps.
    """
    settings, perception = load_perception(path)
    if planner is None:
        planner = load_planner() if str(path) == VIEWS else load_planner(path)
    elif not isinstance(planner, Planner):
        planner = load_planner(planner)
    return VisualPlanner(settings, perception, planner)
