"""Tables of a study: ours beside the paper's, and where each number comes from."""

import csv
import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from hvin_jax._files import write_text
from hvin_jax.report.paper_numbers import TITLES, Rate, paper_rate
from hvin_jax.report.runs import Group
from hvin_jax.tasks.mechanisms import MECHANISMS

Table = list[list[str]]  # the first row is the header
# The variants that have a row of the paper beside them: the model as it is, however it was trained.
_OF_THE_PAPER = ("", "long", "ours", "augmented", "transferred", "tied", "views")


def rates_table(groups: Sequence[Group], metric: str, size: int) -> Table:
    """Success or optimality rates by SPL range, ours and, where there are any, the paper's.

    In brackets, where it is known, the standard error over mazes.

    Args:
      groups: the cells; those of other maze sizes are left out.
      metric: "success_rate" or "optimality_rate".
      size: side of the mazes.
    """
    groups = [group for group in groups if group.size == size]
    ranges = sorted({spl_range for group in groups for spl_range in group.ranges})
    table = [["model", "N", "variant", "seeds"]]
    for group in groups:
        row = [TITLES[group.model], str(group.depth), group.variant or "–", str(len(group.runs))]
        table.append(row)
    for spl_range in ranges:
        paper = [_of_the_paper(group, metric, spl_range) for group in groups]
        where = _in_words(spl_range)
        table[0] += [where, f"paper {where}"] if any(paper) else [where]
        for group, row, rate in zip(groups, table[1:], paper, strict=True):
            ours, error = group.rate(metric, spl_range), group.error(metric, spl_range)
            row.append(spread(ours) + ("" if error is None else f" ({error:.2f})"))
            if any(paper):
                row.append(spread(rate))
    return table


def _of_the_paper(group: Group, metric: str, spl_range: tuple[int, int]) -> Rate | None:
    cell = (metric, group.model, group.size, group.depth, spl_range)
    if group.variant in MECHANISMS:
        return paper_rate(*cell, task=group.variant)
    if group.variant in _OF_THE_PAPER:
        return paper_rate(*cell, task="3d" if group.variant == "views" else "2d")
    return None


def evaluations_table(groups: Sequence[Group], size: int) -> Table:
    """Rates on other mazes than the test's by SPL range, ± the standard error over mazes.

    Args:
      groups: the cells; those of other maze sizes are left out.
      size: side of the mazes.

    Returns:
      A row for each `eval-*.json` of the runs that has their ranges; the header alone of none.
    """
    groups = [group for group in groups if group.size == size]
    known = {spl_range for group in groups for spl_range in group.ranges}
    tests = []
    for run in (run for group in groups for run in group.runs):
        for scores in run.evaluations:
            rows = {(row["low"], row["high"]): row for row in scores["ranges"]}
            if known & rows.keys():
                mazes = f"{scores['mazes']:,} of {pathlib.PurePath(scores['data']).name}"
                tests.append((run.folder.name, mazes, scores.get("layers", "own"), rows))
    ranges = sorted(known.intersection(*(rows for *_, rows in tests)))
    cells = [(what, spl_range) for what in ("success", "optimality") for spl_range in ranges]
    titles = {"success": "SR", "optimality": "OR"}
    table = [["run", "mazes", "layers", *(f"{titles[what]} {_in_words(x)}" for what, x in cells)]]
    for name, mazes, layers, rows in tests:
        rates = [_with_error(rows[spl_range], what) for what, spl_range in cells]
        table.append([f"[{name}](../{name})", mazes, str(layers), *rates])
    return table


def provenance_table(groups: Sequence[Group]) -> Table:
    """How each number was made: steps, time, commit, and whether the run collapsed."""
    header = ["run", "configuration", "metrics", "latent actions", "steps", "not finite"]
    table = [[*header, "best after", "minutes", "commit", "collapsed"]]
    for group in groups:
        for run in group.runs:
            result, name = run.result, run.folder.name
            model = result["config"]["model"]
            table.append(
                [
                    f"[{name}](../{name})",
                    f"[json](../{name}/config.json)",
                    f"[jsonl](../{name}/metrics.jsonl)",
                    _width(model),
                    str(result["steps"]),
                    str(result["skipped_steps"]),
                    str(result["best_step"]),
                    f"{result['wall_seconds'] / 60:.0f}",
                    ", ".join(dict.fromkeys(str(x["commit"]) for x in result["sittings"])),
                    "yes" if result["collapsed"] else "no",
                ]
            )
    return table


def _with_error(row: Mapping[str, Any], what: str) -> str:
    """A rate of one range in percent, ± its standard error over mazes if it is known."""
    rate, error = row[f"{what}_rate"], row.get(f"{what}_error")
    return spread(
        rate if rate is None else Rate(100 * rate, error if error is None else 100 * error)
    )


def _in_words(spl_range: tuple[int, int]) -> str:
    low, high = spl_range
    return f"({low},{high}]" if low else f"[1,{high}]"


def _width(model: Mapping[str, Any]) -> str:
    """How many latent actions a model has; 0 stands for as many as the task has."""
    if "latent_actions" not in model:
        return f"hidden {model['hidden']}"
    return str(model["latent_actions"] or "those of the task")


def markdown(table: Table) -> str:
    """A table as Markdown."""
    header, *rows = table
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_table(table: Table, path: pathlib.Path) -> None:
    """Writes a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    write_text(path, text.getvalue())


def spread(rate: Rate | None) -> str:
    """Mean ± standard deviation; a dash for nothing."""
    if rate is None:
        return "–"
    return f"{rate.mean:.2f}" if rate.std is None else f"{rate.mean:.2f} ± {rate.std:.2f}"
