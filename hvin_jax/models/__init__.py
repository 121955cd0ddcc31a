"""Planners as Flax modules with one call signature, the four of the paper first; perception."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from hvin_jax.models._build import build, fields_of
from hvin_jax.models._layers import LayerPolicies, PlannerOutput
from hvin_jax.models._size import check_size
from hvin_jax.models.dynamic_kernels import DynamicKernels
from hvin_jax.models.gppn import GPPN
from hvin_jax.models.highway import HighwayDTVIN, HighwayNetwork, HighwayVIN
from hvin_jax.models.latent_planner import LatentPlanner, PlannerCall
from hvin_jax.models.perception import Perception, VisualModel, make_perception
from hvin_jax.models.shared_kernels import SharedKernels
from hvin_jax.models.vin import DTVIN, VIN

__all__ = [
    "DTVIN",
    "GPPN",
    "MODELS",
    "VIN",
    "DynamicKernels",
    "HighwayDTVIN",
    "HighwayNetwork",
    "HighwayVIN",
    "LatentPlanner",
    "LayerPolicies",
    "Perception",
    "PlannerCall",
    "PlannerOutput",
    "SharedKernels",
    "VisualModel",
    "default_settings",
    "init_params",
    "make_model",
    "make_perception",
    "settings_of",
]

# What configurations and files call them.
MODELS: dict[str, type[nn.Module]] = {
    "vin": VIN,
    "gppn": GPPN,
    "highway_network": HighwayNetwork,
    "highway_vin": HighwayVIN,
    "dtvin": DTVIN,
    "highway_dtvin": HighwayDTVIN,
}


def make_model(kind: str, **settings: Any) -> Any:
    """The model of that kind.

    Args:
      kind: one of `MODELS`.
      **settings: its fields; a name that the model does not have is an error.

    Returns:
      A Flax module.
    """
    if not isinstance(kind, str) or kind not in MODELS:
        raise ValueError(f"unknown model {kind!r}: expected one of {', '.join(MODELS)}")
    model = build(MODELS[kind], settings, name=f"a {kind}")
    check_size(model)
    return model


def default_settings(kind: str) -> dict[str, Any]:
    """All fields of the model of that kind, with their defaults."""
    return fields_of(make_model(kind))


def settings_of(model: nn.Module) -> dict[str, Any]:
    """What `make_model` makes the same model of: `kind` and all fields."""
    kinds = [kind for kind, made in MODELS.items() if made is type(model)]
    if not kinds:
        raise ValueError(
            f"{type(model).__name__} is not in hvin_jax.models.MODELS; put it there under a name, "
            "by which its planners are saved and loaded"
        )
    return {"kind": kinds[0], **fields_of(model)}


def init_params(model: Any, key: jax.Array, size: tuple[int, int] = (4, 4)) -> Any:
    """Parameters of a planner; they do not depend on the size of the maps."""
    maze = jnp.zeros((1, *size), jnp.float32)
    goal = jnp.zeros((*maze.shape, model.num_orientations), jnp.float32)
    return _init(model, key, maze, goal)


@partial(jax.jit, static_argnums=0)
def _init(model: Any, *args: Any) -> Any:
    """Compiled, so that only what draws the parameters is run, not the plan."""
    return model.init(*args, train=False)
