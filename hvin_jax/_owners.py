"""Names of processes, which files carry so that whoever comes later can tell whose they were."""

import os
import pathlib
import zlib

# What a name looks like, as a regular expression.
PATTERN = r"[0-9a-f]{8}-[0-9]{1,9}-[0-9]{1,18}"
_PROCESSES = pathlib.Path("/proc")


def name_of(pid: int) -> str:
    """The name of a process: numbers are used again, by other machines too, but not this."""
    return f"{_here()}-{pid}-{_started(pid)}"


def is_gone(name: str) -> bool:
    """Whether the process of a name has ended.

    Nobody knows here about processes of another machine or container, so these are never gone; nor
    is any where there is no /proc.
    """
    _, pid, started = name.split("-")
    return name != name_of(int(pid)) and name.startswith(_here()) and started != "0"


def _here() -> str:
    """The machine, and what on it shares the numbers of processes."""
    try:
        numbers = os.stat(_PROCESSES / "self/ns/pid").st_ino
    except OSError:
        numbers = 0
    return f"{zlib.crc32(f'{os.uname().nodename} {numbers}'.encode()):08x}"


def _started(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if it does not run."""
    try:
        text = (_PROCESSES / str(pid) / "stat").read_text()
    except OSError:
        return 0
    state, *fields = text.rpartition(")")[2].split()
    return 0 if state == "Z" else int(fields[18])
