"""A trained planner that sees: `load_visual_planner(run).decide(views, index, goal)`.

The folder of a run from views has two parts. `planner/` is a planner like any other, which plans on
maps (`hvin_jax.load_planner`). `perception/` is what makes a map of views:

    perception.json   its settings and where it comes from
    weights.npz       its parameters
"""

import dataclasses
import difflib
import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax._files import write_json
from hvin_jax.models.perception import Perception, VisualPlanner, join_params
from hvin_jax.planner import Planner, load_planner, read_weights, write_weights
from hvin_jax.tasks.maze_data import goal_map

VERSION = 1


def make_perception(settings: Mapping[str, Any]) -> Perception:
    """The module with these settings; a name that it does not have is an error."""
    known = {field.name for field in dataclasses.fields(Perception)} - {"parent", "name"}
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"perception has no setting {name!r}{hint}")
    lists = {name: tuple(x) for name, x in settings.items() if isinstance(x, list | tuple)}
    return Perception(**{**settings, **lists})


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
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / "weights.npz", params)
    content = {
        "format": "hvin_jax perception",
        "version": VERSION,
        "settings": dict(settings),
        "card": dict(card),
    }
    write_json(folder / "perception.json", content)


def load_perception(path: str | pathlib.Path) -> tuple[dict[str, Any], Any]:
    """Settings and parameters of the perception of a run, or in a folder of its own."""
    folder = pathlib.Path(path)
    if (folder / "perception").is_dir():
        folder = folder / "perception"
    if not (folder / "perception.json").is_file():
        raise ValueError(f"{path}: no perception there, expected the folder of a run from views")
    try:
        content = json.loads((folder / "perception.json").read_text())
        if content["version"] != VERSION:
            raise ValueError(
                f"it has version {content['version']}, this hvin_jax reads {VERSION}: update it"
            )
        return content["settings"], read_weights(folder / "weights.npz")
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{folder} is not a sound perception: {error}") from error


@dataclasses.dataclass(frozen=True)
class Decision:
    """What a visual planner makes of one maze.

    Attributes:
      free: float32 `[H, W]`, the probability that a cell is free.
      policy: uint8 `[H, W, O]`, the action in every state.
    """

    free: np.ndarray
    policy: np.ndarray


class SeeingPlanner:
    """A trained visual planner.

    Attributes:
      model: the Flax module.
      params: its parameters.
      planner: the part that plans on maps.
    """

    def __init__(self, settings: Mapping[str, Any], perception: Any, planner: Planner) -> None:
        """Puts perception and planner together."""
        self.planner = planner
        self.model = VisualPlanner(make_perception(settings), planner.model)
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
        size = (index.shape[0], index.shape[1])
        orientations = self.planner.mechanism.num_orientations
        goals = goal_map(np.array([goal]), size=size, num_orientations=orientations)
        output: Any = self.model.apply(
            self.params,
            jnp.asarray(views),
            jnp.asarray(index[None], jnp.int32),
            jnp.asarray(goals),
            train=False,
        )
        free = jax.nn.sigmoid(output.map_logits[0])
        policy = output.logits[0].argmax(-1).astype(jnp.uint8)
        return Decision(np.asarray(free), np.asarray(policy))


def load_visual_planner(path: str | pathlib.Path) -> SeeingPlanner:
    """Loads the visual planner of a finished run."""
    settings, perception = load_perception(path)
    return SeeingPlanner(settings, perception, load_planner(path))
