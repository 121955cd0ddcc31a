"""What a sweep consists of. Not a sweep itself: the files beside it are.

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

from experiments.jobs import Job, share_devices


@dataclasses.dataclass
class Sweep:
    """Grids of runs, and what each of them gets.

    Attributes:
      folder: under `--results`. Runs are named like those of `experiments.study`, so a sweep in
        "paper" or "cpu" shares its runs with the studies of that scale.
      base: the configuration file, relative to the repository, with an argument after a colon if it
        takes one; names in braces are filled in from a grid.
      grids: lists of values by name, of which all combinations are run. Names that are not in
        `base` are settings (experiments/configs/base.py).
      settings: what all runs change.
      seeds: of each combination.
      command: the training command.
      cpus: CPU cores of a trial. Without GPUs, also the devices over which it splits its batches.
      gpus: GPUs of a trial; several trials share one if it is a fraction.
      seeds_per_device: so many seeds train together in one trial.
      max_failures: so often a failed trial is started again, from its own checkpoint.
    """

    folder: str
    base: str
    grids: Sequence[Mapping[str, Sequence[Any]]]
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2)
    command: str = "maze"
    cpus: float = 1.0
    gpus: float = 0.0
    seeds_per_device: int = 1
    max_failures: int = 2


def jobs_of(sweep: Sweep, results: pathlib.Path) -> list[Job]:
    """The jobs of a sweep; those of the first seed come first.

    Args:
      sweep: which runs.
      results: the folder that `sweep.folder` is in.
    """
    in_base = [name for _, name, _, _ in string.Formatter().parse(sweep.base) if name]
    jobs: dict[str, Job] = {}
    for seed in sweep.seeds:
        for grid in sweep.grids:
            if missing := [name for name in in_base if name not in grid]:
                raise ValueError(f"the grid has no values for {{{missing[0]}}} of {sweep.base}")
            for values in itertools.product(*grid.values()):
                point = dict(zip(grid, values, strict=True))
                config = sweep.base.format(**{name: point[name] for name in in_base})
                changes = {name: x for name, x in point.items() if name not in in_base}
                variant = "-".join(f"{name}={value}" for name, value in changes.items())
                cell = config.split(":")[1] if ":" in config else pathlib.Path(config).stem
                job = Job(
                    name=f"{cell}-{variant}" if variant else cell,
                    seeds=(seed,),
                    config=config,
                    changes={**sweep.settings, **changes},
                    results=results / sweep.folder,
                    command=sweep.command,
                    variant=variant,
                )
                jobs[job.title] = job
    return share_devices(jobs.values(), sweep.seeds_per_device)
