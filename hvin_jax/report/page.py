"""A page of a report, and what most of them show: rates of finished runs, how they were made.

Of a page, what stands between two marks is made from the runs. All else, the title included, is
written by hand, and stays when the page is made again.
"""

import io
import pathlib
import re
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from PIL import Image

from hvin_jax._files import atomic_write, write_text
from hvin_jax.report.curves import temperatures_figure
from hvin_jax.report.figures import learning_figure
from hvin_jax.report.paper_numbers import TITLES
from hvin_jax.report.runs import Group, Run
from hvin_jax.report.tables import (
    Table,
    evaluations_table,
    markdown,
    provenance_table,
    rates_table,
    write_table,
)
from hvin_jax.training.workdir import read_metrics

# What stands before and after what is made; the first names the command that makes it.
_MADE = re.compile(r"<!-- made by \S+ -->.*?<!-- end -->", re.DOTALL)
# Sharp at the width of a page, and small: these files are kept in git.
_DPI, _COLOURS = 100, 128


class Page:
    """The report of one study: what it says and what it is called."""

    def __init__(
        self, folder: pathlib.Path, name: str, made_by: str = "experiments.report"
    ) -> None:
        """Collects tables and figures for `folder/name.md`, which a command makes."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._name, self._made_by = folder, name, made_by
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

    def write(self) -> pathlib.Path:
        """Writes the page; what was written by hand around it stays as it is. Returns its path."""
        path = self._folder / f"{self._name}.md"
        before, after = f"# {self._name}\n\n", "\n"
        if path.exists():
            page = path.read_text()
            if made := _MADE.search(page):
                before, after = page[: made.start()], page[made.end() :]
        marks = f"<!-- made by {self._made_by} -->", "<!-- end -->"
        write_text(path, f"{before}{marks[0]}\n\n{self.content}\n{marks[1]}{after}")
        return path


def depths(page: Page, groups: Sequence[Group]) -> None:
    """Success and optimality rates of all models over depths and SPL ranges."""
    for size in sorted({group.size for group in groups}):
        for metric, words in (("success_rate", "Success"), ("optimality_rate", "Optimality")):
            caption = f"{words} rates in %, {size}×{size}, mean ± std over seeds"
            caption += " (standard error over mazes, where it is known):"
            page.table(rates_table(groups, metric, size), caption, f"{metric}-{size}")
        evaluations = evaluations_table(groups, size)
        if len(evaluations) > 1:
            page.table(evaluations, f"On other mazes, {size}×{size}, ± standard error over mazes:")


def provenance(page: Page, groups: Sequence[Group], *, curves: bool = True) -> None:
    """How the runs were made: learning curves, and a table of what each of them did.

    Args:
      page: where it is said.
      groups: the cells.
      curves: whether to draw learning curves; pages that share runs need them once.
    """
    if curves:
        _learning_curves(page, groups)
        _temperatures(page, groups)
    page.table(provenance_table(groups), "How each number was made:")


def _learning_curves(page: Page, groups: Sequence[Group]) -> None:
    panels: dict[str, list[Group]] = {}
    for group in sorted(groups, key=lambda group: (group.size, group.depth)):
        title = f"{TITLES[group.model]}, {group.size}×{group.size}, validation"
        panels.setdefault(title, []).append(group)
    page.figure(learning_figure(panels), "learning curves", "learning")


def _temperatures(page: Page, groups: Sequence[Group]) -> None:
    """How the temperatures of highway blocks were learned, where that was noted."""
    histories = {}
    for group in groups:
        noted = (
            [line for line in read_metrics(run.folder) if "alpha" in line] for run in group.runs
        )
        # One run of each group: some may be older than the notes.
        if lines := next(filter(None, noted), None):
            histories[f"{group.label}, {group.size}×{group.size}"] = lines
    if histories:
        page.figure(temperatures_figure(histories), "temperatures α", "temperatures")


def finished_groups(folders: Mapping[pathlib.Path, str]) -> list[Group]:
    """The finished runs among some, those that differ only in the seed together.

    Args:
      folders: of runs, and which variant of a model is trained there; "" if it is as it is.
    """
    runs: dict[tuple[str, int, int, str], list[Run]] = {}
    for folder, variant in folders.items():
        if run := Run.load(folder):
            runs.setdefault((*run.cell, variant), []).append(run)
    return [Group(*cell, tuple(of_cell)) for cell, of_cell in runs.items()]


def _write_png(figure: Figure, path: pathlib.Path) -> None:
    """Writes a figure with a palette of its own colours, a third of the size of all colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_DPI, facecolor="white")
    image = Image.open(drawn).convert("RGB")
    with atomic_write(path) as file:
        image.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
