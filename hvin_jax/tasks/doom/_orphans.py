"""Engines outlive a Python that is killed; here they are found and cleared away.

An engine is a process of its own, with three files in shared memory. Python ends it, but not when
Python itself is killed by SIGKILL. So each engine gets a folder whose name tells who owns it, its
configuration in that folder is among the engine's arguments, and the folder keeps the name of its
memory: whoever comes later (the parent of a killed worker, or the next run) can tell which engines
nobody owns any more. Folders are kept where no other user can make or change them, and nothing is
ended or removed that is not this user's.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterator

from hvin_jax import _owners
from hvin_jax._files import write_text
from hvin_jax._private import is_own, private_folder

# The engine's configuration in its folder.
CONFIG = "engine.ini"
_PREFIX = "doom-"
_INSTANCE = "instance"
_SHARED_MEMORY = pathlib.Path("/dev/shm")
_MEMORY = ("ViZDoomMQCtr", "ViZDoomMQDoom", "ViZDoomSM")
_PROCESSES = pathlib.Path("/proc")
_ID_ARGUMENT = "+viz_instance_id"


def make_folder() -> pathlib.Path:
    """A folder for one engine of this process."""
    prefix = f"{_PREFIX}{_owners.name_of(os.getpid())}-"
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=private_folder()))


@contextlib.contextmanager
def remembering_instance(folder: pathlib.Path) -> Iterator[None]:
    """Notes which shared memory the engine of a folder has, while it starts.

    The engine makes the memory a tenth of a second after its start. Whoever is killed from then on,
    the note is there.
    """
    started = threading.Event()

    def look() -> None:
        while not _remember_instance(folder) and not started.wait(0.005):
            pass

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        started.set()
        thread.join()
        _remember_instance(folder)


def engine_pids(folder: pathlib.Path) -> list[int]:
    """The processes of the engine of a folder."""
    config = str(folder / CONFIG)
    return [pid for pid, arguments in _processes() if config in arguments]


def has_lost_engine(pid: int) -> bool:
    """Whether an engine of a process has been up and is dead, and the process has not noticed."""
    folders = private_folder().glob(f"{_PREFIX}{_owners.name_of(pid)}-*")
    return any((x / _INSTANCE).exists() and not engine_pids(x) for x in folders)


def clear(folder: pathlib.Path) -> None:
    """Ends the engine of a folder if it still runs, and removes its shared memory and the folder.

    Args:
      folder: of an engine that this process owns, or that nobody owns any more.
    """
    if not is_own(folder, stat.S_ISDIR):
        return
    with contextlib.suppress(FileNotFoundError):  # somebody else is clearing it away
        _remember_instance(folder)
    for pid in engine_pids(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # Shared memory is removed when the engine can't touch it any more.
    end = time.monotonic() + 5
    while engine_pids(folder):
        if time.monotonic() > end:
            return  # whoever comes later tries again
        time.sleep(0.005)
    instance = _instance(folder)
    if instance and not any(instance in arguments for _, arguments in _processes()):
        for name in _MEMORY:
            memory = _SHARED_MEMORY / f"{name}{instance}"
            if is_own(memory, stat.S_ISREG):
                memory.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def clear_orphans() -> None:
    """Clears away the engines of processes that are dead."""
    for folder in private_folder().iterdir():
        match = re.fullmatch(rf"{_PREFIX}({_owners.PATTERN})-\w+", folder.name)
        if match and _owners.is_gone(match[1]):
            clear(folder)


def _remember_instance(folder: pathlib.Path) -> bool:
    """Notes which shared memory the engine of a folder has, for when it is gone, if it runs."""
    config = str(folder / CONFIG)
    for _, arguments in _processes():
        if config in arguments and _ID_ARGUMENT in arguments[:-1]:
            instance = arguments[arguments.index(_ID_ARGUMENT) + 1]
            if instance != _instance(folder):
                write_text(folder / _INSTANCE, instance)
            return True
    return False


def _instance(folder: pathlib.Path) -> str:
    """What the names of an engine's shared memory end in; nothing if that is not known."""
    path = folder / _INSTANCE
    text = path.read_text() if is_own(path, stat.S_ISREG) else ""
    return text if re.fullmatch("[A-Za-z0-9]{10}", text) else ""


def _processes() -> Iterator[tuple[int, list[str]]]:
    """The processes of this user, and their arguments."""
    for entry in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == os.geteuid():
                arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield int(entry.name), arguments
