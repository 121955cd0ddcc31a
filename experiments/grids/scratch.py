"""Folders for the time of a sweep, which are cleared away even if it is killed."""

import contextlib
import pathlib
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

from hvin_jax._private import is_own
from hvin_jax.training.workdir import is_locked, locked

# What the folder of Tune is called, beside the runs, where all nodes of a cluster see it.
TUNE_PREFIX = ".tune-"


@contextlib.contextmanager
def scratch(parent: pathlib.Path, prefix: str) -> Iterator[pathlib.Path]:
    """A folder that is removed afterwards, as are those that killed drivers have left there."""
    parent.mkdir(parents=True, exist_ok=True)
    clear_abandoned(parent, prefix)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with locked(folder):
            yield folder
    finally:
        end = time.monotonic() + 5
        while folder.exists() and time.monotonic() < end:  # something may still be writing there
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.01)


def clear_abandoned(parent: pathlib.Path, prefix: str) -> None:
    """Removes the folders of sweeps that were killed."""
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            own = is_own(folder, stat.S_ISDIR) and is_own(folder / ".lock", stat.S_ISREG)
            if own and not is_locked(folder):
                shutil.rmtree(folder)
