"""From first-person views to a map, and from there to a plan."""

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hvin_jax._memory import check_memory
from hvin_jax.models._build import build
from hvin_jax.models._layers import PlannerOutput
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._products import precision


class Perception(nn.Module):
    """Predicts the map of a maze from the views at each of its cells.

    A small CNN sees each view by itself; the features of a cell's views, joined, are convolved over
    the grid. Views that occur more than once go through the CNN once.

    Attributes:
      channels: of the two convolutions of a view, whose windows of 4×4 and 2×2 do not overlap.
      features: of a view.
      hidden: channels of the convolution over the grid.
    """

    channels: tuple[int, int] = (32, 64)
    features: int = 64
    hidden: int = 64

    @nn.compact
    def __call__(self, views: jax.Array, index: jax.Array) -> jax.Array:
        """Predicts maps.

        Args:
          views: uint8 `[U, height, width, 3]`, distinct pictures; sides are multiples of 8.
          index: int32 `[B, H, W, 4]`, for each cell and direction one of `views`.

        Returns:
          `[B, H, W]`, the log-odds that a cell is free.
        """
        checks.check_rank("views", views, 4, "[U, height, width, 3]")
        checks.check_rank("index", index, 4, "[B, H, W, 4]")
        if views.shape[1] % 8 or views.shape[2] % 8:
            raise ValueError(f"views have {views.shape[1:3]} pixels, expected multiples of 8.")
        for name in ("features", "hidden"):
            checks.check_at_least(name, getattr(self, name), 1)
        first, second = self.channels
        dense = partial(nn.Dense, precision=precision())
        conv = partial(nn.Conv, kernel_size=(3, 3), precision=precision())
        x = _patches_of_patches(views).astype(jnp.float32) / 127.5 - 1.0
        x = nn.relu(dense(first, name="view_conv1")(x)).reshape(-1, 4 * first)
        x = nn.relu(dense(second, name="view_conv2")(x)).reshape(len(views), -1)
        x = nn.relu(dense(self.features, name="view_dense")(x))
        cells = x[index].reshape(*index.shape[:3], index.shape[3] * self.features)
        cells = nn.relu(conv(self.hidden, name="grid_conv1")(cells))
        return conv(1, name="grid_conv2")(cells)[..., 0]


class VisualModel(nn.Module):
    """Perception, and a planner that takes the predicted map for the real one.

    Attributes:
      perception: predicts the map.
      planner: any module of `hvin_jax.models` that plans on maps.
    """

    perception: Perception
    planner: Any

    def __call__(
        self,
        views: jax.Array,
        index: jax.Array,
        goal: jax.Array,
        *,
        train: bool,
        given_map: jax.Array | None = None,
        is_given: jax.Array | None = None,
        learn_map_from_policy: bool = True,
        example_index: jax.Array | None = None,
        **options: Any,
    ) -> PlannerOutput:
        """Plans on what it sees.

        Args:
          views: uint8 `[U, height, width, 3]`, distinct pictures.
          index: int32 `[B, H, W, 4]`, for each cell and direction one of `views`.
          goal: `[B, H, W, O]`, 1 at the goal.
          train: whether to explore.
          given_map: `[B, H, W]`, 1 = free: the real map, for the beginning of a training.
          is_given: bool scalar, whether the planner gets `given_map` instead of the predicted one.
          learn_map_from_policy: whether the gradient of what the planner does reaches perception.
          example_index: `[B]`, global indices of the examples, from which their noise is made.
          **options: further arguments of the planner, such as `diagnostics`.

        Returns:
          A `PlannerOutput` with `map_logits`.
        """
        map_logits = self.perception(views, index)
        # Learning needs degrees; in use a cell is free or it is not.
        free = nn.sigmoid(map_logits) if train else (map_logits > 0).astype(map_logits.dtype)
        if not learn_map_from_policy:
            free = jax.lax.stop_gradient(free)
        if given_map is not None and is_given is not None:
            free = jnp.where(is_given, given_map.astype(free.dtype), free)
        output = self.planner(free, goal, train=train, example_index=example_index, **options)
        return dataclasses.replace(output, map_logits=map_logits)

    def init_params(self, key: jax.Array, view: tuple[int, ...], goal: tuple[int, ...]) -> Any:
        """Parameters for views of a shape `[height, width, 3]` and goals `[H, W, O]`."""
        index = jnp.zeros((1, *goal[:2], 4), jnp.int32)
        init = jax.jit(partial(self.init, train=False))
        return init(key, jnp.zeros((1, *view), jnp.uint8), index, jnp.zeros((1, *goal)))


def make_perception(settings: Mapping[str, Any]) -> Perception:
    """The module with these settings; a name that it does not have is an error."""
    perception = build(Perception, settings, name="perception")
    if not isinstance(perception.channels, tuple) or len(perception.channels) != 2:
        raise ValueError(f"channels must be two numbers, got {perception.channels!r}.")
    numbers = (*perception.channels, perception.features, perception.hidden)
    for number in numbers:
        checks.check_at_least("each of channels, features and hidden", number, 1)
    check_memory(4 * max(numbers), "the parameters of the perception")
    return perception


def part_params(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The parameters of a part of a `VisualModel`, "perception" or "planner", for its own use."""
    return {"params": params["params"][name]}


def join_params(perception: Mapping[str, Any], planner: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a `VisualModel` from those of its parts."""
    return {"params": {"perception": perception["params"], "planner": planner["params"]}}


def _patches_of_patches(views: jax.Array) -> jax.Array:
    """The 4×4 windows of views as rows `[U · height · width / 16, 48]`, by 8×8 windows.

    A dense layer over them is a convolution with a stride of 4, and one over four rows at a time a
    convolution with a stride of 2 on top, without moving anything but bytes, once.
    """
    count, height, width, channels = views.shape
    x = views.reshape(count, height // 8, 2, 4, width // 8, 2, 4, channels)
    return x.transpose(0, 1, 4, 2, 5, 3, 6, 7).reshape(-1, 16 * channels)
