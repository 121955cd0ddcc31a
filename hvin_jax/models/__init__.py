"""The four planners of the paper as Flax modules, with one call signature."""

from hvin_jax.models.gppn import GPPN
from hvin_jax.models.highway import HighwayNetwork, HighwayVIN
from hvin_jax.models.layers import PlannerOutput
from hvin_jax.models.vin import VIN

__all__ = ["GPPN", "VIN", "HighwayNetwork", "HighwayVIN", "PlannerOutput"]
