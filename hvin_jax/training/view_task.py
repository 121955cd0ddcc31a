"""The 3D task: planning on maps that are predicted from views."""

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import optax

from hvin_jax.models import PlannerOutput, settings_of
from hvin_jax.models._build import fields_of
from hvin_jax.models.highway import learned_temperatures
from hvin_jax.models.perception import (
    Perception,
    VisualModel,
    join_params,
    make_perception,
    part_params,
)
from hvin_jax.planner import Planner
from hvin_jax.planner_files import save_planner
from hvin_jax.tasks.doom import expand
from hvin_jax.tasks.doom.camera import VIEW_SHAPE
from hvin_jax.tasks.doom.view_data import ViewData
from hvin_jax.tasks.maze_data import goal_maps
from hvin_jax.training.devices import own_devices, split
from hvin_jax.training.maze_task import planner_arrays, training_arrays
from hvin_jax.training.objective import Batch
from hvin_jax.training.step import Forward, Params
from hvin_jax.training.task import Split, Task, digest_of_params
from hvin_jax.visual_planner import load_perception, save_perception

# How perception learns: from everything; from the map alone; not at all.
LEARNING = ("joint", "map", "frozen")
# Room for distinct views is measured on so many trial batches, and grows by steps of this ratio.
_TRIALS, _ROUND, _RATIO = 16, 64, 1.25


class ViewCollator:
    """Makes batches in which every view occurs once, on each device.

    The number of views that fit in a batch is fixed, since each number is compiled for anew: what
    most batches need, measured on a few. A batch with more gets more room.
    """

    def __init__(self, data: ViewData) -> None:
        """Keeps the tables of a data set."""
        self._columns, self._views = data.columns, data.views
        self._sample = max(data.index.values(), key=len)
        self._room: dict[int, int] = {}

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """From `[B, ...]` to what the devices of this process get.

        All processes make room for the same number of views, so each counts those of all devices.

        Args:
          batch: with `view_number` uint32 `[B, H, W, 4]`, views of the data set.

        Returns:
          All other arrays `[D, B / D, ...]`; `views` uint8 `[D, U, 24, 32, 3]`, and `view_index`
          int32 `[D, B / D, H, W, 4]` into them.
        """
        result = split(batch)
        numbers = result.pop("view_number")
        shares = split(batch, jax.device_count())["view_number"]
        found = [np.unique(share, return_inverse=True) for share in shares]
        room = self._room_for(numbers.shape[1], max(len(distinct) for distinct, _ in found))
        found = found[own_devices()]
        padded = np.zeros((len(found), room), numbers.dtype)
        for place, (distinct, _) in zip(padded, found, strict=True):
            place[: len(distinct)] = distinct
        result["views"] = expand(self._columns, self._views[padded])
        index = np.stack([inverse for _, inverse in found]).astype(np.int32)
        result["view_index"] = index.reshape(numbers.shape)
        return result

    def _room_for(self, mazes: int, needed: int) -> int:
        if mazes not in self._room:
            rng = np.random.default_rng(0)
            trials = rng.integers(len(self._sample), size=(_TRIALS, mazes))
            counts = [len(np.unique(self._sample[trial])) for trial in trials]
            usual = np.mean(counts) + 2 * np.std(counts)
            self._room[mazes] = _ROUND * math.ceil(usual / _ROUND)
        room = self._room[mazes]
        while room < needed:
            room = _ROUND * math.ceil(_RATIO * room / _ROUND)
        return room


