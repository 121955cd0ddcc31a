"""Plans of corridors, and the maps that are made of them by giving each lane its width.

A plan of `R × C` cells is uint8 `[2R + 1, 2C + 1]`, 1 = open: cells at odd rows and columns, the
passages and walls between them at the others. Its lines become lanes of one or more cells of a map.
"""

from collections.abc import Callable, Iterable

import numpy as np

Plan = Callable[[int, int], np.ndarray]


def draw_grain(
    size: tuple[int, int],
    rng: np.random.Generator,
    *,
    corridors: Iterable[int] = (1,),
    walls: Iterable[int] = (1,),
    cells: int = 2,
) -> tuple[int, int]:
    """The widths of corridors and walls, of those for which so many cells fit both sides."""
    room = min(size) - 2
    walls = list(walls)
    possible = [(c, w) for c in corridors for w in walls if cells * c + (cells - 1) * w <= room]
    return possible[rng.integers(len(possible))]


def lay_out(
    plan: Plan,
    size: tuple[int, int],
    grain: tuple[int, int],
    rng: np.random.Generator,
    *,
    widen: str = "all",
    loose: bool = False,
) -> np.ndarray:
    """A map of a plan that fills a size.

    Args:
      plan: makes a plan of so many rows and columns of cells.
      size: `(H, W)`.
      grain: the least width of corridors and of walls, see `draw_grain`.
      rng: consumed.
      widen: which lanes share out what is left: "walls", "corridors" or "all".
      loose: a side has from half as many cells as fit (but 2) up to all; else as many as fit.

    Returns:
      uint8 `[H, W]`, 1 = free, 0 = wall, with a border of walls.
    """
    corridor, wall = grain
    cells = [(side - 2 + wall) // (corridor + wall) for side in size]
    if loose:
        cells = [int(rng.integers(max(2, most // 2), most + 1)) for most in cells]
    lines = []
    for side, count in zip(size, cells, strict=True):
        width = np.full(2 * count + 1, wall)
        width[1::2] = corridor
        width[[0, -1]] = 1
        wider = np.arange(2 * count + 1)
        wider = {"walls": wider[::2], "corridors": wider[1::2], "all": wider}[widen]
        np.add.at(width, rng.choice(wider, size=side - width.sum()), 1)
        lines.append(np.repeat(np.arange(2 * count + 1), width))
    return plan(*cells)[np.ix_(*lines)]


def spanning_tree(
    rows: int, columns: int, rng: np.random.Generator, *, newest: float
) -> np.ndarray:
    """The plan of a perfect maze, grown from a random cell.

    Args:
      rows: of cells.
      columns: of cells.
      rng: consumed.
      newest: the probability of going on from the newest cell, and not from any: with 1 the search
        is depth first, with long corridors; with 0 it is like Prim's, with many short dead ends.
    """
    width = 2 * columns + 3
    around = np.ones((2 * rows + 3, width), np.uint8)  # with a rim that counts as visited
    around[1:-1, 1:-1] = 0
    plan = bytearray(around.tobytes())
    draws = iter(rng.random(6 * rows * columns + 2).tolist())
    row, column = int(next(draws) * rows), int(next(draws) * columns)
    active = [(2 * row + 2) * width + 2 * column + 2]
    plan[active[0]] = 1
    while active:
        index = -1 if next(draws) < newest else int(next(draws) * len(active))
        cell = active[index]
        ways = [way for way in (-width, 1, -1, width) if not plan[cell + 2 * way]]
        if not ways:
            active.pop(index)
            continue
        way = ways[int(next(draws) * len(ways))]
        plan[cell + way] = plan[cell + 2 * way] = 1
        active.append(cell + 2 * way)
    return np.frombuffer(plan, np.uint8).reshape(around.shape)[1:-1, 1:-1].copy()


def braid(plan: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Opens so many of the dead ends of a plan towards a neighbour, in place."""
    ends = np.argwhere(_passages(plan) == 1)
    for row, column in 2 * ends[rng.random(len(ends)) < share] + 1:
        walls = [
            (r, c)
            for r, c in ((row - 1, column), (row, column + 1), (row, column - 1), (row + 1, column))
            if 0 < r < len(plan) - 1 and 0 < c < plan.shape[1] - 1 and not plan[r, c]
        ]
        if len(walls) > 0 and plan[row - 1 : row + 2, column - 1 : column + 2].sum() == 2:
            plan[walls[rng.integers(len(walls))]] = 1
    return plan


def _passages(plan: np.ndarray) -> np.ndarray:
    """How many ways lead out of each cell, `[R, C]`."""
    upright, level = plan[::2, 1::2], plan[1::2, ::2]
    return upright[:-1] + upright[1:] + level[:, :-1] + level[:, 1:]


def spiral(rows: int, columns: int) -> np.ndarray:
    """The plan of one corridor that winds from the first cell to the middle."""
    plan = np.zeros((2 * rows + 1, 2 * columns + 1), np.uint8)
    row, column, down, right = 1, 1, 0, 1
    plan[1, 1] = 1
    while True:
        for _ in range(2):
            r, c = row + 2 * down, column + 2 * right
            if 0 < r < len(plan) and 0 < c < plan.shape[1] and not plan[r, c]:
                break
            down, right = right, -down  # turn right
        else:
            return plan
        plan[row + down, column + right] = plan[r, c] = 1
        row, column = r, c


def serpentine(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """The plan of parallel corridors, with one gap between two, mostly at the far end."""
    plan = np.zeros((2 * rows + 1, 2 * columns + 1), np.uint8)
    plan[1::2, 1:-1] = 1
    gap = (np.arange(rows - 1) % 2) * (columns - 1)
    gap = np.where(rng.random(rows - 1) < 0.2, rng.integers(0, columns, rows - 1), gap)
    plan[2 * np.arange(1, rows), 2 * gap + 1] = 1
    return plan


def breach(plan: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Opens so many walls between neighbouring cells of a plan, in place."""
    row, column = np.indices(plan.shape)
    walls = np.argwhere((plan == 0)[1:-1, 1:-1] & ((row + column) % 2 == 1)[1:-1, 1:-1]) + 1
    plan[tuple(walls[rng.integers(0, len(walls), size=count)].T)] = 1
    return plan


def turned(plan: Plan, rng: np.random.Generator) -> Plan:
    """The same plan, turned or mirrored at random."""
    transposed, *flipped = rng.random(3) < 0.5

    def make(rows: int, columns: int) -> np.ndarray:
        made = plan(columns, rows).T if transposed else plan(rows, columns)
        return np.flip(made, tuple(axis for axis in (0, 1) if flipped[axis]))

    return make
