"""Highway value iteration networks in JAX and Flax."""

from hvin_jax import models
from hvin_jax.planning import (
    MDP,
    ConvMDP,
    Gate,
    PlanOutput,
    Policy,
    TabularMDP,
    bellman_expectation,
    bellman_optimality,
    highway_operator,
    highway_vi,
    smax,
    value_iteration,
)

__version__ = "0.1.0"

__all__ = [
    "MDP",
    "ConvMDP",
    "Gate",
    "PlanOutput",
    "Policy",
    "TabularMDP",
    "bellman_expectation",
    "bellman_optimality",
    "highway_operator",
    "highway_vi",
    "models",
    "smax",
    "value_iteration",
]
