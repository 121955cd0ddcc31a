"""What is special about training from views: batches of distinct views, and which parts learn."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import optax

from hvin_jax.models import PlannerOutput
from hvin_jax.models.perception import VisualModel
from hvin_jax.tasks.doom import expand
from hvin_jax.tasks.doom.view_data import ViewData
from hvin_jax.tasks.maze_data import goal_maps
from hvin_jax.training.devices import own_devices, split
from hvin_jax.training.evaluation import planner_arrays, training_arrays
from hvin_jax.training.objective import Batch
from hvin_jax.training.state import Params
from hvin_jax.training.step import Forward

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


def view_arrays(data: ViewData, name: str, *, labels: bool) -> dict[str, np.ndarray]:
    """The arrays of a split; with `labels`, those that training needs besides."""
    mazes = getattr(data.mazes, name)
    arrays = training_arrays(mazes) if labels else planner_arrays(mazes)
    return {**arrays, "view_number": data.index[name]}


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
    if learning not in LEARNING:
        raise ValueError(f"perception learns {learning!r}, expected one of {', '.join(LEARNING)}")
    if true_map_steps < 0:
        raise ValueError(f"true_map_steps is {true_map_steps}, expected 0 or more")

    def forward(
        params: Params,
        batch: Batch,
        *,
        key: jax.Array | None = None,
        example_index: jax.Array | None = None,
        step: jax.Array | None = None,
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
