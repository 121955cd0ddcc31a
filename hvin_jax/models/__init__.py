"""The four planners of the paper as Flax modules, with one call signature."""

import dataclasses
import difflib
from typing import Any

from flax import linen as nn

from hvin_jax.models._layers import PlannerOutput
from hvin_jax.models.gppn import GPPN
from hvin_jax.models.highway import HighwayNetwork, HighwayVIN
from hvin_jax.models.latent_planner import LatentPlanner, PlannerCall
from hvin_jax.models.vin import VIN

__all__ = [
    "GPPN",
    "MODELS",
    "VIN",
    "HighwayNetwork",
    "HighwayVIN",
    "LatentPlanner",
    "PlannerCall",
    "PlannerOutput",
    "make_model",
]

# What configurations and files call them.
MODELS: dict[str, type[nn.Module]] = {
    "vin": VIN,
    "gppn": GPPN,
    "highway_network": HighwayNetwork,
    "highway_vin": HighwayVIN,
}


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
    inherited = {"parent", "name"}
    known = {field.name for field in dataclasses.fields(MODELS[kind])} - inherited
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"a {kind} has no setting {name!r}{hint}")
    return MODELS[kind](**settings)
