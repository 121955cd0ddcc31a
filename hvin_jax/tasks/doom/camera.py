"""Pictures of a level from every cell in every direction."""

import numpy as np

from hvin_jax.tasks.doom.engine import Engine, check_pose
from hvin_jax.tasks.doom.levels import ANGLES, cell_centre
from hvin_jax.tasks.mechanisms import get_mechanism

# Rows, columns and colours of a view, and how many pixels of the screen make one of a view.
VIEW_SHAPE = (24, 32, 3)
SHRINK = 5
# The directions in the order of the views: N, E, W, S, as in differential drive.
DIRECTIONS = get_mechanism("diffdrive").orientations
# From each direction, what comes next when one turns right.
_TO_THE_RIGHT = {"E": "S", "S": "W", "W": "N", "N": "E"}


def maze_views(engine: Engine, name: str, size: tuple[int, int]) -> np.ndarray:
    """The views of a level; each pose is checked against the engine's own account of it.

    Args:
      engine: with a screen of 160×120.
      name: of the level.
      size: `(H, W)`, rows and columns of the maze.

    Returns:
      uint8 `[H, W, 4, 24, 32, 3]`, the directions in the order N, E, W, S.
    """
    height, width = size
    views = np.empty((height, width, len(DIRECTIONS), *VIEW_SHAPE), dtype=np.uint8)
    engine.open_level(name)
    facing = "E"
    for row in range(height):
        for column in range(width):
            x, y = cell_centre(row, column, height)
            engine.warp(x, y)
            for turn in (0, 90, 90, 90):
                engine.act(turn=turn)
                facing = _TO_THE_RIGHT[facing] if turn else facing
                check_pose(engine.pose, x=x, y=y, angle=ANGLES[facing])
                views[row, column, DIRECTIONS.index(facing)] = shrink(engine.screen)
    return views


def shrink(screen: np.ndarray) -> np.ndarray:
    """The mean of every 5×5 pixels, rounded: uint8 `[120, 160, 3]` to `[24, 32, 3]`.

    Sums of 25 bytes fit in 16 bits, and whole numbers are ten times faster here than floats.
    """
    rows = screen[0::SHRINK].astype(np.uint16)
    for start in range(1, SHRINK):
        rows += screen[start::SHRINK]
    total = rows[:, 0::SHRINK].copy()
    for start in range(1, SHRINK):
        total += rows[:, start::SHRINK]
    half = SHRINK * SHRINK // 2
    return ((total + np.uint16(half)) // np.uint16(SHRINK * SHRINK)).astype(np.uint8)
