import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from hvin_jax.tasks.generation import MazeLaw, carve, draw_mazes
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import MECHANISMS
from hvin_jax.tasks.shortest_paths import shortest_paths


def _reached(maze):
    """Free cells that are connected to (1, 1), by flood fill."""
    todo, seen = [(1, 1)], {(1, 1)}
    while todo:
        row, column = todo.pop()
        for cell in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
            if maze[cell] and cell not in seen:
                seen.add(cell)
                todo.append(cell)
    return len(seen)


@pytest.mark.parametrize("size", [(3, 4), (5, 5), (7, 15), (25, 9), (8, 8), (6, 11), (15, 15)])
def test_carved_mazes_are_trees(size):
    height, width = size
    cells = ((height - 1) // 2) * ((width - 1) // 2)
    mazes = carve(50, size=size, rng=np.random.default_rng(0))
    assert mazes.shape == (50, height, width)
    assert mazes.dtype == np.uint8
    for maze in mazes:
        assert not maze[[0, -1]].any()
        assert not maze[:, [0, -1]].any()
        assert maze[1:-1:2, 1:-1:2][: (height - 1) // 2, : (width - 1) // 2].all()
        # A connected graph with one edge less than nodes has no loop.
        assert maze.sum() == 2 * cells - 1 == _reached(maze)


def _exact_law(rows, columns):
    """The probability of each carved maze, by following all choices of the depth-first search."""
    law = {}

    def visit(stack, visited, opened, probability):
        while stack:
            (cell, previous), stack = stack[-1], stack[:-1]
            if cell in visited:
                continue
            visited = visited | {cell}
            if previous is not None:
                opened = opened | {frozenset((cell, previous))}
            row, column = cell
            around = [(row - 1, column), (row, column + 1), (row, column - 1), (row + 1, column)]
            valid = [
                (r, c)
                for r, c in around
                if 0 <= r < rows and 0 <= c < columns and (r, c) not in visited
            ]
            orders = list(itertools.permutations(valid))
            for order in orders:
                pushed = stack + [(neighbour, cell) for neighbour in order]
                visit(pushed, visited, opened, probability / len(orders))
            return
        law[opened] = law.get(opened, 0) + probability

    visit([((0, 0), None)], frozenset(), frozenset(), Fraction(1))
    assert sum(law.values()) == 1
    return law


def test_carving_has_the_law_of_the_depth_first_search():
    rows, columns, n = 3, 3, 40_000
    law = _exact_law(rows, columns)
    mazes = carve(n, size=(2 * rows + 1, 2 * columns + 1), rng=np.random.default_rng(1))
    maps, counts = np.unique(mazes.reshape(n, -1), axis=0, return_counts=True)
    drawn = {m.tobytes(): c / n for m, c in zip(maps, counts, strict=True)}
    expected = {}
    for opened, probability in law.items():
        maze = np.zeros(mazes.shape[1:], dtype=np.uint8)
        maze[1::2, 1::2] = 1
        for (r, c), (s, d) in map(tuple, opened):
            maze[r + s + 1, c + d + 1] = 1
        expected[maze.tobytes()] = float(probability)
    assert drawn.keys() == expected.keys()
    assert len(expected) > 10
    for key, probability in expected.items():
        deviation = np.sqrt(probability * (1 - probability) / n)
        assert abs(drawn[key] - probability) < 5 * deviation


def test_decimation():
    def inner(low, high, n=2000, size=(15, 15)):
        law = MazeLaw(size, (low, high))
        maze, _ = draw_mazes(n, law=law, num_orientations=4, rng=np.random.default_rng(2))
        assert not maze[:, [0, -1]].any()
        assert not maze[:, :, [0, -1]].any()
        return maze[:, 1:-1, 1:-1].mean(axis=(1, 2))

    carved = 97 / 169  # 49 cells and 48 passages of 13 × 13
    # The goal may free one more cell.
    assert set(np.round(inner(0, 0) * 169)) == {97, 98}
    assert (inner(1, 1) == 1).all()
    assert inner(0.3, 0.3).mean() == pytest.approx(carved + 0.3 * (1 - carved), abs=0.005)
    spread = inner(0, 1)
    assert spread.mean() == pytest.approx((1 + carved) / 2, abs=0.01)
    # Of a uniform probability, each quarter holds a quarter of the mazes.
    freed = (spread - carved) / (1 - carved)
    assert np.histogram(freed, [-1, 0.25, 0.5, 0.75, 2])[0] / 2000 == pytest.approx(0.25, abs=0.05)
    # The last inner row and column of even sizes are opened by decimation alone.
    maze, _ = draw_mazes(
        500, law=MazeLaw((8, 8), (0, 0)), num_orientations=4, rng=np.random.default_rng(0)
    )
    assert maze[:, 6].sum(axis=1).max() == 1  # a goal


def test_goals_are_uniform():
    n, size = 30_000, (5, 6)
    maze, goal = draw_mazes(n, law=MazeLaw(size), num_orientations=4, rng=np.random.default_rng(3))
    assert goal.dtype == np.int32
    assert maze[np.arange(n), goal[:, 0], goal[:, 1]].all()
    counts = np.zeros((*size, 4))
    np.add.at(counts, tuple(goal.T), 1)
    possible = np.zeros(size, dtype=bool)
    possible[1:-1, 1:-1] = True
    possible[1, 1] = False
    assert not counts[~possible].any()
    share = 1 / (11 * 4)
    deviation = np.sqrt(share * (1 - share) / n)
    assert np.abs(counts[possible] / n - share).max() < 5 * deviation


@pytest.mark.parametrize(
    ("side", "n", "median", "late", "tolerance"), [(15, 6000, 13, 52, 5), (25, 3000, 21, 96, 10)]
)
def test_path_lengths_of_the_protocol(side, n, median, late, tolerance):
    """The quantiles that METHOD.md gives; the late one of so many mazes has a spread of 1 to 3."""
    mechanism = MECHANISMS["diffdrive"]
    maze, goal = draw_mazes(
        n, law=MazeLaw((side, side)), num_orientations=4, rng=np.random.default_rng(4)
    )
    spl, _ = shortest_paths(maze, goal, mechanism=mechanism)
    found = np.quantile(spl[start_states(spl)], [0.5, 0.99])
    assert found[0] == pytest.approx(median, abs=1)
    assert found[1] == pytest.approx(late, abs=tolerance)


def test_a_seed_means_the_same_mazes_as_ever():
    maze, goal = draw_mazes(
        20, law=MazeLaw((9, 11)), num_orientations=4, rng=np.random.default_rng(5)
    )
    digest = hashlib.sha256(maze.tobytes() + goal.tobytes()).hexdigest()
    assert digest.startswith("3ff2f9bd1810d456")


def test_impossible_laws_are_refused():
    with pytest.raises(ValueError, match="a maze of 3×3 has no room for a goal"):
        MazeLaw((3, 3))
    with pytest.raises(ValueError, match="a maze of 2×9 has no room"):
        MazeLaw((2, 9))
    for decimation in ((0.5, 0.4), (-0.1, 1), (0, 1.1), (float("nan"), 1)):
        with pytest.raises(ValueError, match="expected two probabilities, the lower one first"):
            MazeLaw((9, 9), decimation)
