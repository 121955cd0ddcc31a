"""The four planners of the paper as Flax modules, with one call signature, and perception."""

from typing import Any

from flax import linen as nn

from hvin_jax.models._build import build
from hvin_jax.models.gppn import GPPN
from hvin_jax.models.highway import HighwayNetwork, HighwayVIN
from hvin_jax.models.layers import PlannerOutput
from hvin_jax.models.perception import Perception, VisualModel, make_perception
from hvin_jax.models.vin import VIN

__all__ = [
    "GPPN",
    "MODELS",
    "VIN",
    "HighwayNetwork",
    "HighwayVIN",
    "Perception",
    "PlannerOutput",
    "VisualModel",
    "make_model",
    "make_perception",
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
    return build(MODELS[kind], settings, name=f"a {kind}")
