"""The folder of one run: whose it is, who is working in it, what has happened so far.

What is in it:

    config.json      what the run was asked to do; another configuration is refused
    checkpoints/     the two newest, see `hvin_jax.training.checkpoints`
    sittings.jsonl   a line for each time the run was started
    metrics.jsonl    a line for each report and validation
    tensorboard/     the same for TensorBoard
    planner/         the best model, for `hvin_jax.load_planner`
    result.json      when the run is complete: what came out, see RESULT_SCHEMA
    *.png            learning curves, mazes and paths
    .lock            held while a process works here
"""

import contextlib
import json
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, Self, TextIO

from hvin_jax._files import atomic_write, is_unfinished, new_folder, read_json, write_json
from hvin_jax._locks import held, is_held

RESULT_SCHEMA = {
    "version": "1, the version of this schema",
    "name": "of the configuration",
    "config": "the whole configuration",
    "sittings": "list of {first_step, commit, devices}: the git commit of the code that made the "
    "steps from there on, -dirty if it had changes, null outside of a repository; on how many "
    "devices, which earlier versions did not note",
    "versions": "of Python, hvin_jax and the packages it stands on",
    "device": "kind and number of devices",
    "num_params": "number of parameters of the model",
    "steps": "number of training steps made",
    "skipped_steps": "steps that were skipped because a loss or gradient was not finite",
    "collapsed": "whether the last validation found a constant policy, or parameters stood still",
    "wall_seconds": "training time of all sittings, validation included, evaluation left out",
    "best_step": "after which step the tested parameters were taken",
    "valid_score": "their score on the validation mazes, by which they were selected",
    "test": {
        "data": "what they were tested on",
        "mazes": "number of mazes",
        "success_rate": "SR over all start states, 0 to 1",
        "optimality_rate": "OR over all start states",
        "ranges": "list of {low, high, count, mazes, success_rate, optimality_rate, success_error, "
        "optimality_error}: low < SPL <= high; errors are standard errors over mazes, null of one",
        "percent_optimal": "%Opt of the baseline code, a mean over mazes, 0 to 1",
        "percent_success": "%Suc of the baseline code",
        "cost_ratio": "of mazes with costs: mean cost of successful paths relative to the cheapest",
        "map_accuracy": "share of cells whose map is predicted right; null if the map is given",
        "prediction_error": "share of all states, walls too, where the action is not the label",
        "starts_by_spl": "number of start states with SPL = 0, 1, 2, ...",
        "successes_by_spl": "how many of them reach the goal",
        "optimal_by_spl": "how many of them reach it in SPL actions",
    },
}


class WorkdirError(RuntimeError):
    """A folder that this run can't work in; the message says why and what to do."""


