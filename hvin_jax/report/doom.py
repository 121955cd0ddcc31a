"""Pictures of the 3D task: levels from above, views, predicted maps."""

import pathlib
import tempfile

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._files import atomic_write
from hvin_jax.tasks.doom.camera import DIRECTIONS
from hvin_jax.tasks.doom.engine import Engine
from hvin_jax.tasks.doom.levels import CELL, Look, write_levels
from hvin_jax.tasks.doom.view_data import ViewData
from hvin_jax.tasks.drawing import draw_maze, save_figure
from hvin_jax.tasks.mechanisms import COMPASS

with needs("drawing views", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure
    from PIL import Image

_NAMES = {"N": "north", "E": "east", "W": "west", "S": "south"}
_WRONG = "#e0243f"


def views_figure(data: ViewData, split: str, number: int) -> Figure:
    """The views at a cell of a maze that has open ways and walls around it, and where it is.

    Args:
      data: the data set.
      split: of the maze.
      number: of the maze in its split.

    Returns:
      The figure.
    """
    maze = getattr(data.mazes, split).maze[number]
    row, column = _interesting_cell(maze)
    pictures = data.pictures(data.index[split][number, row, column])
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    places = figure.subplot_mosaic([["map", "map", "W", "N"], ["map", "map", "S", "E"]])
    draw_maze(places["map"], maze, start=(row, column))
    look = data.look(split, number)
    places["map"].set_title(f"{look.wall}, light {look.light}", fontsize=10)
    for name, picture in zip(DIRECTIONS, pictures, strict=True):
        places[name].imshow(picture)
        places[name].set_title(f"to the {_NAMES[name]}", fontsize=10)
        places[name].axis("off")
    return figure


def map_figure(predicted: np.ndarray, maze: np.ndarray) -> Figure:
    """Predicted maps above real ones; cells that are wrong are marked.

    Args:
      predicted: `[n, H, W]`, true or 1 where a cell is taken to be free.
      maze: `[n, H, W]`, 1 = free.

    Returns:
      The figure.
    """
    count = len(maze)
    figure = Figure(figsize=(2.2 * count, 4.9), layout="constrained")
    above, below = figure.subplots(2, count, squeeze=False)
    for k in range(count):
        wrong = np.argwhere((predicted[k] != 0) != (maze[k] != 0))
        draw_maze(above[k], np.asarray(predicted[k] != 0, np.uint8))
        if len(wrong):  # nothing, drawn beyond the frame, would have no place in the layout
            above[k].plot(wrong[:, 1], wrong[:, 0], "x", color=_WRONG, markersize=6, clip_on=False)
        above[k].set_title(f"predicted, {len(wrong)} wrong", fontsize=9)
        draw_maze(below[k], maze[k])
        below[k].set_title("real", fontsize=9)
    return figure


def level_from_above(maze: np.ndarray, look: Look) -> np.ndarray:
    """The engine's own picture of a level from above, uint8 `[height, width, 3]`."""
    with tempfile.TemporaryDirectory() as folder:
        wad = pathlib.Path(folder) / "level.wad"
        (name,) = write_levels(wad, [maze], [look], chambers=False)
        with Engine(wad, first_map=name, resolution=(640, 480), from_above=True) as engine:
            engine.warp(maze.shape[1] * CELL // 2, maze.shape[0] * CELL // 2)
            engine.show_whole_level()
            return engine.from_above.copy()


def write_preview(data: ViewData, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes pictures of the first maze: the level from above, and the views at one cell."""
    split = max(data.index, key=lambda name: len(data.index[name]))
    folder.mkdir(parents=True, exist_ok=True)
    level, views = folder / "level.png", folder / "views.png"
    save_figure(views_figure(data, split, 0), views)
    picture = level_from_above(getattr(data.mazes, split).maze[0], data.look(split, 0))
    with atomic_write(level) as file:
        Image.fromarray(picture).save(file, format="PNG")
    return [level, views]


def _interesting_cell(maze: np.ndarray) -> tuple[int, int]:
    """The first free cell of which two sides are open and two are walls, or just a free one."""
    around = np.pad(maze, 1)
    cells = [(int(row), int(column)) for row, column in np.argwhere(maze)]
    for row, column in cells:
        open_sides = sum(
            int(around[row + 1 + down, column + 1 + right])
            for down, right in (COMPASS[name] for name in DIRECTIONS)
        )
        if open_sides == 2:
            return row, column
    return cells[0]
