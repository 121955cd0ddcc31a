"""A walk through a level as an animation: what the agent sees, beside where it is."""

import os
from collections.abc import Sequence

import numpy as np

from hvin_jax._extras import needs
from hvin_jax.report._gif import save_gif
from hvin_jax.tasks.doom.engine import Engine, Pose
from hvin_jax.tasks.doom.levels import CELL, cell_centre

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image, ImageDraw

_WALL, _FREE, _MISTAKEN = (43, 52, 64), (250, 248, 243), (240, 170, 60)
_GOAL, _TRACK, _AGENT = (224, 36, 63), (90, 110, 220), (18, 163, 122)
# Doom has 35 tics a second; every fourth is shown. Browsers keep to hundredths of a second.
_EVERY, _MILLISECONDS = 4, 110
_SHOWN = (240, 180)


class Film:
    """Takes pictures of a walk; call it after each tic."""

    def __init__(self, maze: np.ndarray, predicted: np.ndarray, goal: Sequence[int]) -> None:
        """Prepares the map.

        Args:
          maze: `[H, W]`, 1 = free.
          predicted: bool `[H, W]`, the map that the planner believed in; where it was wrong, the
            map is marked.
          goal: (row, column, ...).
        """
        self._maze, self._goal = maze, goal
        colours = np.where(maze[..., None] != 0, _FREE, _WALL)
        wrong = predicted != (maze != 0)
        self._cells = np.where(wrong[..., None], _MISTAKEN, colours).astype(np.uint8)
        self._track: list[tuple[float, float]] = []
        self._tics = 0
        self._frames: list[Image.Image] = []

    def __call__(self, engine: Engine) -> None:
        """Adds a picture, at every fourth tic."""
        self._track.append((engine.pose.x, engine.pose.y))
        if self._tics % _EVERY == 0:
            self._frames.append(self._frame(engine.screen, engine.pose))
        self._tics += 1

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a GIF, which stays on its last picture for two seconds."""
        durations = [_MILLISECONDS] * (len(self._frames) - 1) + [2000]
        frames = [_few_colours(frame) for frame in self._frames]
        save_gif(path, frames, durations)

    def _frame(self, screen: np.ndarray, pose: Pose) -> Image.Image:
        width, side = _SHOWN
        rows, columns = self._maze.shape
        scale = max(side // max(rows, columns), 1)
        plan = Image.fromarray(self._cells.repeat(scale, axis=0).repeat(scale, axis=1))
        draw = ImageDraw.Draw(plan)

        def at(x: float, y: float) -> tuple[float, float]:
            return x * scale / CELL, (rows * CELL - y) * scale / CELL

        x, y = at(*cell_centre(self._goal[0], self._goal[1], rows))
        draw.ellipse(
            (x - 0.35 * scale, y - 0.35 * scale, x + 0.35 * scale, y + 0.35 * scale), _GOAL
        )
        if len(self._track) > 1:
            draw.line([at(*place) for place in self._track], _TRACK, width=max(scale // 6, 1))
        tip, left, right = (
            at(
                pose.x + length * CELL * np.cos(np.deg2rad(pose.angle + turn)),
                pose.y + length * CELL * np.sin(np.deg2rad(pose.angle + turn)),
            )
            for length, turn in ((0.5, 0), (0.4, 140), (0.4, -140))
        )
        draw.polygon([tip, left, right], _AGENT)
        frame = Image.new("RGB", (width + plan.width, max(side, plan.height)))
        frame.paste(Image.fromarray(screen).resize(_SHOWN, Image.Resampling.BOX), (0, 0))
        frame.paste(plan, (width, 0))
        return frame


def _few_colours(frame: Image.Image) -> Image.Image:
    """A frame with 64 colours, those of the map among them, however little of it they cover."""
    own = [part for colour in (_WALL, _FREE, _MISTAKEN, _GOAL, _TRACK, _AGENT) for part in colour]
    seen = frame.crop((0, 0, *_SHOWN)).quantize(64 - len(own) // 3).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(seen + own)
    return frame.quantize(palette=palette, dither=Image.Dither.NONE)
