"""A map as a picture of Pillow, layer by layer: colours of cells, arrows, paths, start and goal."""

import itertools
from collections.abc import Sequence

import numpy as np

from hvin_jax._extras import needs
from hvin_jax.tasks import _shapes
from hvin_jax.tasks.drawing import (
    FREE,
    GOAL,
    PATH_COLOURS,
    SHARE_COLOURS,
    START,
    VALUE_COLOURS,
    WALL,
    action_sign,
    limits_of,
    mark_outline,
)
from hvin_jax.tasks.mechanisms import Mechanism

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image, ImageDraw, ImageFont

BAND = 34  # the height of the caption, with its bar
_SIDE, _LARGEST_CELL, _LEAST_WIDTH = 330, 26, 250
_FINER = 3  # drawn so many times larger, for smooth edges
_ARROW_CELL = 11  # cells of fewer pixels have no arrows
_TITLE, _GAP = 20, 8
_PAPER, _INK, _BAR = (255, 255, 255), (43, 52, 64), (18, 163, 122)


class MapPicture:
    """One panel; methods draw over what is there."""

    def __init__(self, maze: np.ndarray, mechanism: Mechanism) -> None:
        """A map `[H, W]`, 1 = free."""
        self._maze, self._mechanism = maze != 0, mechanism
        self._cell = max(min(_SIDE // max(maze.shape), _LARGEST_CELL), 1)
        self._unit = self._cell * _FINER
        self._image = self._of_cells(
            np.where(self._maze[..., None], _colour(FREE), _colour(WALL)).astype(np.uint8)
        )
        self._draw = ImageDraw.Draw(self._image, "RGBA")

    def values(self, values: np.ndarray) -> None:
        """Colours for values `[H, W]` of the free cells."""
        low, high = limits_of(values, self._maze)
        self._fill((values - low) / (high - low if high > low else 1), VALUE_COLOURS)

    def shares(self, shares: np.ndarray) -> None:
        """Colours for shares `[H, W]` from 0 to 1."""
        self._fill(shares, SHARE_COLOURS)

    def policy(self, policy: np.ndarray, values: np.ndarray) -> None:
        """Arrows for actions `[H, W, O]`, in each cell that of the orientation of most value.

        Where cells are too small for arrows there are none: colours of values say enough.
        """
        if self._cell < _ARROW_CELL:
            return
        for row, column in np.argwhere(self._maze).tolist():
            orientation = int(values[row, column].argmax())
            action = int(policy[row, column, orientation])
            sign = 0.8 * action_sign(self._mechanism, orientation, action)
            self._polygon(sign, (row, column), (255, 255, 255, 170))

    def path(self, path: np.ndarray) -> None:
        """A path `[k, 3]` that gets brighter on its way."""
        points = path[:, 1::-1].astype(float)
        ends = [(a, b) for a, b in itertools.pairwise(points) if (a != b).any()]
        colours = PATH_COLOURS(np.linspace(0.35, 0.95, max(len(ends), 1)))
        for (first, last), colour in zip(ends, colours, strict=False):
            outline = _shapes.segment(first, last, width=0.3)
            self._polygon(outline, (0, 0), tuple((255 * colour).astype(int).tolist()))

    def best_path(self, path: np.ndarray) -> None:
        """A thin line over it, for comparison."""
        points = [self._at(point) for point in path[:, 1::-1].astype(float)]
        if len(points) > 1:
            self._draw.line(points, (255, 255, 255, 235), max(self._unit // 9, 2), joint="curve")

    def ends(self, start: Sequence[int], goals: np.ndarray) -> None:
        """Start (or where the agent is) and goals."""
        for state in goals.tolist():
            self._mark(state, GOAL, _shapes.star(0.62))
        self._mark(list(start), START, _shapes.disc(0.4))

    def finish(self, title: str) -> Image.Image:
        """The panel, with a title."""
        height, width = (self._cell * side for side in self._maze.shape)
        small = self._image.resize((width, height), Image.Resampling.BOX)
        room = max(width, _LEAST_WIDTH)
        panel = Image.new("RGB", (room, height + (_TITLE if title else 0)), _PAPER)
        panel.paste(small, ((room - width) // 2, panel.height - height))
        if title:
            font = ImageFont.load_default(12)
            ImageDraw.Draw(panel).text((room / 2, 3), title, _INK, font, anchor="ma")
        return panel

    def _fill(self, shares: np.ndarray, colours: object) -> None:
        assert callable(colours)
        shown = self._maze & np.isfinite(shares)
        rgb = (255 * colours(np.clip(np.nan_to_num(shares), 0, 1))[..., :3]).astype(np.uint8)
        mask = self._of_cells((255 * shown).astype(np.uint8))
        self._image.paste(self._of_cells(rgb), (0, 0), mask)

    def _of_cells(self, cells: np.ndarray) -> Image.Image:
        return Image.fromarray(cells.repeat(self._unit, axis=0).repeat(self._unit, axis=1))

    def _at(self, point: np.ndarray) -> tuple[float, float]:
        return (float(point[0]) + 0.5) * self._unit, (float(point[1]) + 0.5) * self._unit

    def _polygon(
        self, outline: np.ndarray, place: tuple[int, int], colour: tuple[int, ...]
    ) -> None:
        moved = outline + np.array([place[1], place[0]])
        self._draw.polygon([self._at(point) for point in moved], colour)

    def _mark(self, state: list[int], colour: str, otherwise: np.ndarray) -> None:
        outline = mark_outline(state, self._mechanism, otherwise)
        place = (int(state[0]), int(state[1]))
        self._polygon(1.25 * outline, place, (255, 255, 255))
        self._polygon(outline, place, _colour(colour))


def joined(panels: list[Image.Image], caption: str, done: float) -> Image.Image:
    """Panels side by side, with a caption below and a bar that says how much is done."""
    width = sum(panel.width for panel in panels) + _GAP * (len(panels) + 1)
    height = max(panel.height for panel in panels) + _GAP
    picture = Image.new("RGB", (width, height + BAND), _PAPER)
    left = _GAP
    for panel in panels:
        picture.paste(panel, (left, _GAP))
        left += panel.width + _GAP
    draw = ImageDraw.Draw(picture)
    draw.rectangle((_GAP, height + 5, width - _GAP - 1, height + 8), (225, 228, 232))
    draw.rectangle((_GAP, height + 5, _GAP + done * (width - 2 * _GAP - 1), height + 8), _BAR)
    font = ImageFont.load_default(13)
    words = caption.split()
    while len(words) > 1 and font.getlength(" ".join(words)) > width - 2 * _GAP:
        words = [*words[:-2], "…"]
    draw.text((_GAP, height + 13), " ".join(words), _INK, font)
    return picture


def _colour(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
