"""Figures of a study: success rates over path lengths in the test, over steps in training."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvin_jax.report.paper_numbers import paper_rate
from hvin_jax.report.runs import Group
from hvin_jax.training.workdir import read_metrics

Panels = Mapping[str, Sequence[Group]]
Colour = str | np.ndarray
_COLOURS = {
    "vin": "#d1495b",
    "gppn": "#edae49",
    "highway_network": "#30638e",
    "highway_vin": "#12a37a",
    "dtvin": "#7b4fa3",
    "highway_dtvin": "#8d6e63",
}
# Where fewer start states than this were pooled, neighbouring lengths are taken together.
_WINDOW = 5
# The scale of learning curves: rates below and above are drawn at its ends.
_ODDS_RANGE = (0.002, 0.9995)
_ODDS_TICKS = (0.005, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998)
_PAPER = "the paper, by range"
# Panels beside each other, as many as there are models.
_COLUMNS = 4


def spl_figure(panels: Panels, *, by_model: bool) -> Figure:
    """Success rates over SPL, a panel for each entry; dashed, the paper's means over its ranges.

    Args:
      panels: title → the cells to draw.
      by_model: whether colours tell models apart, or the cells of one model.

    Returns:
      The figure.
    """

    def draw(axes: Axes, group: Group, shade: Colour) -> None:
        curve = _smooth(group.curve())
        colour = _COLOURS[group.model] if by_model else shade
        axes.plot(np.arange(len(curve)), curve, label=group.label, color=colour, linewidth=1.8)
        _paper_means(axes, group, colour)

    return _figure(panels, draw, "shortest path length", "lower left")


def _paper_means(axes: Axes, group: Group, colour: Colour) -> None:
    """The paper's success rate over each range, dashed; one line of the legend for all cells."""
    if group.variant:
        return
    for low, high in group.ranges:
        cell = (group.model, group.size, group.depth, (low, high))
        if paper := paper_rate("success_rate", *cell):
            _, labels = axes.get_legend_handles_labels()
            label = None if _PAPER in labels else _PAPER
            axes.plot([low, high], 2 * [paper.mean], "--", color=colour, label=label, alpha=0.8)


def learning_figure(panels: Panels) -> Figure:
    """Success rates in validation over training steps, a line for each run, a colour for each cell.

    The scale is that of the odds, so that collapses show as well as the last failures.

    Args:
      panels: title → the cells to draw.

    Returns:
      The figure.
    """

    def draw(axes: Axes, group: Group, shade: Colour) -> None:
        label: str | None = group.label
        for run in group.runs:
            validations = [line for line in read_metrics(run.folder) if "success_rate" in line]
            axes.plot(
                [line["step"] for line in validations],
                np.clip([line["success_rate"] for line in validations], *_ODDS_RANGE),
                label=label,
                color=shade,
                linewidth=1.2,
                marker="o",
                markersize=2.5,
            )
            label = None  # the runs of a cell share a line of the legend

    figure = _figure(panels, draw, "training step", "lower right")
    for axes in figure.axes:
        axes.set_yscale("logit")
        axes.set(ylim=_ODDS_RANGE)
        axes.set_yticks(_ODDS_TICKS, labels=[f"{100 * tick:g}" for tick in _ODDS_TICKS])
        axes.set_yticks([], minor=True)
    return figure


def _figure(
    panels: Panels,
    draw: Callable[[Axes, Group, Colour], None],
    xlabel: str,
    legend: Literal["lower left", "lower right"],
) -> Figure:
    columns = min(len(panels), _COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(5.2 * columns, 3.8 * rows), layout="constrained")
    for place, (title, groups) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, place)
        shades = colormaps["viridis"](np.linspace(0.1, 0.85, max(len(groups), 1)))
        for shade, group in zip(shades, groups, strict=True):
            draw(axes, group, shade)
        axes.set(title=title, xlabel=xlabel, ylabel="success rate (%)", ylim=(-2, 102))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8, loc=legend)
    return figure


def _smooth(curve: np.ndarray) -> np.ndarray:
    """A running mean over a few neighbouring lengths; lengths that do not occur stay out."""
    smooth = np.full(len(curve), np.nan)
    for index in range(1, len(curve)):
        window = curve[max(index - _WINDOW // 2, 1) : index + _WINDOW // 2 + 1]
        if np.isfinite(window).any():
            smooth[index] = np.nanmean(window)
    return smooth
