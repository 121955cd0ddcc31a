"""Files: written in one piece or not at all, and read only where there is an ordinary one."""

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
# No description of anything is as large as this.
_LARGEST_JSON = 64 << 20


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name when complete, and never if anything goes wrong."""
    with _beside(pathlib.Path(path)) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        os.replace(file.name, path)


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes a folder, unless it is there; when an error leaves it empty, it goes away again."""
    folder = pathlib.Path(path)
    made = [x for x in (folder, *folder.parents) if not x.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for empty in made:
                empty.rmdir()
        raise


def check_file(path: str | os.PathLike[str]) -> None:
    """Raises if there is no ordinary file: reading a pipe or a device might never end."""
    if not os.path.exists(path):
        raise ValueError(f"{path}: there is no such file")
    if not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "a pipe or a device"
        raise ValueError(f"{path} is {kind}, expected a file")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Fails now rather than after the work whose outcome is to be written there."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the name of a file")
    if os.path.exists(path):
        check_file(path)
    with _beside(pathlib.Path(path)):
        pass


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes a JSON file for people to read, too."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


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


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
      ValueError: there is none; the message says why.
    """
    check_file(path)
    if os.path.getsize(path) > _LARGEST_JSON:
        raise ValueError(f"{path} is no description: it has more than {_LARGEST_JSON >> 20} MB")
    try:
        content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{path} is not sound JSON: it is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{path} is not sound JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, expected a JSON object")
    return content
