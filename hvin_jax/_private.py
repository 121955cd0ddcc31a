"""What is one's own, and a place for temporary things that no other user can touch."""

import contextlib
import errno
import os
import pathlib
import stat
import tempfile
from collections.abc import Callable


def private_folder() -> pathlib.Path:
    """The folder of this user in the temporary directory; made if it is not there.

    Its name is short: Ray's sockets, which live in it, have paths of 107 characters at most.

    Raises:
      PermissionError: something else is there, such as a link or a folder of somebody else.
    """
    folder = pathlib.Path(tempfile.gettempdir(), f"hvin-{os.geteuid()}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_own(folder, stat.S_ISDIR) or folder.lstat().st_mode & 0o777 != 0o700:
        raise PermissionError(
            errno.EACCES,
            "it is not a folder of yours that is closed to others (mode 700); remove it, or set "
            "TMPDIR to a folder of your own",
            str(folder),
        )
    return folder


def is_own(path: pathlib.Path, is_kind: Callable[[int], bool]) -> bool:
    """Whether a path itself, not what it may link to, is of a kind and of this user.

    Args:
      path: which.
      is_kind: `stat.S_ISREG` for a file, `stat.S_ISDIR` for a folder.
    """
    try:
        found = path.lstat()
    except OSError:
        return False
    return is_kind(found.st_mode) and found.st_uid == os.geteuid()
