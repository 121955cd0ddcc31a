"""Learning curves."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = {"loss": "#5b6b7d", "success_rate": "#12a37a", "optimality_rate": "#3a6fd8"}


def learning_curves(history: Sequence[dict[str, Any]], *, title: str = "") -> Figure:
    """Training loss, and success and optimality rates in validation, over the steps.

    Args:
      history: lines of `metrics.jsonl`.
      title: of the figure.

    Returns:
      The figure.
    """
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
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
    _tidy(left, right)
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
