"""What all benchmarks share: fair timing, and a report with the commit it belongs to."""

import dataclasses
import json
import pathlib
import platform
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import jax
import numpy as np

from hvin_jax.training.devices import usable_cores
from hvin_jax.training.results import git_commit

K = TypeVar("K", bound=Hashable)
ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number and the most it should be."""

    name: str
    value: float
    unit: str
    goal: float | None = None


def best_seconds(contestants: Mapping[K, Callable[[], object]], repeats: int) -> dict[K, float]:
    """The shortest of `repeats` runs of each contestant, after one that does not count.

    The contestants take turns, so that a noisy moment of the machine hits all of them alike.
    """
    for run in contestants.values():
        jax.block_until_ready(run())
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeats):
        for name, run in contestants.items():
            began = time.perf_counter()
            jax.block_until_ready(run())
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def note(text: str) -> None:
    """Says on stderr what is going on, since some measurements take minutes."""
    print(text, file=sys.stderr, flush=True)


def shown(figures: list[Figure]) -> list[Figure]:
    """Notes figures as soon as they are there, so that a crash later on does not lose them."""
    for figure in figures:
        note(f"  {figure.name}: {figure.value:.3g} {figure.unit}")
    return figures


def report(figures: list[Figure], json_path: str | None, **versions: str) -> None:
    """Prints a Markdown table with commit and versions, and writes it as JSON if asked to."""
    facts = {
        "commit": git_commit(ROOT) or "unknown",
        "cores": usable_cores(),
        "device": jax.devices()[0].device_kind,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        **versions,
    }
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print("\n| | measured | goal |\n|---|---|---|")
    for figure in figures:
        goal = "" if figure.goal is None else f"≤ {figure.goal:.3g}"
        print(f"| {figure.name} | {figure.value:.3g} {figure.unit} | {goal} |")
    if json_path:
        content = facts | {"figures": [dataclasses.asdict(figure) for figure in figures]}
        pathlib.Path(json_path).write_text(json.dumps(content, indent=2, ensure_ascii=False))
