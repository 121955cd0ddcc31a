"""What the studies of the paper consist of: cells, each of which is one run of the maze command.

A cell's folder is named after what it trains, so studies share the runs that they have in common.
"""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Mapping

from experiments.configs.base import FAST_RECIPE
from experiments.jobs import Job

# Studies that measure instead of training, each a command of its own: `python -m experiments.cost`.
MEASUREMENTS = ("cost", "first_steps")
MODELS = ("vin", "gppn", "highway_network", "highway_vin")
# The depths of the paper's tables for each maze size; highway models begin with the second.
DEPTHS = {
    15: (20, 40, 60, 80, 100, 120, 160, 200),
    25: (30, 60, 90, 120, 150, 180, 240, 300),
}
# The variant that sees views in place of the map: another command, another configuration file.
VIEWS = "views"
# What a variant changes in the configuration.
VARIANTS: Mapping[str, Mapping[str, object]] = {
    "": {},
    "no_filter": {"model.filter_gate": False},
    # All layers take a maximum, as in a deep VIN, and what becomes of that is the question.
    "no_ve": {
        "model.value_exploration": False,
        "train.skip_not_finite": True,
        "train.stop_after_collapses": 4,
    },
    "np2": {"model.num_policies": 2},
    "np3": {"model.num_policies": 3},
    "tied": {"model.tie_kernels": True},
    "long": {"train.num_steps": 8000},
    VIEWS: {},
    # Not the protocol's recipe but one that learns faster.
    "ours": {**FAST_RECIPE, "train.num_steps": 8000},
    # The same for longer, on mazes turned and mirrored, with more weight on long paths.
    "augmented": {
        **FAST_RECIPE,
        "train.num_steps": 16000,
        "train.symmetries": True,
        "loss.long_paths": 5.0,
        "eval.every_steps": 1000,
    },
    # On larger mazes and with deeper blocks, from where that one ended.
    "transferred": {
        **FAST_RECIPE,
        "optimizer.learning_rate": 1e-3,
        "train.weights": "results/cpu/highway_vin-15-100-augmented-seed0",
        "train.num_steps": 1500,
        "train.symmetries": True,
        "loss.long_paths": 5.0,
        "model.num_blocks": 20,
        "model.block_depth": 15,
        "eval.every_steps": 250,
    },
}
# A variant that only trains longer goes on from the finished shorter run, whose steps are its own.
EXTENDS = {"long": ""}


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run.

    Attributes:
      model: its kind.
      size: side of the mazes.
      depth: `N`.
      variant: one of `VARIANTS`.
      seed: of the run.
    """

    model: str
    size: int
    depth: int
    variant: str = ""
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the folder."""
        return f"{self._name}-seed{self.seed}"

    @property
    def _name(self) -> str:
        variant = f"-{self.variant}" if self.variant else ""
        return f"{self.model}-{self.size}-{self.depth}{variant}"

    def job(self, scale: str, results: pathlib.Path) -> Job:
        """The job that makes this run.

        Args:
          scale: "paper" or "cpu", the configuration file.
          results: the folder of the runs' folders.
        """
        views = self.variant == VIEWS
        config = f"experiments/configs/{scale}.py:{self.model}-{self.size}-{self.depth}"
        if views:
            config = f"experiments/configs/vizdoom_{scale}.py:{self.model}-{self.depth}"
        shorter = None
        if self.variant in EXTENDS:
            shorter = dataclasses.replace(self, variant=EXTENDS[self.variant])
        return Job(
            name=self._name,
            seeds=(self.seed,),
            config=config,
            changes=VARIANTS[self.variant],
            results=results,
            command="vizdoom" if views else "maze",
            extends="" if shorter is None else shorter._name,
            variant=self.variant,
        )


def _grid(
    models: Iterable[str], depths: Mapping[int, Iterable[int]], variants: Iterable[str] = ("",)
) -> list[Cell]:
    return [
        Cell(model, size, depth, variant)
        for size, of_size in depths.items()
        for model in models
        for depth in of_size
        for variant in variants
        if not (model.startswith("highway") and depth == DEPTHS[size][0])
    ]


