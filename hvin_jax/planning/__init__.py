"""Planning as pure functions: MDPs, operators, embedded policies, gates, highway VI."""

from hvin_jax.planning.conv import ConvMDP
from hvin_jax.planning.gates import Gate, smax
from hvin_jax.planning.highway import highway_vi
from hvin_jax.planning.mdp import MDP
from hvin_jax.planning.operator import highway_operator
from hvin_jax.planning.policies import Policy
from hvin_jax.planning.tabular import TabularMDP, bellman_expectation, bellman_optimality
from hvin_jax.planning.value_iteration import PlanOutput, value_iteration

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
    "smax",
    "value_iteration",
]
