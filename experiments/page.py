"""A page of a report, and what most of them show: rates of finished runs, how they were made.

Of a page, what stands between two marks is made from the runs. All else, the title included, is
written by hand, and stays when the page is made again.
"""

import io
import pathlib
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from PIL import Image

from experiments.console import say
from hvin_jax._files import atomic_write, write_text
from hvin_jax.report.figures import learning_figure
from hvin_jax.report.paper_numbers import TITLES
from hvin_jax.report.runs import Group, Run
from hvin_jax.report.tables import (
    Table,
    markdown,
    provenance_table,
    rates_table,
    write_table,
)

_BEGIN, _END = "<!-- made by experiments.report -->", "<!-- end -->"
# Sharp at the width of a page, and small: these files are kept in git.
_DPI, _COLOURS = 100, 128


class Page:
    """The report of one study: what it says and what it is called."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        """Collects tables and figures for `folder/name.md`."""
        self._folder, self._name = folder, name
        self._parts: list[str] = []

    def text(self, text: str) -> None:
        """Adds a paragraph."""
        self._parts.append(text + "\n")

    def table(self, table: Table, caption: str, suffix: str = "") -> None:
        """Adds a table, and writes it as CSV if it has a suffix."""
        self._parts += [f"{caption}\n", markdown(table)]
        if suffix:
            write_table(table, self._folder / f"{self._name}-{suffix}.csv")

    def figure(self, figure: Figure, caption: str, suffix: str) -> None:
        """Adds a figure, and writes it as PNG."""
        name = f"{self._name}-{suffix}.png"
        _write_png(figure, self._folder / name)
        self._parts.append(f"![{caption}]({name})\n")

    @property
    def content(self) -> str:
        """All that is made from the runs, as Markdown."""
        return "\n".join(self._parts)

    def write(self) -> None:
        """Writes the page, around which what was written by hand stays as it is."""
        path = self._folder / f"{self._name}.md"
        before, after = f"# {self._name}\n\n", "\n"
        if path.exists():
            page = path.read_text()
            head, begin, rest = page.partition(_BEGIN)
            _, end, tail = rest.partition(_END)
            if begin and end:
                before, after = head, tail
        write_text(path, f"{before}{_BEGIN}\n\n{self.content}\n{_END}{after}")
        say(str(path))


def depths(page: Page, groups: Sequence[Group]) -> None:
    """Success and optimality rates of all models over depths and SPL ranges."""
    for size in sorted({group.size for group in groups}):
        for metric, words in (("success_rate", "Success"), ("optimality_rate", "Optimality")):
            caption = f"{words} rates in %, {size}×{size}, mean ± std over seeds:"
            page.table(rates_table(groups, metric, size), caption, f"{metric}-{size}")


def provenance(page: Page, groups: Sequence[Group], *, curves: bool = True) -> None:
    """How the runs were made: learning curves, and a table of what each of them did.

    Args:
      page: where it is said.
      groups: the cells.
      curves: whether to draw learning curves; pages that share runs need them once.
    """
    if curves:
        _learning_curves(page, groups)
    page.table(provenance_table(groups), "How each number was made:")


def _learning_curves(page: Page, groups: Sequence[Group]) -> None:
    panels: dict[str, list[Group]] = {}
    for group in sorted(groups, key=lambda group: (group.size, group.depth)):
        title = f"{TITLES[group.model]}, {group.size}×{group.size}, validation"
        panels.setdefault(title, []).append(group)
    page.figure(learning_figure(panels), "learning curves", "learning")


def finished_groups(folders: Mapping[pathlib.Path, tuple[str, int, int, str]]) -> list[Group]:
    """The cells that have at least one finished run.

    Args:
      folders: those of runs, and what is trained there: model, maze size, depth, variant.
    """
    runs: dict[tuple[str, int, int, str], list[Run]] = {}
    for folder, cell in folders.items():
        if run := Run.load(folder):
            runs.setdefault(cell, []).append(run)
    return [Group(*cell, tuple(of_cell)) for cell, of_cell in runs.items()]


def _write_png(figure: Figure, path: pathlib.Path) -> None:
    """Writes a figure with a palette of its own colours, a third of the size of all colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_DPI, facecolor="white")
    image = Image.open(drawn).convert("RGB")
    with atomic_write(path) as file:
        image.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
