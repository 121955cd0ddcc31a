"""Highway value iteration networks in JAX and Flax."""

from hvin_jax import models, tasks
from hvin_jax._version import __version__
from hvin_jax.plan import Plan
from hvin_jax.planner import Planner, UnmeasuredWarning
from hvin_jax.planner_files import load_planner, save_planner, shipped_planner_for, shipped_planners
from hvin_jax.planning import (
    MDP,
    ConvMDP,
    DynamicConvMDP,
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
from hvin_jax.thought import Thought
from hvin_jax.visual_planner import VisualPlanner, load_visual_planner

__all__ = [
    "MDP",
    "ConvMDP",
    "DynamicConvMDP",
    "Gate",
    "Plan",
    "PlanOutput",
    "Planner",
    "Policy",
    "TabularMDP",
    "Thought",
    "UnmeasuredWarning",
    "VisualPlanner",
    "__version__",
    "bellman_expectation",
    "bellman_optimality",
    "highway_operator",
    "highway_vi",
    "load_planner",
    "load_visual_planner",
    "models",
    "save_planner",
    "shipped_planner_for",
    "shipped_planners",
    "smax",
    "tasks",
    "value_iteration",
]
