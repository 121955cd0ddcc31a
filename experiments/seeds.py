"""Several seeds of one configuration in one process, each an ordinary run in its own folder."""

import contextlib
import copy
import pathlib
import sys
from collections.abc import Callable, Sequence

from ml_collections import ConfigDict

from experiments import launch
from experiments.console import say
from experiments.exits import BUSY, readable_errors, stop_signals
from hvin_jax.training import workdir
from hvin_jax.training.checkpoints import Snapshot
from hvin_jax.training.together import Place, train_together

Run = tuple[launch.Task, launch.Settings, pathlib.Path]
Finish = Callable[[launch.Task, launch.Settings, pathlib.Path, Snapshot], None]


def parse_seeds(texts: Sequence[str]) -> list[int]:
    """The numbers of the flag --seeds."""
    try:
        seeds = [int(text) for text in texts]
    except ValueError as error:
        raise ValueError(f"--seeds={','.join(texts)} is not a list of whole numbers") from error
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds={','.join(texts)} names a seed twice")
    return seeds


def folder_of(prefix: pathlib.Path, seed: int) -> pathlib.Path:
    """Where the run of a seed is."""
    return prefix.with_name(f"{prefix.name}-seed{seed}")


def train_seeds(
    command: str,
    config: ConfigDict,
    folders: dict[int, pathlib.Path],
    prepare: Callable[[], tuple[launch.Task, launch.Settings]],
    finish: Finish,
    parent: int = 0,
) -> None:
    """Trains seeds together, those that are not finished and that no other process is working on.

    Each ends as it would alone; the process ends with the code of the first that did not succeed.

    Args:
      command: the name that errors begin with.
      config: the configuration; its seed is not used.
      folders: of the runs, by seed.
      prepare: makes what is trained, the same for all seeds.
      finish: is called for each run that is trained.
      parent: as in `stop_signals`.
    """
    codes: list[int] = []
    with contextlib.ExitStack() as locks:
        left: dict[pathlib.Path, ConfigDict] = {}
        for seed, folder in folders.items():
            own = config.copy_and_resolve_references()
            own.seed = seed
            try:
                locks.enter_context(workdir.locked(folder))
            except workdir.WorkdirBusy as error:
                say(f"{error}, which is left to it")
                codes.append(BUSY)
                continue
            workdir.check_owner(folder, own.to_dict())
            if (folder / "result.json").exists():
                say(f"{folder} is complete")
            else:
                left[folder] = own
        if left:
            task, shared = prepare()
            runs = [(task, _with_config(shared, own), folder) for folder, own in left.items()]
            for folder, own in left.items():
                workdir.claim(folder, own.to_dict())
            with stop_signals(parent) as asked:
                ends = train_together([_trainer(run) for run in runs], asked)
            for run, end in zip(runs, ends, strict=True):
                codes.append(_finish(command, run, end, finish))
    if any(codes):
        sys.exit(next(filter(None, codes)))


def _with_config(settings: launch.Settings, config: ConfigDict) -> launch.Settings:
    settings = copy.copy(settings)
    settings.config = config
    return settings


def _trainer(run: Run) -> Callable[[Place], Snapshot]:
    return lambda place: launch.train(*run, asked_to_stop=place.asked_to_stop, place=place)


def _finish(command: str, run: Run, end: Snapshot | BaseException, finish: Finish) -> int:
    """Finishes a run, or says what ended it; returns the exit code that it would have alone."""
    try:
        with readable_errors(f"{command}: seed {run[1].config.seed}"):
            if isinstance(end, BaseException):
                raise end
            finish(*run, end)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return int(error.code or 0)
    return 0
