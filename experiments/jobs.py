"""A job: one process that trains one cell of a study or a sweep, for one seed or for several.

It is the ordinary training command in ordinary folders, one for each seed, whose names follow from
what is trained. So the folders know what has been done: whoever starts a job again, and in whatever
way, goes on from there, and a folder's lock keeps two processes from doing the same.
"""

import dataclasses
import os
import pathlib
import runpy
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any

from ml_collections import ConfigDict

from hvin_jax.training.workdir import check_owner, is_locked

ROOT = pathlib.Path(__file__).parents[1]
FINISHED, ELSEWHERE = "finished", "another process is at it"


@dataclasses.dataclass(frozen=True)
class Job:
    """What to train, and where.

    Attributes:
      name: of what is trained, all seeds alike.
      seeds: one run each; several train together in one process.
      config: the configuration file, with an argument after a colon if it takes one.
      changes: settings that differ from the file's, by name.
      results: the folder of the runs' folders.
      command: the training command, a module of `experiments`.
      extends: the name of a shorter job, from whose finished run this one may go on.
      variant: what tables call it, if it is not the model as it is.
    """

    name: str
    seeds: tuple[int, ...]
    config: str
    changes: Mapping[str, Any]
    results: pathlib.Path
    command: str = "maze"
    extends: str = ""
    variant: str = ""

    @property
    def title(self) -> str:
        """What the job is called."""
        return f"{self.name}-seed{','.join(map(str, self.seeds))}"

    def folder(self, seed: int) -> pathlib.Path:
        """Where the run of a seed is."""
        return self.results / f"{self.name}-seed{seed}"

    @property
    def folders(self) -> list[pathlib.Path]:
        """Where its runs are."""
        return [self.folder(seed) for seed in self.seeds]

    @property
    def state(self) -> str:
        """What there is to do, in words."""
        if all((folder / "result.json").exists() for folder in self.folders):
            return FINISHED
        if any(is_locked(folder) for folder in self.folders):
            return ELSEWHERE
        begun = any((folder / "checkpoints").exists() for folder in self.folders)
        return "to be continued" if begun else "to be done"

    def load_config(self) -> ConfigDict:
        """The configuration, that of the first seed.

        Raises:
          ValueError: there is none, or it has no such setting.
        """
        try:
            config = _read_config(self.config)
            config.update_from_flattened_dict({**self.changes, "seed": self.seeds[0]})
        except OSError as error:
            raise ValueError(f"{self.title}: {self.config}: {error.strerror}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.title}: {error.args[0]}") from error
        return config

    def check_folders(self) -> None:
        """Raises `WorkdirError` if a folder belongs to another configuration."""
        config = self.load_config()
        for seed in self.seeds:
            config.seed = seed
            if self.folder(seed).is_dir():
                check_owner(self.folder(seed), config.to_dict())

    def start(
        self,
        data_dir: pathlib.Path,
        *,
        cpu_devices: int = 0,
        environment: Mapping[str, str] | None = None,
        log: IO[Any] | None = None,
    ) -> subprocess.Popen:
        """Starts the training command, which stops and saves when this process is gone.

        Args:
          data_dir: where data are kept.
          cpu_devices: as the command's flag.
          environment: variables to set besides.
          log: where its output goes, by default where ours does.
        """
        command = [sys.executable, "-m", f"experiments.{self.command}", f"--config={self.config}"]
        command += [f"--config.{name}={value}" for name, value in self.changes.items()]
        if len(self.seeds) > 1:
            seeds = ",".join(map(str, self.seeds))
            command += [f"--seeds={seeds}", f"--workdir={(self.results / self.name).resolve()}"]
        else:
            (seed,) = self.seeds
            command += [f"--config.seed={seed}", f"--workdir={self.folder(seed).resolve()}"]
            shorter = self.results / f"{self.extends}-seed{seed}"
            if self.extends and all((shorter / x).exists() for x in ("result.json", "checkpoints")):
                command.append(f"--start_from={shorter.resolve()}")
        command += [f"--data_dir={data_dir.resolve()}", f"--cpu_devices={cpu_devices}"]
        command.append(f"--parent={os.getpid()}")
        environment = {**os.environ, **(environment or {})}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def _read_config(name: str) -> ConfigDict:
    """Calls `get_config` of FILE or FILE:ARGUMENT, as the flag --config does."""
    path, *argument = name.split(":", 1)
    return runpy.run_path(str(ROOT / path))["get_config"](*argument).lock()


def share_devices(jobs: Iterable[Job], seeds: int) -> list[Job]:
    """Joins jobs that differ in nothing but the seed, at most `seeds` of them in one process."""
    if seeds < 1:
        raise ValueError(f"seeds_per_device is {seeds}, expected 1 or more")
    if seeds == 1:
        return list(jobs)
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        alike.setdefault(job.name, []).append(job)
    joined = []
    for of_name in alike.values():
        for first in range(0, len(of_name), seeds):
            part = of_name[first : first + seeds]
            every = tuple(seed for job in part for seed in job.seeds)
            joined.append(dataclasses.replace(part[0], seeds=every))
    return joined
