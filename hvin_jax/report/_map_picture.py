"""A map as a picture of Pillow, layer by layer: colours of cells, arrows, paths, start and goal."""

import itertools
from collections.abc import Sequence
from typing import Any

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
    start_size,
)
from hvin_jax.tasks.mechanisms import Mechanism

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image, ImageDraw, ImageFont

_SIDE, _LARGEST_CELL, _LEAST_WIDTH = 330, 26, 250
# On large maps cells are no smaller than this, unless a side would be longer than that.
_LEAST_CELL, _LONGEST_SIDE = 9, 720
_MARK_CELL = 18  # start and goal are as large as in cells of so many pixels, or larger
_FINER = 3  # drawn so many times larger, for smooth edges
_ARROW_CELL = 11  # cells of fewer pixels have no arrows
_TITLE, _GAP, _BAND, _LINE = 20, 8, 18, 16
_PAPER, _INK, _BAR, _TRACK = (255, 255, 255), (43, 52, 64), (18, 163, 122), (225, 228, 232)
# Of a path, from its beginning to its end: none is a colour of values.
_ON_PATH = [
    tuple(x) for x in (255 * PATH_COLOURS(np.linspace(0.35, 0.8, 10))).astype(int)[:, :3].tolist()
]


class MapPicture:
    """One panel; methods draw over what is there."""

    def __init__(self, maze: np.ndarray, mechanism: Mechanism) -> None:
        """A map `[H, W]`, 1 = free."""
        self._maze, self._mechanism = maze != 0, mechanism
        longest = max(maze.shape)
        wanted = min(max(_SIDE // longest, _LEAST_CELL), _LARGEST_CELL)
        self._cell = max(min(wanted, _LONGEST_SIDE // longest), 1)
        self._unit = self._cell * _FINER
        self._margin = max(_MARK_CELL - self._cell, 0)  # for marks that are larger than cells
        height, width = (self._cell * side + 2 * self._margin for side in maze.shape)
        self._image = Image.new("RGB", (_FINER * width, _FINER * height), _PAPER)
        cells = np.where(self._maze[..., None], _colour(FREE), _colour(WALL)).astype(np.uint8)
        self._paste(cells, np.ones_like(self._maze))
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
            self._polygon(sign + np.array([column, row]), (255, 255, 255, 170))

    def path(self, path: np.ndarray) -> None:
        """A path `[k, 3]` that gets brighter on its way."""
        points = path[:, 1::-1].astype(float)
        ends = [(a, b) for a, b in itertools.pairwise(points) if (a != b).any()]
        for index, (first, last) in enumerate(ends):
            outline = _shapes.segment(first, last, width=0.3)
            self._polygon(outline, _ON_PATH[index * len(_ON_PATH) // len(ends)])

    def best_path(self, path: np.ndarray) -> None:
        """A thin line over it, for comparison."""
        points = [self._at(point) for point in path[:, 1::-1].astype(float)]
        if len(points) > 1:
            self._draw.line(points, _PAPER, max(self._unit // 9, 2), joint="curve")

    def ends(self, start: Sequence[int], goals: np.ndarray) -> None:
        """Start (or where the agent is) and goals."""
        for state in goals.tolist():
            self._mark(state, GOAL, mark_outline(state, self._mechanism, _shapes.star(0.62)))
        outline = mark_outline(start, self._mechanism, _shapes.disc(0.4))
        self._mark(start, START, start_size(start, goals) * outline)

    def finish(self, title: str) -> Image.Image:
        """The panel, with a title."""
        small = self._image.reduce(_FINER)
        width, height = small.size
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
        self._paste(rgb, shown)

    def _paste(self, cells: np.ndarray, shown: np.ndarray) -> None:
        """Colours `[H, W, 3]` for the cells `[H, W]` that are shown."""
        colours, mask = (
            Image.fromarray(x.repeat(self._unit, axis=0).repeat(self._unit, axis=1))
            for x in (cells, (255 * shown).astype(np.uint8))
        )
        self._image.paste(colours, (_FINER * self._margin,) * 2, mask)

    def _at(self, point: np.ndarray) -> tuple[float, float]:
        x, y = ((point + 0.5) * self._unit + _FINER * self._margin).tolist()
        return x, y

    def _polygon(self, outline: np.ndarray, colour: tuple[int, ...]) -> None:
        self._draw.polygon([self._at(point) for point in outline], colour)

    def _mark(self, state: Sequence[int], colour: str, outline: np.ndarray) -> None:
        outline = max(_MARK_CELL / self._cell, 1) * outline
        place = np.array([state[1], state[0]])
        for larger, filled in ((1.4, _INK), (1.25, _PAPER), (1, _colour(colour))):
            self._polygon(larger * outline + place, filled)


def wrapped(caption: str, panels: list[Image.Image]) -> list[str]:
    """A caption in the lines that it needs below panels."""
    lines = [""]
    for word in caption.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _font().getlength(longer) > _width(panels) - 2 * _GAP:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def joined(
    panels: list[Image.Image], caption: list[str], done: float, *, lines: int
) -> Image.Image:
    """Panels side by side, with a caption below and a bar that says how much is done.

    Args:
      panels: of any sizes.
      caption: its lines.
      done: from 0 to 1.
      lines: for how many there is room.
    """
    width = _width(panels)
    height = max(panel.height for panel in panels) + _GAP
    picture = Image.new("RGB", (width, height + _BAND + _LINE * lines), _PAPER)
    left = _GAP
    for panel in panels:
        picture.paste(panel, (left, _GAP))
        left += panel.width + _GAP
    draw = ImageDraw.Draw(picture)
    draw.rectangle((_GAP, height + 5, width - _GAP - 1, height + 8), _TRACK)
    draw.rectangle((_GAP, height + 5, _GAP + done * (width - 2 * _GAP - 1), height + 8), _BAR)
    for number, line in enumerate(caption):
        draw.text((_GAP, height + 13 + _LINE * number), line, _INK, _font())
    return picture


def _width(panels: list[Image.Image]) -> int:
    return sum(panel.width for panel in panels) + _GAP * (len(panels) + 1)


def _font() -> Any:
    return ImageFont.load_default(13)


def _colour(text: str) -> tuple[int, int, int]:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


_GREYS = [tuple(np.linspace(_INK, _PAPER, 5, dtype=int)[i].tolist()) for i in (1, 2, 3)]
# What a film may not show in another colour; greys are the edges of letters.
FIXED = tuple(
    dict.fromkeys(
        [_PAPER, _INK, *_GREYS, _BAR, _TRACK, *map(_colour, (WALL, FREE, START, GOAL)), *_ON_PATH]
    )
)
