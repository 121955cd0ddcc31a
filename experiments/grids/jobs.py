"""Jobs: what one process of a study or a sweep does.

A job is the ordinary training command in an ordinary folder whose name follows from what is
trained. So the folders know what has been done: whoever starts a job again, and in whatever way,
goes on from there, and a folder's lock keeps two processes from doing the same.
"""

import dataclasses
import os
import pathlib
import runpy
import subprocess
import sys
from collections.abc import Mapping
from typing import IO, Any

from ml_collections import ConfigDict

from experiments.launch.settings import settle_kind, stored
from hvin_jax.training.workdir import check_owner, is_locked

ROOT = pathlib.Path(__file__).parents[2]
# The training commands, modules of `experiments`.
COMMANDS = ("maze", "vizdoom")
FINISHED, ELSEWHERE = "finished", "another process is at it"


@dataclasses.dataclass(frozen=True)
class Job:
    """What to train, and where.

    Attributes:
      name: of what is trained, all seeds alike.
      seed: of the run.
      config: the configuration file, with an argument after a colon if it takes one.
      changes: settings that differ from the file's, by name.
      results: the folder of the runs' folders.
      command: the training command, one of `COMMANDS`.
      variant: what tables call it, if it is not the model as it is.
    """

    name: str
    seed: int
    config: str
    changes: Mapping[str, Any]
    results: pathlib.Path
    command: str = "maze"
    variant: str = ""

    @property
    def title(self) -> str:
        """What the run is called, and its folder."""
        return f"{self.name}-seed{self.seed}"

    @property
    def folder(self) -> pathlib.Path:
        """Where the run is."""
        return self.results / self.title

    @property
    def state(self) -> str:
        """What there is to do, in words."""
        if (self.folder / "result.json").exists():
            return FINISHED
        if is_locked(self.folder):
            return ELSEWHERE
        begun = (self.folder / "checkpoints").exists()
        return "to be continued" if begun else "to be done"

    def load_config(self) -> ConfigDict:
        """The configuration.

        Raises:
          ValueError: there is none, or it has no such setting.
        """
        try:
            config = _read_config(self.config)
            config.update_from_flattened_dict({**self.changes, "seed": self.seed})
            settle_kind(config, self.changes)
        except OSError as error:
            raise ValueError(f"{self.title}: {self.config}: {error.strerror}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.title}: {error.args[0]}") from error
        return config

    def check_folder(self) -> None:
        """Raises `WorkdirError` if the folder belongs to another configuration."""
        if self.folder.is_dir():
            check_owner(self.folder, stored(self.load_config()))

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
        command = [
            sys.executable,
            "-m",
            f"experiments.{self.command}",
            f"--config={self.config}",
            *(f"--config.{name}={value}" for name, value in self.changes.items()),
            f"--config.seed={self.seed}",
            f"--workdir={self.folder.resolve()}",
            f"--data_dir={data_dir.resolve()}",
            f"--cpu_devices={cpu_devices}",
            f"--parent={os.getpid()}",
        ]
        environment = {**os.environ, **(environment or {})}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def _read_config(name: str) -> ConfigDict:
    """Calls `get_config` of FILE or FILE:ARGUMENT, as the flag --config does."""
    path, *argument = name.split(":", 1)
    return runpy.run_path(str(ROOT / path))["get_config"](*argument).lock()
