"""How a planner does on maps of many kinds and sizes: measured, and as a page.

A cell is what was measured on the maps of one family and size, as JSON has it.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from hvin_jax.planner import Planner
from hvin_jax.report.page import Page
from hvin_jax.report.tables import Table
from hvin_jax.tasks.datasets import make_chunk
from hvin_jax.tasks.generation import MapLaw
from hvin_jax.tasks.generation.mixture import parse_families
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import Scores, evaluate
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.training.results import scores_dict

Cell = dict[str, Any]
# Maps are planned on together up to so many states and maps: more wait for the slowest of them.
_STATES, _TOGETHER = 2**14, 64
# Path lengths are told apart by multiples of the side of a map; the last range has no end.
_RANGES = (0, 1, 2, 4, 8)
_ENDLESS = 2**16
# So many maps are searched one by one to know how long that takes.
_SEARCHED = 8


def measure(planner: Planner, family: str, size: int, *, maps: int, seed: int) -> Cell:
    """Plans on maps of a family, from all start states.

    Args:
      planner: plans as deep as it does by default.
      family: a name of `about_families()`.
      size: the side of the maps.
      maps: how many; the same map may occur twice, with another goal.
      seed: what they are drawn from.
    """
    law = MapLaw((size, size), family)
    data = make_chunk(0, size=maps, seed=seed, law=law, mechanism=planner.mechanism)
    states = size**2 * planner.mechanism.num_orientations
    together = 1 << (min(max(_STATES // states, 1), _TOGETHER).bit_length() - 1)
    total = Scores.none()
    layers: list[int] = []
    for start in range(0, maps, together):
        part = data[start : start + together]
        output = planner.policy(part.maze, part.goal)
        policy = np.asarray(output.logits).argmax(-1).astype(np.uint8)
        total += evaluate(policy, part)
        layers += [] if output.depth is None else np.asarray(output.depth).tolist()
    first = data[:together]  # compiled for by now
    ranges = tuple(zip(_RANGES, (*_RANGES[1:], _ENDLESS), strict=True))
    measured = scores_dict(total, tuple((low * size, high * size) for low, high in ranges))
    return {
        "family": family,
        "size": size,
        "maps": maps,
        **{name: measured[name] for name in ("success_rate", "optimality_rate", "ranges")},
        "starts": int(total.starts.sum()),
        "success_rate_error": total.in_range(0, _ENDLESS).success_error,
        "layers": {"median": float(np.median(layers)), "most": max(layers)} if layers else None,
        "seconds_per_map": _seconds(lambda: planner.policy(first.maze, first.goal)) / len(first),
        "search_seconds_per_map": _search_seconds(data),
    }


def _seconds(run: Any) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _search_seconds(data: MazeData) -> float:
    """How long a breadth-first search takes for a map alone, the median of some."""

    def search(one: MazeData) -> float:
        return _seconds(lambda: shortest_paths(one.maze, one.goal, mechanism=data.mechanism))

    return float(np.median([search(data[[i]]) for i in range(min(len(data), _SEARCHED))]))


def training_data(planner: Planner) -> dict[str, Any]:
    """What a planner's card says about the maps that it has learned from."""
    config = planner.card.get("config")
    data = config.get("data") if isinstance(config, dict) else None
    return data if isinstance(data, dict) else {}


def trained_on(planner: Planner) -> list[str]:
    """The families of them; without any, they are the protocol's mazes."""
    return list(parse_families(training_data(planner).get("families") or "protocol"))


def summary(cells: Sequence[Cell], *, seed: int, trained: Sequence[str]) -> dict[str, Any]:
    """What a card says under `measured`: by size, the mean over families and the worst."""
    by_size: dict[str, Any] = {}
    for size in _sizes(cells):
        of_size = [cell for cell in cells if cell["size"] == size]
        worst = min(of_size, key=lambda cell: cell["success_rate"])
        by_size[str(size)] = {
            "families": len(of_size),
            "maps": sum(cell["maps"] for cell in of_size),
            "success_rate": float(np.mean([cell["success_rate"] for cell in of_size])),
            "optimality_rate": float(np.mean([cell["optimality_rate"] for cell in of_size])),
            "worst_success_rate": worst["success_rate"],
            "worst_family": worst["family"],
        }
    return {
        "sizes": _sizes(cells),
        "families": sorted({cell["family"] for cell in cells}),
        "trained_on": list(trained),
        "seed": seed,
        "by_size": by_size,
    }


