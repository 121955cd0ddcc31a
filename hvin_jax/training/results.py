"""What came out of a run: numbers for `result.json`, a table and a card to read."""

import dataclasses
import importlib.metadata
import math
import pathlib
import platform
import subprocess
from collections.abc import Mapping
from typing import Any

import jax

from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import SPL_RANGES, Scores, start_states
from hvin_jax.training.evaluation import Evaluation

_PACKAGES = ("hvin_jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")


def spl_ranges(side: int, longest: int) -> tuple[tuple[int, int], ...]:
    """The ranges (low, high] of path lengths to report.

    The paper's for its maze sizes (as long as paths are not longer), else three equal parts.

    Args:
      side: the longer side of the mazes.
      longest: the longest shortest path.
    """
    if side in SPL_RANGES:
        ranges = SPL_RANGES[side]
        last = ranges[-1][1]
        return ranges if longest <= last else (*ranges, (last, longest))
    third = max(-(-longest // 3), 1)
    return tuple((low, low + third) for low in range(0, 3 * third, third))


def scores_dict(scores: Scores, ranges: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    """The scores as they stand in `result.json`, see `workdir.RESULT_SCHEMA`."""
    return {
        "mazes": scores.mazes,
        "success_rate": scores.success_rate,
        "optimality_rate": scores.optimality_rate,
        "ranges": [
            {
                name: None if isinstance(value, float) and math.isnan(value) else value
                for name, value in dataclasses.asdict(row).items()
            }
            for row in scores.by_range(ranges)
        ],
        "percent_optimal": scores.percent_optimal,
        "percent_success": scores.percent_success,
        "prediction_error": scores.prediction_error,
        "starts_by_spl": scores.starts.tolist(),
        "successes_by_spl": scores.successes.tolist(),
        "optimal_by_spl": scores.optimal.tolist(),
    }


def test_scores(evaluation: Evaluation, data: MazeData) -> dict[str, Any]:
    """How a model did on some mazes, as it stands in `result.json`, see `workdir.RESULT_SCHEMA`."""
    longest = int(data.spl[start_states(data.spl)].max(initial=0))
    scores = scores_dict(evaluation.scores, spl_ranges(max(data.size), longest))
    if data.cost is not None:
        succeeds = evaluation.scores.successes.any()
        scores["cost_ratio"] = evaluation.scores.cost_ratio if succeeds else None
    return {**scores, "map_accuracy": evaluation.map_accuracy}


def scores_table(test: dict[str, Any]) -> str:
    """The scores of `result.json` as a table for the terminal."""
    lines = ["shortest path    start states   success rate   optimality rate"]
    for row in test["ranges"]:
        where = f"({row['low']}, {row['high']}]" if row["low"] else f"[1, {row['high']}]"
        lines.append(_line(where, row["count"], row["success_rate"], row["optimality_rate"]))
    total = sum(test["starts_by_spl"])
    lines.append(_line("all", total, test["success_rate"], test["optimality_rate"]))
    lines.append(
        f"as the baseline code counts, means over {test['mazes']} mazes: "
        f"%Opt {100 * test['percent_optimal']:.2f}, %Suc {100 * test['percent_success']:.2f} "
        "(states without a path: optimal, but no success)"
    )
    if test.get("cost_ratio") is not None:
        lines.append(f"mean cost of successful paths: {test['cost_ratio']:.4f} of the cheapest")
    if test.get("map_accuracy") is not None:
        lines.append(f"cells whose map is predicted right: {100 * test['map_accuracy']:.3f} %")
    return "\n".join(lines)


def environment() -> dict[str, Any]:
    """Versions and device, for `result.json`."""
    device = jax.devices()[0]
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        "versions": {"python": platform.python_version()} | versions,
        "device": {
            "kind": device.device_kind,
            "platform": device.platform,
            "count": jax.device_count(),
            "processes": jax.process_count(),
        },
    }


def git_commit(folder: pathlib.Path) -> str | None:
    """The commit of a repository, with -dirty if its code has changes; None outside of one.

    Args:
      folder: somewhere in the repository. Neither its documents nor what is below `results`, which
        runs change, count as code.
    """

    def git(*arguments: str) -> subprocess.CompletedProcess:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    try:
        if not git("ls-files", ".").stdout:  # somebody else's, in which we are installed
            return None
        commit = git("rev-parse", "--short=7", "HEAD").stdout.strip()
        code = (":/", ":(top,exclude)results", ":(top,exclude)*.md")
        clean = git("diff", "--quiet", "HEAD", "--", *code).returncode == 0
    except OSError:
        return None
    return (commit if clean else f"{commit}-dirty") if commit else None


def _line(where: str, count: int, success: float | None, optimality: float | None) -> str:
    rates = ("–" if x is None else f"{100 * x:.2f} %" for x in (success, optimality))
    return "{:<16}{:>13}{:>15}{:>18}".format(where, f"{count:,}", *rates)


def card_text(card: Mapping[str, Any]) -> str:
    """The card of a trained planner in Markdown: what it is, how it was made, how good it is."""
    config = card["config"]
    settings = [
        f"- {group}: " + ", ".join(f"{name} {x}" for name, x in config[group].items() if x != "")
        for group in ("data", "model", "loss", "optimizer", "train")
        if group in config
    ]
    return f"""# {card["name"]}

A {config["model"]["kind"].replace("_", " ")} for {config["data"]["mechanism"]}, of
{card["num_params"]:,} parameters. Load this folder with `hvin_jax.load_planner`.

Trained for {card["steps"]:,} steps in {card["wall_seconds"] / 60:.0f} minutes on
{card["device"]["count"]} devices ({card["device"]["kind"]}),
commit {card["sittings"][-1]["commit"]}:

{chr(10).join(settings)}

Selected by validation after step {card["best_step"]:,}, then tested on {card["test"]["mazes"]:,}
mazes that it had never seen, from every start state:

```
{scores_table(card["test"])}
```

{_beyond(card.get("measured"))}
"""


def _beyond(measured: Mapping[str, Any] | None) -> str:
    """What is known of other maps than those of the test; `measured`: see `report.generality`."""
    if not measured:
        return (
            "It plans on maps of any size, but has learned from the ones above: expect less on "
            "much larger maps."
        )
    rows = [
        f"- {size}×{size}: success {100 * x['success_rate']:.2f} % in the mean, "
        f"{100 * x['worst_success_rate']:.2f} % in the worst family; optimal "
        f"{100 * x['optimality_rate']:.2f} %"
        for size, x in measured["by_size"].items()
    ]
    listed = measured.get("kernels")
    if listed:
        counts = ", ".join(f"{x['wrong']:,} of {x['kernels']:,} {k}" for k, x in listed.items())
        rows.append(
            "\nKernels that lead elsewhere than they should by more than 0.1 %, of all "
            f"arrangements of walls around a cell (hvin_jax/report/arrangements.py): {counts}."
        )
    return (
        f"Measured on new maps of {len(measured['families'])} families, most of which it was not "
        "trained on, from all start states:\n\n" + "\n".join(rows)
    )
