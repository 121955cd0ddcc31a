"""The studies of the paper, as grids; `python -m experiments.study --name=depths` runs one.

A run's folder is named after what it trains, so studies share the runs that they have in common.
"""

import dataclasses
import fnmatch
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from experiments.configs.base import FAST_RECIPE
from experiments.grids.jobs import Job
from experiments.grids.sweep import Grid, Sweep, jobs_of

MODELS = ("vin", "gppn", "highway_network", "highway_vin")
# The depths of the paper's tables for each maze size; highway models begin with the second.
DEPTHS = {
    15: (20, 40, 60, 80, 100, 120, 160, 200),
    25: (30, 60, 90, 120, 150, 180, 240, 300),
}
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
    # Sees views in place of the map: another command, another configuration file.
    "views": {},
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


def _grid(
    models: Sequence[str], size: int, depths: Sequence[int], variants: Sequence[str] = ("",)
) -> Grid:
    return {"model": models, "size": [size], "depth": depths, "variant": variants}


def depths_grids(sizes: Iterable[int] = DEPTHS) -> list[Grid]:
    """All rows of the paper's tables for some maze sizes."""
    return [
        # Highway models begin with the second depth.
        _grid([model], size, DEPTHS[size][model.startswith("highway") :])
        for size in sizes
        for model in MODELS
    ]


# One kernel for rewards and values, as the paper writes it, or two, of which that of the values
# starts at zero, as in the code that its experiments follow.
_KERNELS = [_grid(["vin", "highway_vin"], 15, [40, 100], ["tied", ""])]
# In the order in which they are worth their time.
_CPU_DEPTHS = [
    _grid(["highway_vin"], 15, [100]),
    _grid(["vin"], 15, [20, 40]),
    _grid(["highway_vin"], 15, [40, 200]),
    _grid(["vin"], 15, [100, 200]),
    _grid(["highway_network"], 15, [40, 100, 200]),
    _grid(["gppn"], 15, [20, 40, 100]),
    _grid(["highway_vin"], 25, [150]),
    _grid(["vin"], 25, [30]),
    _grid(["highway_vin"], 25, [300]),
]
_GRIDS: Mapping[str, Mapping[str, Sequence[Grid]]] = {
    "paper": {
        "depths": depths_grids(),
        "best_depth": depths_grids(),
        "filter_gate": [
            _grid(["highway_vin"], 15, [200], ["", "no_filter"]),
            _grid(["highway_vin"], 25, [300], ["", "no_filter"]),
        ],
        "ve_modules": [
            _grid(["highway_vin"], 15, [200], ["", "no_ve"]),
            _grid(["highway_vin"], 25, [300], ["", "no_ve"]),
        ],
        "parallel_ve": [
            _grid(["highway_vin"], 15, [100, 200], ["", "np2", "np3"]),
            _grid(["highway_vin"], 25, [150, 300], ["", "np2", "np3"]),
        ],
        "kernels": _KERNELS,
        "entropy": [
            _grid(["vin", "highway_vin"], 15, [40, 100, 200]),
            _grid(["vin", "highway_vin"], 25, [60, 150, 300]),
        ],
        "value_maps": [_grid(["vin"], 25, [30]), _grid(["highway_vin"], 25, [300])],
        "examples": [_grid(["vin", "gppn"], 25, [30]), _grid(["highway_vin"], 25, [300])],
        "vizdoom": [_grid(MODELS, 15, [40, 100, 200], ["views"])],
    },
    "cpu": {
        "depths": _CPU_DEPTHS,
        "best_depth": _CPU_DEPTHS,
        "headline": [
            _grid(["highway_vin"], 15, [100], ["augmented"]),
            _grid(["highway_vin"], 25, [300], ["transferred"]),
            _grid(["highway_vin"], 15, [100], ["ours"]),
            _grid(["vin"], 15, [20, 40], ["ours"]),
            _grid(["highway_vin"], 15, [100], ["long"]),
            _grid(["vin"], 15, [20, 40], ["long"]),
        ],
        "kernels": _KERNELS,
        "filter_gate": [_grid(["highway_vin"], 15, [100], ["", "no_filter"])],
        "ve_modules": [_grid(["highway_vin"], 15, [100], ["", "no_ve"])],
        "parallel_ve": [_grid(["highway_vin"], 15, [100], ["", "np2", "np3"])],
        "entropy": [_grid(["vin", "highway_vin"], 15, [40, 100, 200])],
        "value_maps": [
            _grid(["vin"], 15, [20]),
            _grid(["highway_vin"], 15, [100]),
            _grid(["vin"], 25, [30]),
            _grid(["highway_vin"], 25, [300]),
        ],
        "examples": [_grid(["vin", "gppn"], 15, [20]), _grid(["highway_vin"], 15, [100])],
        "vizdoom": [
            _grid(["highway_vin"], 15, [100], ["views"]),
            _grid(["vin"], 15, [40], ["views"]),
        ],
    },
}
SCALES = tuple(_GRIDS)
# All that can be asked for; "headline" is of the cpu size alone.
NAMES = tuple(dict.fromkeys(name for studies in _GRIDS.values() for name in studies))


def study(scale: str, name: str) -> Sweep:
    """A study of the paper.

    Args:
      scale: "paper" or "cpu".
      name: one of `NAMES`.
    """
    if scale not in _GRIDS:
        raise ValueError(f"unknown scale {scale!r}: expected one of {', '.join(_GRIDS)}")
    known = _GRIDS[scale]
    if name not in known:
        raise ValueError(f"unknown study {name!r} at scale {scale}: expected {', '.join(known)}")
    views = name == "vizdoom"
    return Sweep(
        folder=scale,
        base=f"experiments/configs/{'vizdoom_' * views}{scale}.py:{{model}}-{{size}}-{{depth}}",
        grids=known[name],
        variants=VARIANTS,
        seeds=(0,),
        command="vizdoom" if views else "maze",
    )


def study_jobs(
    scale: str, names: Iterable[str], seeds: Iterable[int], results: pathlib.Path
) -> list[Job]:
    """The jobs of some studies, each once, study by study."""
    names = tuple(names)
    if not names:
        raise ValueError(f"no study is named, expected some of {', '.join(NAMES)}")
    jobs: dict[str, Job] = {}
    for name in names:
        sweep = dataclasses.replace(study(scale, name), seeds=tuple(seeds))
        jobs |= {job.title: job for job in jobs_of(sweep, results)}
    return list(jobs.values())


def matching(jobs: Sequence[Job], patterns: Iterable[str]) -> list[Job]:
    """Those of the jobs whose titles match one of the patterns, such as `vin-15-*`.

    Raises:
      ValueError: a pattern matches none, or there is no pattern.
    """
    titles, patterns = [job.title for job in jobs], tuple(patterns)
    if not patterns:
        raise ValueError(f"no run is chosen: they are called {', '.join(titles[:3])}, ...")
    chosen: set[str] = set()
    for pattern in patterns:
        names = fnmatch.filter(titles, pattern)
        if not names:
            known = ", ".join(titles[:3])
            raise ValueError(f"no run matches {pattern!r}: they are called {known}, ...")
        chosen.update(names)
    return [job for job in jobs if job.title in chosen]
