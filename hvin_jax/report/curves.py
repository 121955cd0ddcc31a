"""Learning curves."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = {"loss": "#5b6b7d", "success_rate": "#12a37a", "optimality_rate": "#3a6fd8"}

# Panels beside each other.
_COLUMNS = 4


def learning_curves(history: Sequence[dict[str, Any]], *, title: str = "") -> Figure:
    """Training loss, rates in validation and, if there are any, temperatures, over the steps.

    Args:
      history: lines of `metrics.jsonl`.
      title: of the figure.

    Returns:
      The figure.
    """
    temperatures = [line for line in history if "alpha" in line]
    panels = 3 if temperatures else 2
    figure = Figure(figsize=(4.5 * panels, 3.4), layout="constrained")
    left, right, *last = figure.subplots(1, panels)
    reports = [line for line in history if line.get("loss") is not None]
    left.plot(
        [line["step"] for line in reports],
        [line["loss"] for line in reports],
        color=_COLOURS["loss"],
        linewidth=1.2,
    )
    left.set(title="training loss", xlabel="step")
    left.set_yscale("log")
    _rates(right, [line for line in history if "success_rate" in line], "step")
    for axes in last:
        _temperatures(axes, temperatures)
    _tidy(left, right, *last)
    if title:
        figure.suptitle(title)
    return figure


def reward_curves(history: Sequence[dict[str, Any]]) -> Figure:
    """Reward of an action in training, and rates in validation, over the updates.

    Args:
      history: of `python -m experiments.reward`, see its `result.json`.

    Returns:
      The figure.
    """
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    reports = [line for line in history if "reward" in line]
    left.plot(
        [line["update"] for line in reports],
        [line["reward"] for line in reports],
        color=_COLOURS["loss"],
        linewidth=1.2,
    )
    left.set(title="reward of an action", xlabel="update")
    _rates(right, history, "update")
    _tidy(left, right)
    return figure


def temperatures_figure(histories: Mapping[str, Sequence[dict[str, Any]]]) -> Figure:
    """The temperatures of the blocks of several runs, a panel for each.

    Args:
      histories: title → lines of `metrics.jsonl` that have temperatures.

    Returns:
      The figure.
    """
    columns = min(len(histories), _COLUMNS)
    rows = math.ceil(len(histories) / columns)
    figure = Figure(figsize=(4.5 * columns, 3.4 * rows), layout="constrained")
    figure.suptitle("Temperature α of each block")
    for place, (title, validations) in enumerate(histories.items(), start=1):
        axes = figure.add_subplot(rows, columns, place)
        _temperatures(axes, validations)
        axes.set_title(title, fontsize="medium")
        _tidy(axes)
    return figure


def _temperatures(axes: Axes, validations: Sequence[dict[str, Any]]) -> None:
    """The temperature α of every block over the steps, from the first block, the darkest."""
    steps = [line["step"] for line in validations]
    blocks = np.array([line["alpha"] for line in validations]).T
    shades = colormaps["viridis"](np.linspace(0, 0.9, len(blocks)))
    ends = {0: "first block", len(blocks) - 1: "last block"} if len(blocks) > 1 else {}
    for number, (block, shade) in enumerate(zip(blocks, shades, strict=True)):
        axes.plot(steps, block, color=shade, linewidth=1.2, label=ends.get(number))
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set(title="temperature α of the blocks", xlabel="step")
    if ends:
        axes.legend(frameon=False)


def _rates(axes: Axes, validations: Sequence[dict[str, Any]], count: str) -> None:
    for name, label in (("success_rate", "success"), ("optimality_rate", "optimality")):
        axes.plot(
            [line[count] for line in validations],
            [100 * line[name] for line in validations],
            color=_COLOURS[name],
            marker="o",
            markersize=3,
            label=label,
        )
    axes.set(title="validation, all start states (%)", xlabel=count, ylim=(-2, 102))
    axes.legend(frameon=False, loc="lower right")


def _tidy(*all_axes: Axes) -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
