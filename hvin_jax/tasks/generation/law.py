"""What a law of maps is: from a random stream to maps with goals."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from hvin_jax.tasks.maze_data import UNREACHABLE


class Law(Protocol):
    """What maps to draw; `MazeLaw` and `MapLaw` are laws."""

    @property
    def size(self) -> tuple[int, int]:
        """`(H, W)`."""

    @property
    def about(self) -> str:
        """What maps these are, for messages."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What a data set keeps of the law: fields of `MazeSplits`."""

    def draw(
        self, n: int, *, num_orientations: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `draw_mazes`."""


def draw_mazes(
    n: int, *, law: Law, num_orientations: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Maps of a law with their goals; duplicates may occur.

    The maps do not depend on the number of orientations: one seed gives one set of maps for all
    mechanisms.

    Args:
      n: number of maps.
      law: what to draw.
      num_orientations: `O`.
      rng: consumed.

    Returns:
      maze: uint8 `[n, H, W]`, 1 = free, 0 = wall.
      goal: int32 `[n, 3]`, (row, column, orientation): a free cell.
    """
    return law.draw(n, num_orientations=num_orientations, rng=rng)


def check_paths(size: tuple[int, int]) -> None:
    """Raises for maps so large that their shortest paths would not fit 16 bits."""
    height, width = size
    if height + width >= UNREACHABLE:
        raise ValueError(
            f"paths through a maze of {height}×{width} may have {UNREACHABLE} actions or more, "
            "too many for 16 bits: both sides together must be less"
        )
