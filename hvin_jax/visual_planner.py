"""A trained planner that sees: `load_visual_planner(run).decide(views, index, goal)`.

The folder of a run from views has two parts. `planner/` is a planner like any other, which plans on
maps (`hvin_jax.load_planner`). `perception/` is what makes a map of views:

    perception.json   its settings and where it comes from
    weights.npz       its parameters, see `hvin_jax._saved`
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax._saved import load_folder, save_folder
from hvin_jax.models.perception import VisualModel, join_params, make_perception
from hvin_jax.planner import Planner, load_planner
from hvin_jax.tasks.doom.camera import VIEW_SHAPE
from hvin_jax.tasks.maze_data import goal_maps

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
    """Settings and parameters of the perception of a run, or in a folder of its own."""
    folder = pathlib.Path(path)
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
      free: float32 `[H, W]`, the probability that a cell is free.
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

    def decide(self, views: np.ndarray, index: np.ndarray, goal: tuple[int, int, int]) -> Decision:
        """Predicts the map of a maze and plans on it.

        Args:
          views: uint8 `[U, 24, 32, 3]`, distinct pictures.
          index: `[H, W, 4]`, for each cell and direction (N, E, W, S) one of `views`.
          goal: (row, column, orientation).

        Returns:
          The decision.
        """
        orientations = self.planner.mechanism.num_orientations
        goals = goal_maps(
            np.array([goal], np.int32), size=index.shape[:2], num_orientations=orientations
        )
        views = np.pad(np.asarray(views, np.uint8), ((0, -len(views) % _ROUND), *3 * [(0, 0)]))
        free, policy = _decide(
            self.model, self.params, views, np.asarray(index, np.int32)[None], goals
        )
        return Decision(np.asarray(free), np.asarray(policy))


@functools.partial(jax.jit, static_argnames="model")
def _decide(
    model: VisualModel, params: Any, views: jax.Array, index: jax.Array, goal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Of one maze, the probability that a cell is free and the likeliest actions."""
    output: Any = model.apply(params, views, index, goal, train=False)
    policy = output.logits[0].argmax(-1).astype(jnp.uint8)
    return jax.nn.sigmoid(output.map_logits[0]), policy


def load_visual_planner(path: str | pathlib.Path) -> VisualPlanner:
    """Loads the visual planner of a finished run."""
    settings, perception = load_perception(path)
    return VisualPlanner(settings, perception, load_planner(path))
