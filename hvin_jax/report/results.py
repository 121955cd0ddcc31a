"""What a run reports: numbers for `result.json`, and the same as a table to read."""

import importlib.metadata
import pathlib
import platform
import subprocess
from typing import Any

import jax

from hvin_jax.tasks.measures import SPL_RANGES, Scores

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
                "low": row.low,
                "high": row.high,
                "count": row.count,
                "success_rate": row.success_rate if row.count else None,
                "optimality_rate": row.optimality_rate if row.count else None,
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


def scores_table(test: dict[str, Any]) -> str:
    """The scores of `result.json` as a table for the terminal."""
    lines = ["shortest path    start states   success rate   optimality rate"]
    for row in test["ranges"]:
        where = f"({row['low']}, {row['high']}]" if row["low"] else f"[1, {row['high']}]"
        lines.append(_line(where, row["count"], row["success_rate"], row["optimality_rate"]))
    total = sum(test["starts_by_spl"])
    lines.append(_line("all", total, test["success_rate"], test["optimality_rate"]))
    lines.append(
        f"means over {test['mazes']} mazes: "
        f"%Opt {100 * test['percent_optimal']:.2f}, %Suc {100 * test['percent_success']:.2f}"
    )
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
        commit = git("rev-parse", "--short=7", "HEAD").stdout.strip()
        code = (":/", ":(top,exclude)results", ":(top,exclude)*.md")
        clean = git("diff", "--quiet", "HEAD", "--", *code).returncode == 0
    except OSError:
        return None
    return (commit if clean else f"{commit}-dirty") if commit else None


def _line(where: str, count: int, success: float | None, optimality: float | None) -> str:
    rates = ("–" if x is None else f"{100 * x:.2f} %" for x in (success, optimality))
    return "{:<16}{:>13}{:>15}{:>18}".format(where, f"{count:,}", *rates)
