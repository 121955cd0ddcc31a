"""Files that one process holds, so that no second one does the same; a killed one lets go."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def held(path: pathlib.Path) -> Iterator[None]:
    """Holds a file, which is made if it is not there.

    Raises:
      BlockingIOError: another process holds it.
    """
    with open(path, "a", opener=_open_itself) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def is_held(path: pathlib.Path) -> bool:
    """Whether a process holds a file."""
    try:
        with open(path, opener=_open_itself) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def _open_itself(path: str, flags: int) -> int:
    """Opens a file, but not what it links to, and without waiting for whoever writes to it."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
