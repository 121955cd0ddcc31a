"""Files that appear in one piece or not at all, whatever happens while they are written."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from typing import IO, Any

from hvin_jax import _owners
from hvin_jax._private import is_own

_UNFINISHED = re.compile(rf"\.(.+)\.({_owners.PATTERN})-[0-9a-f]{{8}}\.part")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name when complete, and never if anything goes wrong."""
    with _beside(pathlib.Path(path)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        os.replace(file.name, path)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes a JSON file for people to read, too."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raises `OSError` if `atomic_write` would not be allowed to write a file."""
    with _beside(pathlib.Path(path)):
        pass


def is_unfinished(name: str) -> bool:
    """Whether a file of that name is one that `atomic_write` has begun."""
    return _UNFINISHED.fullmatch(name) is not None


@contextlib.contextmanager
def _beside(final: pathlib.Path) -> Iterator[IO[bytes]]:
    """A new file beside another one, gone afterwards if it has not got another name by then."""
    _clear_abandoned(final)
    name = f".{final.name}.{_owners.name_of(os.getpid())}-{secrets.token_hex(4)}.part"
    temporary = final.with_name(name)
    try:
        with open(temporary, "xb") as file:  # nothing that is there already, nor through a link
            try:
                yield file
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        # A full disk does not say which file, and nobody knows the other name.
        if error.filename in (None, str(temporary)):
            error.filename = str(final)
        raise


def _clear_abandoned(final: pathlib.Path) -> None:
    """Removes what killed processes have left beside a file that they were writing."""
    with contextlib.suppress(OSError):
        for name in os.listdir(final.parent):
            match = _UNFINISHED.fullmatch(name)
            if match and match[1] == final.name and _owners.is_gone(match[2]):
                abandoned = final.with_name(name)
                if is_own(abandoned, stat.S_ISREG):
                    abandoned.unlink(missing_ok=True)
