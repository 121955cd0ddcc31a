"""What does not fit into memory is refused before it is begun."""

import os


def memory_of_machine() -> int:
    """How many bytes of memory this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(needed: float, what: str) -> None:
    """Raises if this machine can't hold something.

    Args:
      needed: how many bytes that takes, at least.
      what: what takes them, as the error begins.
    """
    there = memory_of_machine()
    if needed > there:
        raise ValueError(
            f"{what} would take {_shown(needed)} of memory at least, this machine has "
            f"{_shown(there)}"
        )


def _shown(size: float) -> str:
    return f"{size / 1e9:,.0f} GB" if size < 1e15 else f"{size / 1e15:.3g} PB"
