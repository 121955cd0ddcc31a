"""A page of a report, and what most of them show: rates of finished runs, how they were made."""

import pathlib
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from experiments.console import say
from hvin_jax._files import write_text
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
from hvin_jax.tasks.drawing import save_figure


class Page:
    """The report of one study: what it says and what it is called."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        """Collects tables and figures for `folder/name.md`."""
        self._folder, self._name = folder, name
        self._parts = [f"# {name}\n"]

    def text(self, text: str) -> None:
        """Adds a paragraph."""
        self._parts.append(text + "\n")

    def table(self, table: Table, caption: str, suffix: str = "") -> None:
        """Adds a table, and writes it as CSV if it has a suffix."""
        self._parts += [f"{caption}\n", markdown(table)]
        if suffix:
            write_table(table, self._folder / f"{self._name}-{suffix}.csv")

    def figure(self, figure: Figure, caption: str, suffix: str) -> None:
        """Adds a figure."""
        for kind in ("png", "svg"):
            save_figure(figure, self._folder / f"{self._name}-{suffix}.{kind}")
        self._parts.append(f"![{caption}]({self._name}-{suffix}.png)\n")

    @property
    def content(self) -> str:
        """All of it, as Markdown."""
        return "\n".join(self._parts)

    def write(self) -> None:
        """Writes the page."""
        path = self._folder / f"{self._name}.md"
        write_text(path, self.content)
        say(str(path))


def depths(page: Page, groups: Sequence[Group]) -> None:
    """Success and optimality rates of all models over depths and SPL ranges."""
    for size in sorted({group.size for group in groups}):
        for metric, words in (("success_rate", "Success"), ("optimality_rate", "Optimality")):
            caption = f"{words} rates in %, {size}×{size}, mean ± std over seeds:"
            page.table(rates_table(groups, metric, size), caption, f"{metric}-{size}")


def provenance(page: Page, groups: Sequence[Group]) -> None:
    """How the runs were made: learning curves, and a table of what each of them did."""
    panels: dict[str, list[Group]] = {}
    for group in sorted(groups, key=lambda group: (group.size, group.depth)):
        title = f"{TITLES[group.model]}, {group.size}×{group.size}, validation"
        panels.setdefault(title, []).append(group)
    page.figure(learning_figure(panels), "learning curves", "learning")
    page.table(provenance_table(groups), "How each number was made:")


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
