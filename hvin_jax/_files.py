"""Files that appear in one piece or not at all, whatever happens while they are written."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import IO, Any


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


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Writes a JSON file for people to read, too."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
