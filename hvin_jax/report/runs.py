"""Finished runs, grouped by what they trained: seeds of one cell belong together."""

import dataclasses
import os
import pathlib
import statistics
from collections.abc import Iterable
from typing import Any

import numpy as np

from hvin_jax._files import read_json
from hvin_jax.report.paper_numbers import TITLES, Rate


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
      folder: where it is.
      result: its `result.json`.
    """

    folder: pathlib.Path
    result: dict[str, Any]

    @classmethod
    def load(cls, folder: pathlib.Path) -> "Run | None":
        """The run of a folder; None if it is not finished."""
        path = folder / "result.json"
        if not os.path.lexists(path):
            return None
        run = cls(folder, read_json(path))
        try:
            run._check()
        except KeyError as error:
            raise ValueError(f"{path} is not the result of a run: {error} is missing") from error
        except (TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path} is not the result of a run: {error}") from error
        return run

    def _check(self) -> None:
        """Looks at everything that pages are made of."""
        model, size, depth = self.cell
        if model not in TITLES:
            raise ValueError(f"it has a model {model!r}, expected one of {', '.join(TITLES)}")
        for name, number in (("size", size), ("depth", depth)):
            if type(number) is not int or number < 1:
                raise ValueError(f"its {name} is {number!r}, expected a number of 1 or more")
        for name in ("steps", "skipped_steps", "best_step", "wall_seconds", "collapsed"):
            if not isinstance(self.result[name], int | float):
                raise ValueError(f"its {name} is {self.result[name]!r}, expected a number")
        for sitting in self.result["sittings"]:
            sitting["commit"]
        test = self.result["test"]
        _check_ranges(test)
        for name in ("starts_by_spl", "successes_by_spl"):
            np.array(test[name], float)

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """Its tests on other mazes, where that was asked for: what `eval-*.json` holds."""
        found = []
        for path in sorted(self.folder.glob("eval-*.json")):
            scores = read_json(path)
            try:
                _check_ranges(scores)
                found.append({"data": str(scores["data"]), "mazes": int(scores["mazes"]), **scores})
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path} is not what --mode=eval writes: {error!r}") from error
        return found

    @property
    def cell(self) -> tuple[str, int, int]:
        """What was trained: kind of model, side of the mazes, number of layers."""
        config = self.result["config"]
        model = config["model"]
        depth = model.get("depth") or model["num_blocks"] * model["block_depth"]
        return model["kind"], config["data"]["size"], depth


@dataclasses.dataclass(frozen=True)
class Group:
    """The finished runs of one cell, one for each seed.

    Attributes:
      model: its kind.
      size: side of the mazes.
      depth: `N`.
      variant: what was changed; "" for nothing.
      runs: at least one.
    """

    model: str
    size: int
    depth: int
    variant: str
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """What figures and tables call it."""
        variant = f" ({self.variant.replace('_', ' ')})" if self.variant else ""
        return f"{TITLES[self.model]} N = {self.depth}{variant}"

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The SPL ranges (low, high] that were measured."""
        return [(row["low"], row["high"]) for row in self.runs[0].result["test"]["ranges"]]

    def rate(self, metric: str, spl_range: tuple[int, int]) -> Rate | None:
        """Mean and standard deviation over seeds in percent; None if there are no start states.

        Args:
          metric: "success_rate" or "optimality_rate".
          spl_range: one of `ranges`.
        """
        rates = [
            100 * row[metric]
            for run in self.runs
            for row in run.result["test"]["ranges"]
            if (row["low"], row["high"]) == spl_range and row[metric] is not None
        ]
        return mean_and_std(rates)

    def error(self, metric: str, spl_range: tuple[int, int]) -> float | None:
        """The standard error over mazes in percent, a mean over seeds; None if a run has none.

        Args:
          metric: "success_rate" or "optimality_rate".
          spl_range: one of `ranges`.
        """
        errors = [
            row.get(metric.replace("rate", "error"))
            for run in self.runs
            for row in run.result["test"]["ranges"]
            if (row["low"], row["high"]) == spl_range
        ]
        known = [x for x in errors if x is not None]
        return 100 * statistics.fmean(known) if known and len(known) == len(errors) else None

    def curve(self) -> np.ndarray:
        """The success rate at each SPL in percent, pooled over seeds; nan without start states."""
        starts, successes = (
            _sum_of_ragged([run.result["test"][name] for run in self.runs])
            for name in ("starts_by_spl", "successes_by_spl")
        )
        with np.errstate(invalid="ignore"):
            return 100 * successes / starts

    @property
    def long_path_rate(self) -> float:
        """The mean SR of all ranges, by which the best depth of a model is chosen."""
        rates = [self.rate("success_rate", spl_range) for spl_range in self.ranges]
        return statistics.fmean(rate.mean for rate in rates if rate is not None)


def mean_and_std(values: Iterable[float]) -> Rate | None:
    """Mean and sample standard deviation (0 for a single value); None of nothing."""
    values = list(values)
    if not values:
        return None
    return Rate(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


def _check_ranges(test: dict[str, Any]) -> None:
    """Whether rates are there for each range."""
    for row in test["ranges"]:
        for name in ("low", "high", "count", "success_rate", "optimality_rate"):
            row[name]


def _sum_of_ragged(rows: list[list[int]]) -> np.ndarray:
    total = np.zeros(max(len(row) for row in rows))
    for row in rows:
        total[: len(row)] += row
    return total
