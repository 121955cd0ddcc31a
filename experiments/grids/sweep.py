"""The language of grids, in which sweeps and the studies of the paper are written.

    def get_config() -> Sweep:
        return Sweep(
            folder="rates",
            base="experiments/configs/cpu.py:{model}-15-{depth}",
            grids=[{"model": ["vin"], "depth": [20, 40], "optimizer.learning_rate": [1e-3, 3e-3]}],
        )

Any of it can be changed on the command line, for instance `--config.seeds='(0,1)'`.
"""

import dataclasses
import itertools
import pathlib
import string
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.grids.jobs import COMMANDS, Job

# The name in a grid that chooses among the variants of a sweep.
VARIANT = "variant"
Grid = Mapping[str, Sequence[Any]]


@dataclasses.dataclass
class Sweep:
    """Grids of runs, and what each of them gets.

    Attributes:
      folder: under `--results`. Runs are named after what they train, so a sweep in "paper" or
        "cpu" shares its runs with the studies of that scale.
      base: the configuration file, relative to the repository, with an argument after a colon if it
        takes one; names in braces are filled in from a grid.
      grids: lists of values by name, of which all combinations are run. Names that are not in
        `base` are settings (experiments/configs/base.py), or "variant".
      settings: what all runs change.
      variants: what each variant of a grid changes, by its name; "" is the model as it is.
      seeds: of each combination.
      command: the training command.
      cpus: CPU cores of a trial. Without GPUs, also the devices over which it splits its batches.
      gpus: GPUs of a trial; several trials share one if it is a fraction.
      max_failures: so often a failed trial is started again, from its own checkpoint.
    """

    folder: str
    base: str
    grids: Sequence[Grid]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2)
    command: str = "maze"
    cpus: float = 1.0
    gpus: float = 0.0
    max_failures: int = 2


def jobs_of(sweep: Sweep, results: pathlib.Path) -> list[Job]:
    """The jobs of a sweep, each once; those of the first seed come first.

    Args:
      sweep: which runs.
      results: the folder that `sweep.folder` is in.

    Raises:
      ValueError: the sweep is wrong, or empty.
    """
    _check(sweep)
    points = [point for grid in sweep.grids for point in _points(grid)]
    jobs = {}
    for seed in sweep.seeds:
        for point in points:
            job = _job(sweep, point, seed, results / sweep.folder)
            jobs[job.title] = job
    return list(jobs.values())


def _check(sweep: Sweep) -> None:
    right: dict[str, tuple[bool, str]] = {
        "folder": (_is_text(sweep.folder), "a name"),
        "base": (_is_text(sweep.base), "a configuration file"),
        "command": (sweep.command in COMMANDS, " or ".join(COMMANDS)),
        "settings": (isinstance(sweep.settings, Mapping), "values by name"),
        "variants": (_are_mappings(sweep.variants), "settings by name"),
        "seeds": (_are_seeds(sweep.seeds), "different whole numbers from 0"),
        "grids": (_are_grids(sweep.grids), "a list of grids, each of lists of values by name"),
    }
    for name, (is_right, expected) in right.items():
        if not is_right:
            raise ValueError(f"{name} of a sweep is {getattr(sweep, name)!r}, expected {expected}")


def _is_text(x: Any) -> bool:
    return isinstance(x, str) and bool(x)


def _are_mappings(x: Any) -> bool:
    return isinstance(x, Mapping) and all(isinstance(value, Mapping) for value in x.values())


def _is_list(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str) and len(x) > 0


def _are_seeds(x: Any) -> bool:
    whole = _is_list(x) and all(type(seed) is int and seed >= 0 for seed in x)
    return whole and len(set(x)) == len(x)


def _are_grids(x: Any) -> bool:
    return _is_list(x) and all(
        isinstance(grid, Mapping) and all(map(_is_list, grid.values())) for grid in x
    )


def _points(grid: Grid) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _job(sweep: Sweep, point: Mapping[str, Any], seed: int, results: pathlib.Path) -> Job:
    in_base = [name for _, name, _, _ in string.Formatter().parse(sweep.base) if name]
    if missing := [name for name in in_base if name not in point]:
        raise ValueError(f"the grid has no values for {{{missing[0]}}} of {sweep.base}")
    config = sweep.base.format(**{name: point[name] for name in in_base})
    named = point.get(VARIANT, "")
    if named and named not in sweep.variants:
        raise ValueError(f"unknown variant {named!r}: expected {', '.join(sweep.variants)}")
    changes = {name: x for name, x in point.items() if name not in (*in_base, VARIANT)}
    changed = [f"{name}={value}" for name, value in changes.items()]
    variant = "-".join(filter(None, [named, *changed]))
    cell = config.split(":")[1] if ":" in config else pathlib.Path(config).stem
    return Job(
        name=f"{cell}-{variant}" if variant else cell,
        seed=seed,
        config=config,
        changes={**sweep.settings, **sweep.variants.get(named, {}), **changes},
        results=results,
        command=sweep.command,
        variant=variant,
    )