_ALL = _grid(MODELS, DEPTHS)
# In the order in which they are worth their time.
_CPU_DEPTHS = [
    Cell("highway_vin", 15, 100),
    Cell("vin", 15, 20),
    Cell("vin", 15, 40),
    Cell("highway_vin", 15, 40),
    Cell("highway_vin", 15, 200),
    Cell("vin", 15, 100),
    Cell("vin", 15, 200),
    Cell("highway_network", 15, 40),
    Cell("highway_network", 15, 100),
    Cell("highway_network", 15, 200),
    Cell("gppn", 15, 20),
    Cell("gppn", 15, 40),
    Cell("gppn", 15, 100),
    Cell("highway_vin", 25, 150),
    Cell("vin", 25, 30),
    Cell("highway_vin", 25, 300),
]
# One kernel for rewards and values, as the paper writes it, or two, of which that of the values
# starts at zero, as in the code that its experiments follow.
_KERNELS = _grid(["vin", "highway_vin"], {15: (40, 100)}, ["tied", ""])
STUDIES: Mapping[str, Mapping[str, list[Cell]]] = {
    "paper": {
        "depths": _ALL,
        "best_depth": _ALL,
        "filter_gate": _grid(["highway_vin"], {15: (200,), 25: (300,)}, ["", "no_filter"]),
        "ve_modules": _grid(["highway_vin"], {15: (200,), 25: (300,)}, ["", "no_ve"]),
        "parallel_ve": _grid(["highway_vin"], {15: (100, 200), 25: (150, 300)}, ["", "np2", "np3"]),
        "kernels": _KERNELS,
        "entropy": _grid(["vin", "highway_vin"], {15: (40, 100, 200), 25: (60, 150, 300)}),
        "value_maps": _grid(["vin"], {25: (30,)}) + _grid(["highway_vin"], {25: (300,)}),
        "examples": _grid(["vin", "gppn"], {25: (30,)}) + _grid(["highway_vin"], {25: (300,)}),
        "vizdoom": _grid(MODELS, {15: (40, 100, 200)}, [VIEWS]),
    },
    "cpu": {
        "depths": _CPU_DEPTHS,
        "best_depth": _CPU_DEPTHS,
        "headline": [
            Cell("highway_vin", 15, 100, "augmented"),
            Cell("highway_vin", 25, 300, "transferred"),
            *(
                Cell(model, 15, depth, variant)
                for variant in ("ours", "long")
                for model, depth in (("highway_vin", 100), ("vin", 20), ("vin", 40))
            ),
        ],
        "kernels": _KERNELS,
        "filter_gate": _grid(["highway_vin"], {15: (100,)}, ["", "no_filter"]),
        "ve_modules": _grid(["highway_vin"], {15: (100,)}, ["", "no_ve"]),
        "parallel_ve": _grid(["highway_vin"], {15: (100,)}, ["", "np2", "np3"]),
        "entropy": _grid(["vin", "highway_vin"], {15: (40, 100, 200)}),
        "value_maps": [
            Cell("vin", 15, 20),
            Cell("highway_vin", 15, 100),
            Cell("vin", 25, 30),
            Cell("highway_vin", 25, 300),
        ],
        "examples": [Cell("vin", 15, 20), Cell("gppn", 15, 20), Cell("highway_vin", 15, 100)],
        "vizdoom": [Cell("highway_vin", 15, 100, VIEWS), Cell("vin", 15, 40, VIEWS)],
    },
}

# All that can be asked for; "headline" is of the cpu size alone.
NAMES = [*dict.fromkeys(name for studies in STUDIES.values() for name in studies), *MEASUREMENTS]


def cells_of(scale: str, name: str, seeds: Iterable[int] = (0,)) -> list[Cell]:
    """The cells of a study; those of the first seed come first.

    Args:
      scale: "paper" or "cpu".
      name: of the study.
      seeds: one run each.
    """
    if scale not in STUDIES:
        raise ValueError(f"unknown scale {scale!r}: expected one of {', '.join(STUDIES)}")
    known = STUDIES[scale]
    if name not in known:
        raise ValueError(f"unknown study {name!r} at scale {scale}: expected {', '.join(known)}")
    return [dataclasses.replace(cell, seed=seed) for seed in seeds for cell in known[name]]


def matching(cells: Iterable[Cell], patterns: Iterable[str]) -> list[Cell]:
    """Those of the cells whose names match one of the patterns, such as `vin-15-*`.

    Raises:
      ValueError: there are cells, and a pattern matches none.
    """
    named = {cell.name: cell for cell in cells}
    chosen: set[str] = set()
    for pattern in patterns:
        names = fnmatch.filter(named, pattern)
        if named and not names:
            known = ", ".join(list(named)[:3])
            raise ValueError(f"no cell matches {pattern!r}: they are called {known}, ...")
        chosen.update(names)
    return [cell for name, cell in named.items() if name in chosen]