def write_page(page: Page, cells: Sequence[Cell], *, trained: Sequence[str], about: str) -> None:
    """Tables by family and size, by path length, of time; the figure of success against size."""
    page.text(about)
    for name, words in (("success_rate", "Success"), ("optimality_rate", "Optimality")):
        caption = f"{words} rates in % over all start states, by the side of the maps"
        if name == "success_rate":
            caption += " (± standard error over maps)"
        page.table(_rates(cells, name, trained), f"{caption}:", name)
    page.table(_by_length(cells), "Success rates in % by path length in sides, all families:")
    page.table(_times(cells), "Layers, and time a map, beside a breadth-first search of one map:")
    page.figure(success_figure(cells, trained), "success against size", "success")


def _rates(cells: Sequence[Cell], name: str, trained: Sequence[str]) -> Table:
    sizes = _sizes(cells)
    found = {(cell["family"], cell["size"]): cell for cell in cells}
    table = [["family", "in training", *(f"{size}×{size}" for size in sizes)]]

    def rate(cell: Cell | None) -> str:
        if cell is None:
            return "–"
        error = f" ± {100 * cell['success_rate_error']:.2f}" if name == "success_rate" else ""
        return f"{100 * cell[name]:.2f}{error}"

    for family in dict.fromkeys(cell["family"] for cell in cells):
        row = [rate(found.get((family, size))) for size in sizes]
        table.append([family, "yes" if family in trained else "no", *row])
    of_size = [[100 * cell[name] for cell in cells if cell["size"] == size] for size in sizes]
    table.append(["mean", "", *(f"{np.mean(x):.2f}" for x in of_size)])
    table.append(["worst", "", *(f"{min(x):.2f}" for x in of_size)])
    return table


def _by_length(cells: Sequence[Cell]) -> Table:
    header = [f"({low}, {high}]" for low, high in itertools.pairwise(_RANGES)]
    table = [["size", *header, f"more than {_RANGES[-1]}"]]
    for size in _sizes(cells):
        rows = [cell["ranges"] for cell in cells if cell["size"] == size]
        table.append([f"{size}×{size}", *map(_pooled, zip(*rows, strict=True))])
    return table


def _pooled(ranges: Sequence[dict[str, Any]]) -> str:
    """The success rate in one range of path lengths, and of how many start states."""
    count = sum(x["count"] for x in ranges)
    arrived = sum(x["count"] * x["success_rate"] for x in ranges if x["count"])
    return f"{100 * arrived / count:.2f} ({count:,})" if count else "–"


def _times(cells: Sequence[Cell]) -> Table:
    table = [["size", "layers, median", "layers, most", "planner (ms)", "search (ms)"]]
    for size in _sizes(cells):
        of_size = [cell for cell in cells if cell["size"] == size]
        layers = [cell["layers"] for cell in of_size if cell["layers"]]
        table.append(
            [
                f"{size}×{size}",
                f"{np.median([x['median'] for x in layers]):.0f}" if layers else "–",
                str(max(x["most"] for x in layers)) if layers else "–",
                f"{1000 * np.mean([cell['seconds_per_map'] for cell in of_size]):.2f}",
                f"{1000 * np.mean([cell['search_seconds_per_map'] for cell in of_size]):.2f}",
            ]
        )
    return table


def success_figure(cells: Sequence[Cell], trained: Sequence[str]) -> Figure:
    """Success against size: the mean, and a line a family, dashed if left out of training."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for number, family in enumerate(dict.fromkeys(cell["family"] for cell in cells)):
        line = sorted((x["size"], 100 * x["success_rate"]) for x in cells if x["family"] == family)
        style = "-" if family in trained else "--"
        colour = colormaps["tab20"](number % 20)
        axes.plot(*zip(*line, strict=True), style, label=family, color=colour, linewidth=1)
    sizes = _sizes(cells)
    mean = [np.mean([100 * x["success_rate"] for x in cells if x["size"] == s]) for s in sizes]
    axes.plot(sizes, mean, color="black", label="mean", linewidth=2.5)
    axes.set(xlabel="side of the map", ylabel="success rate (%)", xticks=sizes)
    axes.set_ylim(top=100.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.legend(frameon=False, fontsize=7, loc="outside right upper")
    return figure


def _sizes(cells: Sequence[Cell]) -> list[int]:
    return sorted({cell["size"] for cell in cells})
