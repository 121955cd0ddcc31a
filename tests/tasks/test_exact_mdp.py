"""Planning in the MDP that a map is finds the cheapest paths."""

import jax
import numpy as np
import pytest
from test_cheapest_paths import ALL, ROOK, maps_with_goals

from hvin_jax.planning import highway_vi, value_iteration
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.exact_mdp import conv_mdp, tabular_mdp


@pytest.mark.parametrize("name", ALL)
def test_values_are_the_costs_of_cheapest_paths(name):
    mechanism = ALL[name]
    maze, goal, cost = maps_with_goals(3, (5, 4), mechanism, seed=2, goals=2)
    distance, spl, _ = cheapest_paths(maze, goal, cost, mechanism=mechanism)
    reachable = np.isfinite(distance)
    depth = int(spl[reachable].max()) + 1
    for index in range(3):
        mdp = tabular_mdp(maze[index], goal[index], mechanism=mechanism, cost=cost[index])
        start = np.where(spl[index] == 0, 0, -1e4).astype(np.float32)
        value = value_iteration(mdp, num_iterations=depth, v0=start.ravel()).value
        value = np.asarray(value).reshape(start.shape)
        known = reachable[index]
        np.testing.assert_allclose(-value[known], distance[index][known], rtol=1e-4)
    if mechanism is ROOK or mechanism.name == "car":
        with pytest.raises(ValueError, match=f"where {mechanism.name} stops depends on walls"):
            conv_mdp(maze, goal, mechanism=mechanism)
        return
    mdp = conv_mdp(maze, goal, mechanism=mechanism, cost=cost)
    start = np.where(spl == 0, 0, -1e4).astype(np.float32)
    plan = highway_vi(jax.random.key(0), mdp, num_blocks=depth, block_depth=2, v0=start)
    np.testing.assert_allclose(-plan.value[reachable], distance[reachable], rtol=1e-4)


def test_unit_costs_and_one_goal():
    mechanism = ALL["news"]
    maze, goal, _ = maps_with_goals(1, (4, 4), mechanism, seed=0)
    ones = np.ones((4, 4))
    plain = tabular_mdp(maze[0], goal[0], mechanism="news")
    same = tabular_mdp(maze[0], goal[0], mechanism="news", cost=ones)
    np.testing.assert_array_equal(plain.reward, same.reward)
    with pytest.raises(ValueError, match="is on a wall"):
        tabular_mdp(maze[0] * 0, goal[0], mechanism="news")
    with pytest.raises(ValueError, match=r"expected 1e-06 to 1e\+06"):
        tabular_mdp(maze[0], goal[0], mechanism="news", cost=-ones)