class WorkdirBusy(WorkdirError):
    """Another process is working in the folder."""


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Holds a folder, so that no second process works in it; a killed process lets go of it."""
    lock = folder / ".lock"
    with _made(folder):
        before = set(folder.iterdir())
        with _held(folder, lock):
            try:
                yield
            except BaseException:
                if set(folder.iterdir()) - before == {lock}:  # nothing was begun
                    lock.unlink()
                raise


@contextlib.contextmanager
def _held(folder: pathlib.Path, lock: pathlib.Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(lock))
        except BlockingIOError as error:
            raise WorkdirBusy(f"another process is working in {folder}") from error
        yield


@contextlib.contextmanager
def _made(folder: pathlib.Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(new_folder(folder))
        except (FileExistsError, NotADirectoryError) as error:
            raise WorkdirError(f"{folder} is a file, expected a folder for the run") from error
        yield


def is_locked(folder: pathlib.Path) -> bool:
    """Whether a process is working in a folder."""
    return is_held(folder / ".lock")


def check_owner(folder: pathlib.Path, config: Mapping[str, Any]) -> None:
    """Checks that a folder is empty or that of a configuration.

    Raises:
      WorkdirError: it belongs to another one; the message shows the difference.
    """
    path = folder / "config.json"
    if not path.exists():
        names = [x.name for x in folder.iterdir() if x.name != ".lock"]
        if strangers := [name for name in names if not is_unfinished(name)]:
            raise WorkdirError(
                f"{folder} holds {', '.join(sorted(strangers)[:3])} but no config.json, so it is "
                "not the folder of a run; choose another one"
            )
        return
    other = _read(path)
    if differences := list(_differences(other, json.loads(json.dumps(config)))):
        raise WorkdirError(
            f"{folder} belongs to another configuration; choose another folder (--workdir of the "
            "commands). What differs:\n" + "\n".join(f"  {line}" for line in differences)
        )


def claim(folder: pathlib.Path, config: Mapping[str, Any]) -> None:
    """Makes a folder that of a configuration, after `check_owner`."""
    if not (folder / "config.json").exists():
        write_json(folder / "config.json", config)


# What may differ between a run and the longer one that goes on from it.
_LENGTH = {"config.name", "config.train.num_steps", "config.train.num_epochs"}


def check_start(config: Mapping[str, Any], source: pathlib.Path) -> None:
    """Checks that a configuration can go on from a run.

    Raises:
      WorkdirError: the configurations differ in more than their length, or in what their first
        steps would do.
    """
    other = _read(source / "config.json")
    config = json.loads(json.dumps(config))
    different = [x for x in _differences(other, config) if x.split(":")[0] not in _LENGTH]
    if config["optimizer"].get("schedule", "constant") != "constant":
        different.append("a schedule that depends on the length")
    if different:
        raise WorkdirError(f"can't start from {source}: {'; '.join(different)}")
    if not (source / "checkpoints").is_dir():
        raise WorkdirError(f"can't start from {source}: its checkpoints are gone")


def check_longer(num_steps: int, source: pathlib.Path) -> None:
    """Checks that a run of so many steps has not been overtaken by the one it is to go on from.

    Raises:
      WorkdirError: that one made more steps.
    """
    if (source / "result.json").exists() and (made := read_result(source)["steps"]) > num_steps:
        raise WorkdirError(
            f"can't start from {source}: it made {made} steps, this run is to make {num_steps}"
        )


def start_from(folder: pathlib.Path, source: pathlib.Path) -> None:
    """Lets a claimed folder go on from the checkpoints of a run, after `check_start`."""
    for name in ("metrics.jsonl", "sittings.jsonl"):
        shutil.copy(source / name, folder)
    part = folder / "checkpoints.part"
    if part.is_symlink():
        raise WorkdirError(f"{part} is a link, and nothing is copied through it; remove it")
    if part.exists():  # of a process that was killed as it copied
        shutil.rmtree(part)
    shutil.copytree(source / "checkpoints", part)
    part.rename(folder / "checkpoints")


class MetricsLog:
    """`metrics.jsonl`, whose lines are those of a run that was never interrupted."""

    def __init__(self, folder: pathlib.Path, *, resume_step: int) -> None:
        """Of a run that goes on after `resume_step`; nothing is written before `open`."""
        self._folder, self._resume_step = folder, resume_step
        self._file: TextIO | None = None

    def open(self) -> None:
        """Opens the log; lines after `resume_step` will be written again and are dropped."""
        path = self._folder / "metrics.jsonl"
        with atomic_write(path) as file:
            for line in read_metrics(self._folder):
                if line["step"] <= self._resume_step:
                    file.write((json.dumps(line) + "\n").encode())
        self._file = path.open("a")

    def write(self, step: int, **figures: Any) -> None:
        """Adds a line; what is not a number becomes null."""
        if self._file is not None:
            known = {name: None if x != x else x for name, x in figures.items()}
            self._file.write(json.dumps({"step": step, **known}) + "\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def read_metrics(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl`."""
    return _read_lines(folder / "metrics.jsonl")


def note_sitting(
    folder: pathlib.Path, *, first_step: int, commit: str | None, devices: int
) -> None:
    """Notes that a process has taken up the run."""
    sitting = {"first_step": first_step, "commit": commit, "devices": devices}
    with (folder / "sittings.jsonl").open("a") as file:
        file.write(json.dumps(sitting) + "\n")


def devices_before(folder: pathlib.Path, step: int) -> int | None:
    """On how many devices the state after a step was made; None if that is not known."""
    made = [x for x in read_sittings(folder) if x.get("first_step", step) < step]
    return made[-1].get("devices") if made else None


def read_result(folder: pathlib.Path) -> dict[str, Any]:
    """What came out of a complete run, see `RESULT_SCHEMA`."""
    return _read(folder / "result.json")


def read_sittings(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of `sittings.jsonl`."""
    return _read_lines(folder / "sittings.jsonl")


def _read(path: pathlib.Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except ValueError as error:
        raise WorkdirError(str(error)) from error


def _read_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a JSONL file; one that a killed process left unfinished is left out."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError, RecursionError):
            lines.append(json.loads(text))
    return lines


def _differences(old: Any, new: Any, name: str = "config") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old and not new[key]:
                continue  # a setting that came later than the run, and is off
            yield from _differences(
                old.get(key, "(absent)"), new.get(key, "(absent)"), f"{name}.{key}"
            )
    elif old != new:
        yield f"{name}: {json.dumps(old)} there, {json.dumps(new)} now"
