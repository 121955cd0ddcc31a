"""What a family is: a function that draws `n` maps of a size, all of one kind.

Maps are uint8 `[n, H, W]`, 1 = free, 0 = wall, with a border of walls. The first line of the
function's docstring describes the family; what it gives as a range, each map draws for itself.
"""

import functools
from collections.abc import Callable

import numpy as np

Size = tuple[int, int]
Rng = np.random.Generator
Family = Callable[[int, Size, Rng], np.ndarray]


def one_by_one(draw: Callable[[Size, Rng], np.ndarray]) -> Family:
    """The family whose maps a function draws one at a time."""

    @functools.wraps(draw)
    def family(n: int, size: Size, rng: Rng) -> np.ndarray:
        return np.stack([draw(size, rng) for _ in range(n)])

    return family
