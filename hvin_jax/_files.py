"""Files: written in one piece or not at all, and read only where there is an ordinary one."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

# No description of anything is as large as this.
_LARGEST_JSON = 64 << 20


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name when complete, and never if anything goes wrong."""
    final = pathlib.Path(path)
    temporary = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, final)
    except OSError as error:
        error.filename = error.filename or str(final)  # a full disk does not say which file
        raise
    finally:
        temporary.unlink(missing_ok=True)


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
    with atomic_write(f"{path}.test"):
        pass
    os.unlink(f"{path}.test")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes a JSON file for people to read, too."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


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
