"""Engines outlive a Python that is killed; here they are found and cleared away.

An engine is a process of its own, with three files in shared memory. Python ends it, but not when
Python itself is killed by SIGKILL. So each engine gets a folder whose name tells who owns it, and
the folder's path is among the engine's arguments: whoever comes later (the parent of a killed
worker, or the next run) can tell which engines nobody owns any more.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time

_PREFIX = "hvin_doom"
_INSTANCE = "instance"
_SHARED_MEMORY = pathlib.Path("/dev/shm")
_PROCESSES = pathlib.Path("/proc")
_ID_ARGUMENT = "+viz_instance_id"


def make_folder() -> pathlib.Path:
    """A folder for one engine of this process."""
    return pathlib.Path(
        tempfile.mkdtemp(prefix=f"{_PREFIX}-{os.getpid()}-{_started(os.getpid())}-")
    )


def remember_instance(folder: pathlib.Path) -> None:
    """Notes which shared memory the engine of a folder has, for when it is gone."""
    for _, arguments in _engines(folder):
        if _ID_ARGUMENT in arguments:
            instance = arguments[arguments.index(_ID_ARGUMENT) + 1]
            (folder / _INSTANCE).write_text(instance)


def engine_pids(folder: pathlib.Path) -> list[int]:
    """The processes of the engine of a folder."""
    return [pid for pid, _ in _engines(folder)]


def has_lost_engine(pid: int) -> bool:
    """Whether an engine of a process has been up and is dead, and the process has not noticed."""
    folders = pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}-{pid}-{_started(pid)}-*")
    return any((x / _INSTANCE).exists() and not engine_pids(x) for x in folders)


def clear(folder: pathlib.Path) -> None:
    """Ends the engine of a folder if it still runs, and removes its shared memory and the folder.

    Args:
      folder: of an engine that this process owns, or that nobody owns any more.
    """
    if not folder.exists():
        return
    remember_instance(folder)
    for pid in engine_pids(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # Shared memory is removed when the engine can't touch it any more.
    end = time.monotonic() + 5
    while engine_pids(folder) and time.monotonic() < end:
        time.sleep(0.005)
    if (folder / _INSTANCE).exists():
        instance = (folder / _INSTANCE).read_text()
        for path in _SHARED_MEMORY.glob(f"ViZDoom*{instance}"):
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def clear_orphans() -> None:
    """Clears away the engines of processes that are dead."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}-*"):
        match = re.fullmatch(rf"{_PREFIX}-(\d+)-(\d+)-\w+", folder.name)
        if match and _started(int(match[1])) != int(match[2]) and os.access(folder, os.W_OK):
            clear(folder)


def _started(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if it does not run.

    Together with its number this names a process for good: numbers are used again.
    """
    try:
        text = (_PROCESSES / str(pid) / "stat").read_text()
    except OSError:
        return 0
    state, *fields = text.rpartition(")")[2].split()
    return 0 if state == "Z" else int(fields[18])


def _engines(folder: pathlib.Path) -> list[tuple[int, list[str]]]:
    """Processes with a file of the folder among their arguments, and their arguments."""
    found = []
    for entry in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(text.startswith(f"{folder}{os.sep}") for text in arguments):
                found.append((int(entry.name), arguments))
    return found
