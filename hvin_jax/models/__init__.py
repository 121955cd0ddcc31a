"""The four planners of the paper as Flax modules, with one call signature."""

import dataclasses
import difflib
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hvin_jax.models.gppn import GPPN
from hvin_jax.models.highway import HighwayNetwork, HighwayVIN
from hvin_jax.models.layers import PlannerOutput
from hvin_jax.models.vin import VIN

__all__ = [
    "GPPN",
    "MODELS",
    "VIN",
    "HighwayNetwork",
    "HighwayVIN",
    "PlannerOutput",
    "default_settings",
    "init_params",
    "make_model",
    "settings_of",
]

# What configurations and files call them.
MODELS: dict[str, type[nn.Module]] = {
    "vin": VIN,
    "gppn": GPPN,
    "highway_network": HighwayNetwork,
    "highway_vin": HighwayVIN,
}

# Fields that every Flax module has.
_INHERITED = {"parent", "name"}


def make_model(kind: str, **settings: Any) -> Any:
    """The model of that kind.

    Args:
      kind: one of `MODELS`.
      **settings: its fields; a name that the model does not have is an error.

    Returns:
      A Flax module.
    """
    if kind not in MODELS:
        raise ValueError(f"unknown model {kind!r}: expected one of {', '.join(MODELS)}")
    known = {field.name for field in dataclasses.fields(MODELS[kind])} - _INHERITED
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"a {kind} has no setting {name!r}{hint}")
    return MODELS[kind](**settings)


def default_settings(kind: str) -> dict[str, Any]:
    """All fields of the model of that kind, with their defaults."""
    fields = dataclasses.fields(MODELS[kind])
    return {field.name: field.default for field in fields if field.name not in _INHERITED}


def settings_of(model: nn.Module) -> dict[str, Any]:
    """What `make_model` makes the same model of: `kind` and all fields."""
    kinds = [kind for kind, made in MODELS.items() if made is type(model)]
    if not kinds:
        raise ValueError(
            f"{type(model).__name__} is not in hvin_jax.models.MODELS; put it there under a name, "
            "by which its planners are saved and loaded"
        )
    names = [field.name for field in dataclasses.fields(model) if field.name not in _INHERITED]
    return {"kind": kinds[0], **{name: getattr(model, name) for name in names}}


def init_params(model: Any, key: jax.Array, size: tuple[int, int] = (4, 4)) -> Any:
    """Parameters of a planner; they do not depend on the size of the maps."""
    maze = jnp.zeros((1, *size))
    return model.init(key, maze, jnp.zeros((*maze.shape, model.num_orientations)), train=False)
