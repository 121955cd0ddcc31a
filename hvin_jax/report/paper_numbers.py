"""The papers' own numbers, to be set beside ours: `paper/*.csv`.

`tables_dtvin.csv` is of the DT-VIN paper (ICML 2025), the others are of the highway VIN paper.
"""

import csv
import functools
import pathlib
from typing import NamedTuple

_FOLDER = pathlib.Path(__file__).parent / "paper"
# What the files call the models.
_NAMES = {
    "VIN": "vin",
    "GPPN": "gppn",
    "Highway network": "highway_network",
    "Highway VIN": "highway_vin",
    "DT-VIN": "dtvin",
    "Highway DT-VIN": "highway_dtvin",
}
TITLES = {kind: title for title, kind in _NAMES.items()}


class Rate(NamedTuple):
    """A mean over seeds, in percent or in nats, and its standard deviation; None for one seed."""

    mean: float
    std: float | None


def paper_rate(
    metric: str, model: str, size: int, depth: int, spl_range: tuple[int, int], task: str = "2d"
) -> Rate | None:
    """A cell of the paper's tables; None if it has no such cell.

    Args:
      metric: "success_rate" or "optimality_rate".
      model: its kind, such as "highway_vin".
      size: side of the mazes.
      depth: `N`.
      spl_range: (low, high], such as (30, 60).
      task: "2d" or "3d"; of the DT-VIN paper, the mechanism, such as "news".
    """
    return _rates(task).get((metric, model, size, depth, spl_range))


def paper_quantity(quantity: str, model: str, size: int, depth: int) -> float | None:
    """The paper's latent_action_entropy (nats), gpu_memory (GB) or training_time (hours)."""
    return _quantities().get((quantity, model, size, depth))


@functools.cache
def _rates(task: str) -> dict[tuple, Rate]:
    name = {"2d": "tables_2d_maze.csv", "3d": "table_3d_vizdoom.csv"}.get(task, "tables_dtvin.csv")
    rates = {}
    for row in _rows(name):
        if row.get("mechanism", task) != task or not row["depth"]:  # not said for all models
            continue
        low, high = (int(x) for x in row["spl_range"].split("-"))
        spl_range = (0 if low == 1 else low, high)
        model, size, depth = _NAMES[row["model"]], int(row["maze_size"]), int(row["depth"])
        rate = Rate(float(row["mean"]), float(row["std"]) if "std" in row else None)
        rates[row["metric"], model, size, depth, spl_range] = rate
    return rates


@functools.cache
def _quantities() -> dict[tuple, float]:
    return {
        (row["quantity"], _NAMES[row["model"]], int(row["maze_size"]), int(row["depth"])): float(
            row["value"]
        )
        for row in _rows("table_entropy_and_cost.csv")
    }


def _rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))
