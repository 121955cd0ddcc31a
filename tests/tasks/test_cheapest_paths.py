"""Paths by cost, several goals and mechanisms of one's own, against SciPy's Dijkstra."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from hvin_jax.tasks.cheapest_paths import TOLERANCE, cheapest_paths
from hvin_jax.tasks.maze_data import UNREACHABLE, action_sets, goal_maps
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, transition_table
from hvin_jax.tasks.rollouts import path_costs, path_lengths
from hvin_jax.tasks.shortest_paths import draw_labels, label_mazes, shortest_paths

KNIGHT = Mechanism(
    name="knight",
    orientations=("-",),
    actions=tuple(f"jump {number}" for number in range(8)),
    moves=(
        tuple((r, c, 0) for r, c in itertools.product((-2, -1, 1, 2), repeat=2) if r * r != c * c),
    ),
    walls="block",
)
# A rook that goes up to three cells: twelve actions, and it stops at walls.
ROOK = Mechanism(
    name="rook",
    orientations=("-",),
    actions=tuple(f"{way}{far}" for far in (1, 2, 3) for way in "NEWS"),
    moves=(
        tuple(
            (far * r, far * c, 0)
            for far in (1, 2, 3)
            for r, c in ((-1, 0), (0, 1), (0, -1), (1, 0))
        ),
    ),
    walls="block",
    between="stop",
)
# A car that jumps or rolls two cells forward, turns, and is stuck in walls.
CAR = Mechanism(
    name="car",
    orientations=("N", "E", "S", "W"),
    actions=("roll", "forward", "right"),
    moves=tuple(
        ((2 * r, 2 * c, o), (r, c, o), (0, 0, (o + 1) % 4))
        for o, (r, c) in enumerate([(-1, 0), (0, 1), (1, 0), (0, -1)])
    ),
    walls="trap",
    between="stop",
)
ALL = {**MECHANISMS, "knight": KNIGHT, "rook": ROOK, "car": CAR}


def maps_with_goals(count, size, mechanism, seed, goals=1):
    """Random maps with goals and costs."""
    rng = np.random.default_rng(seed)
    maze = (rng.random((count, *size)) < 0.7).astype(np.uint8)
    goal = np.stack(
        [rng.integers(0, n, (count, goals)) for n in (*size, mechanism.num_orientations)], axis=-1
    )
    maze[np.arange(count)[:, None], goal[..., 0], goal[..., 1]] = 1
    goal = goal[:, 0] if goals == 1 else goal
    return maze, goal.astype(np.int32), rng.uniform(0.5, 9, maze.shape).astype(np.float32)


def _dijkstra(maze, goal, cost, mechanism):
    """The costs of cheapest paths in one maze, `[H, W, O]`, by the transition table alone."""
    following = transition_table(maze[None], mechanism=mechanism)[0]
    count, orientations = len(following), mechanism.num_orientations
    source = np.repeat(np.arange(count), mechanism.num_actions)
    target = following.ravel()
    price = cost.ravel()[target // orientations].astype(np.float64)
    useful = (maze.ravel()[target // orientations] != 0) & (source != target)
    edges = {}
    for s, t, p in zip(source[useful], target[useful], price[useful], strict=True):
        edges[t, s] = p
    pairs = np.array(list(edges)).reshape(-1, 2)
    graph = csr_array((list(edges.values()), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    goals = goal_maps(goal[None], size=maze.shape, num_orientations=orientations)
    found = dijkstra(graph, indices=np.flatnonzero(goals), min_only=True)
    shape = (*maze.shape, orientations)
    return np.where(maze[..., None] != 0, found.reshape(shape), np.inf), following


@pytest.mark.parametrize("goals", [1, 3])
@pytest.mark.parametrize("name", ALL)
def test_against_dijkstra(name, goals):
    mechanism = ALL[name]
    for size in ((7, 9), (1, 5)):
        maze, goal, cost = maps_with_goals(70, size, mechanism, seed=goals, goals=goals)
        distance, spl, optimal = cheapest_paths(maze, goal, cost, mechanism=mechanism)
        assert optimal.dtype == mechanism.set_dtype
        sets = action_sets(optimal, num_actions=mechanism.num_actions)
        at_goal = goal_maps(goal, size=size, num_orientations=mechanism.num_orientations) != 0
        for index in range(0, 70, 3):
            expected, following = _dijkstra(maze[index], goal[index], cost[index], mechanism)
            np.testing.assert_allclose(distance[index], expected, rtol=1e-5)
            assert ((spl[index] == UNREACHABLE) == ~np.isfinite(expected)).all()
            # Optimal are the actions by which the least cost is reached, and no others.
            far = np.where(maze[index][..., None] != 0, expected, np.inf).ravel()
            cells = following // mechanism.num_orientations
            price = np.where(maze[index].ravel()[cells] != 0, cost[index].ravel()[cells], np.inf)
            reached = price + far[following]
            inner = np.isfinite(far) & ~at_goal[index].ravel()
            best = reached[inner] <= far[inner, None] * (1 + TOLERANCE)
            np.testing.assert_array_equal(sets[index].reshape(len(far), -1)[inner], best)


@pytest.mark.parametrize("name", ALL)
def test_labels_lead_to_the_goal_at_the_least_cost(name):
    mechanism = ALL[name]
    maze, goal, cost = maps_with_goals(100, (8, 6), mechanism, seed=7, goals=2)
    data = label_mazes(maze, goal, np.random.default_rng(0), mechanism=mechanism, cost=cost)
    costs = path_costs(data.label, maze, goal, data.cost, mechanism=mechanism)
    np.testing.assert_allclose(costs, data.distance, rtol=1e-4)
    assert np.isinf(data.cost[maze == 0]).all()
    steps = path_lengths(data.label, maze, goal, mechanism=mechanism)
    assert ((steps == UNREACHABLE) == (data.spl == UNREACHABLE)).all()


@pytest.mark.parametrize("goals", [1, 2])
@pytest.mark.parametrize("name", ALL)
def test_unit_costs_are_none_at_all(name, goals):
    mechanism = ALL[name]
    maze, goal, _ = maps_with_goals(130, (6, 7), mechanism, seed=3, goals=goals)
    spl, optimal = shortest_paths(maze, goal, mechanism=mechanism)
    distance, same_spl, same_optimal = cheapest_paths(
        maze, goal, np.ones(maze.shape), mechanism=mechanism
    )
    np.testing.assert_array_equal(spl, same_spl)
    np.testing.assert_array_equal(optimal, same_optimal)
    reachable = spl != UNREACHABLE
    np.testing.assert_array_equal(distance[reachable], spl[reachable])


def test_labels_of_many_actions_are_drawn_evenly():
    king = Mechanism(
        name="long king",
        orientations=("-",),
        actions=tuple(map(str, range(32))),
        moves=(tuple((k % 5 - 2, k // 5 - 3, 0) for k in range(32)),),
        walls="block",
    )
    chosen = [0, 3, 17, 31]
    optimal = np.full(4000, sum(1 << a for a in chosen), king.set_dtype)
    drawn = np.bincount(
        draw_labels(optimal, np.random.default_rng(0), mechanism=king), minlength=32
    )
    assert np.flatnonzero(drawn).tolist() == chosen
    assert drawn[chosen].min() > 900


def test_goals_of_any_orientation():
    mechanism = MECHANISMS["diffdrive"]
    maze, goal, _ = maps_with_goals(40, (6, 6), mechanism, seed=5)
    goal[:, 2] = -1
    spl, _ = shortest_paths(maze, goal, mechanism=mechanism)
    each = []
    for orientation in range(4):
        goal[:, 2] = orientation
        each.append(shortest_paths(maze, goal, mechanism=mechanism)[0])
    np.testing.assert_array_equal(spl, np.min(each, axis=0))


def test_cheap_detours_are_taken_and_idling_is_not():
    """A road around a swamp; and a step that costs next to nothing does not invite to stay."""
    news = MECHANISMS["news"]
    maze = np.ones((1, 3, 5), np.uint8)
    cost = np.ones((1, 3, 5))
    cost[0, 1, 1:4] = 10
    goal = np.array([[1, 4, 0]], np.int32)
    distance, spl, _ = cheapest_paths(maze, goal, cost, mechanism=news)
    assert (distance[0, 1, 0, 0], spl[0, 1, 0, 0]) == (6, 6)
    cost[0, 0] = 1e-9
    _, _, optimal = cheapest_paths(maze, goal, cost, mechanism=news)
    assert optimal[0, 0, 0, 0] == 1 << news.actions.index("E")
