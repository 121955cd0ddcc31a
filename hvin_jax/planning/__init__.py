"""Planning as pure functions: MDPs, operators, embedded policies, gates, highway VI.

All that is public is here; `MDP`, `Policy` and `Gate` say what a type or function of your own must
offer, `FastMDP`, `SharingMDP` and `SharedMDP` what it may add for speed.
"""

from hvin_jax.planning.conv import ConvMDP
from hvin_jax.planning.dynamic import DynamicConvMDP, places_around
from hvin_jax.planning.gates import Gate, smax
from hvin_jax.planning.highway import highway_vi
from hvin_jax.planning.mdp import MDP, FastMDP, SharedMDP, SharingMDP
from hvin_jax.planning.operator import highway_operator
from hvin_jax.planning.policies import Policy
from hvin_jax.planning.settling import until_settled
from hvin_jax.planning.tabular import TabularMDP, bellman_expectation, bellman_optimality
from hvin_jax.planning.value_iteration import PlanOutput, value_iteration

__all__ = [
    "MDP",
    "ConvMDP",
    "DynamicConvMDP",
    "FastMDP",
    "Gate",
    "PlanOutput",
    "Policy",
    "SharedMDP",
    "SharingMDP",
    "TabularMDP",
    "bellman_expectation",
    "bellman_optimality",
    "highway_operator",
    "highway_vi",
    "places_around",
    "smax",
    "until_settled",
    "value_iteration",
]
