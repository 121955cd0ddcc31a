"""Packages that only a part of hvin_jax needs, and what to say where they are missing."""

import contextlib
from collections.abc import Iterator


class MissingExtraError(ImportError):
    """A package that comes with an extra of hvin_jax is not installed."""


@contextlib.contextmanager
def needs(what: str, package: str, *, extra: str) -> Iterator[None]:
    """Around imports: where they fail, one sentence says how to get what is missing.

    Args:
      what: what the package is needed for, the beginning of the sentence.
      package: its name for pip.
      extra: the extra of hvin_jax that brings it.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {package}: pip install 'hvin_jax[{extra}]'"
        ) from error
