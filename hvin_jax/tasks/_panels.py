"""How large the panels of a figure are and where they go, for maps of any shape, in inches.

A panel holds a map and its title. It is never narrower than a title, and its cells are never so
large that a map of a few cells becomes a poster.
"""

import textwrap
from typing import NamedTuple

from hvin_jax._extras import needs

with needs("drawing", "matplotlib", extra="draw"):
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

INK = "#2b3440"  # the colour of texts and outlines
_LARGEST_CELL = 0.8
_TITLE = 0.35  # the height of a panel's title
_CHARACTER = 0.095  # the width of a character in the title of a figure
# From this ratio of sides on, a map is long: its panels are stacked along the shorter side.
_LONG = 2


class Panel(NamedTuple):
    """The room for a map and its title."""

    width: float
    height: float


def panel(size: tuple[int, ...], *, side: float, least_width: float = 1.2) -> Panel:
    """The room for a map.

    Args:
      size: `(H, W)`.
      side: the longer side of the map, unless its cells would be too large.
      least_width: that the title needs.
    """
    cell = min(side / max(size), _LARGEST_CELL)
    return Panel(max(size[1] * cell, least_width), size[0] * cell + _TITLE)


class Arrangement(NamedTuple):
    """One large panel with a grid of smaller ones beside it, or below it if the map is wide.

    Attributes:
      large: the first panel.
      small: each of the others.
      rows: of the grid of others.
      columns: of the grid of others.
      below: whether they are below the first one.
    """

    large: Panel
    small: Panel
    rows: int
    columns: int
    below: bool

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of all panels together."""
        width, height = self.columns * self.small.width, self.rows * self.small.height
        if self.below:
            return max(self.large.width, width), self.large.height + height
        return self.large.width + width, max(self.large.height, height)


def arrange(size: tuple[int, ...], *, count: int) -> Arrangement:
    """Places for a map `(H, W)` and `count` smaller ones of it."""
    height, width = size
    several = min(count, 2)
    rows, columns = several, -(-count // several)
    if width > _LONG * height:
        side = 10.0
        small = panel(size, side=side / columns)
        return Arrangement(panel(size, side=side), small, rows, columns, below=True)
    large = panel(size, side=5.6, least_width=1.6)
    if height > _LONG * width:
        return Arrangement(large, panel(size, side=5.6), 1, count, below=False)
    return Arrangement(large, panel(size, side=5.6 / rows - 0.15), rows, columns, below=False)


def new_figure(
    width: float, height: float, *, title: str, note: str = "", scale: str = ""
) -> Figure:
    """An empty figure with room for panels of a size, its title and note, and a scale of colours.

    Args:
      width: of all panels together, in inches.
      height: of all panels together.
      title: of the figure.
      note: a remark below all.
      scale: where a scale of colours will stand: "right", "bottom" or nowhere.
    """
    width = max(width + (1.0 if scale == "right" else 0), 4.5)
    height += 0.65 if scale == "bottom" else 0
    lines = _wrapped(title, width) if title else ""
    height += 0.25 * (lines.count("\n") + 1 if lines else 0) + (0.3 if note else 0)
    layout = ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.07)
    figure = Figure(figsize=(width, height), layout=layout)
    if lines:
        figure.suptitle(lines, color=INK, fontsize=13)
    if note:
        figure.supxlabel(_wrapped(note, 1.5 * width), color=INK, fontsize=8, x=0.01, ha="left")
    return figure


def _wrapped(text: str, width: float) -> str:
    """A text in as many lines as a width needs."""
    return textwrap.fill(text, max(int(width / _CHARACTER), 20))