def view_task(
    model: VisualModel,
    data: ViewData,
    *,
    learning: str = "joint",
    true_map_steps: int = 0,
    weights: Params | None = None,
    perception_weights: Params | None = None,
) -> Task:
    """Planning on maps that are predicted from views.

    Args:
      model: perception and planner.
      data: mazes and views.
      learning: how perception learns, see `view_forward`.
      true_map_steps: see `view_forward`.
      weights: parameters that the planner begins with, see `first_weights`; None: random ones.
      perception_weights: the same for perception, see `first_perception`.

    Returns:
      The task.
    """
    mechanism = data.mazes.mechanism
    planner_settings = settings_of(model.planner)
    perception_settings = fields_of(model.perception)
    goal = (*data.mazes.train.size, mechanism.num_orientations)

    def init(key: jax.Array) -> Params:
        params = model.init_params(key, VIEW_SHAPE, goal)
        return join_params(
            part_params(params, "perception") if perception_weights is None else perception_weights,
            part_params(params, "planner") if weights is None else weights,
        )

    jax.eval_shape(init, jax.random.key(0))  # impossible settings show here

    def save(folder: pathlib.Path, params: Params, card: Mapping[str, Any]) -> None:
        planner = Planner(planner_settings, part_params(params, "planner"), mechanism, card)
        save_planner(folder / "planner", planner)
        seen = part_params(params, "perception")
        save_perception(folder / "perception", perception_settings, seen, card)

    return Task(
        model={**planner_settings, "perception": perception_settings},
        forward=view_forward(model, learning=learning, true_map_steps=true_map_steps),
        init=init,
        train={**training_arrays(data.mazes.train), "view_number": data.index["train"]},
        valid=view_split(data, "valid"),
        test=view_split(data, "test"),
        save=save,
        collate=ViewCollator(data),
        adapt=freeze_perception if learning == "frozen" else lambda optimizer: optimizer,
        noted=lambda params: learned_temperatures(model.planner, part_params(params, "planner")),
        known_by={
            "learning": learning,
            "true_map_steps": true_map_steps,
            "weights": digest_of_params(weights),
            "perception_weights": digest_of_params(perception_weights),
        },
    )


def first_perception(source: str, perception: Perception) -> Params | None:
    """The parameters of the perception of a run, "" for none, if it is the same kind."""
    if not source:
        return None
    settings, params = load_perception(source)
    if make_perception(settings) != perception:
        own = fields_of(perception)
        raise ValueError(f"the perception of {source} has settings {settings}, not {own}")
    return params


def view_split(data: ViewData, name: str) -> Split:
    """Mazes as a visual planner looks at them."""
    mazes = getattr(data.mazes, name)
    return Split(mazes, {**planner_arrays(mazes), "view_number": data.index[name]})


def check_learning(learning: str) -> None:
    """Raises if perception can't learn in that way."""
    if learning not in LEARNING:
        raise ValueError(f"perception learns {learning!r}, expected one of {', '.join(LEARNING)}")


def view_forward(
    model: VisualModel, *, learning: str = "joint", true_map_steps: int = 0
) -> Forward:
    """Applies a visual planner to batches of views.

    Args:
      model: the model.
      learning: "joint": perception learns from the map and from the policy; "map": from the map
        alone; "frozen": not at all.
      true_map_steps: for so many steps the planner trains on the real maps, while perception learns
        to predict them.

    Returns:
      The function; it reads what `ViewCollator` makes.
    """
    check_learning(learning)
    if true_map_steps < 0:
        raise ValueError(f"true_map_steps is {true_map_steps}, expected 0 or more")

    def forward(
        params: Params,
        batch: Batch,
        *,
        key: jax.Array | None = None,
        example_index: jax.Array | None = None,
        step: jax.Array | None = None,
        **options: Any,
    ) -> PlannerOutput:
        if learning == "frozen":
            params = _replaced(params, jax.lax.stop_gradient)
        index = batch["view_index"]
        is_given = None if step is None or not true_map_steps else step < true_map_steps
        output: PlannerOutput = model.apply(  # type: ignore[assignment]
            params,
            batch["views"],
            index,
            goal_maps(
                batch["goal"],
                size=index.shape[1:3],
                num_orientations=model.planner.num_orientations,
            ),
            train=key is not None,
            given_map=None if is_given is None else batch["maze"],
            is_given=is_given,
            learn_map_from_policy=learning == "joint",
            example_index=example_index,
            rngs=None if key is None else {"exploration": key},
            **options,
        )
        return output

    return forward


def freeze_perception(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    """The optimiser, but perception stays as it is, whatever the optimiser does (decay, say)."""

    def update(grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        updates, state = optimizer.update(grads, state, params)
        return _replaced(updates, jax.numpy.zeros_like), state

    return optax.GradientTransformation(optimizer.init, update)


def _replaced(params: Params, change: Any) -> Params:
    """Parameters, with those of perception changed."""
    parts = params["params"]
    return {"params": {**parts, "perception": jax.tree.map(change, parts["perception"])}}
