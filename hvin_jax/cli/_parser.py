"""A parser of command lines whose mistakes are one sentence each."""

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """`ArgumentParser` without abbreviations, and without a page of usage after a mistake."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options
        )

    @property
    def options(self) -> list[str]:
        """The names of all options."""
        return list(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        """Ends the process with a sentence and exit code 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def near_name(name: str, known: Sequence[str]) -> str:
    """A question after an unknown name, if a known one is like it; else nothing."""
    near = [x for x in known if len(name) > 2 and x.startswith(name)]
    near = near or difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def at_least(least: int) -> Any:
    """A type of arguments: whole numbers from `least` on."""

    def number(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,20}", text) or int(text) < least:
            shown = text if len(text) <= 20 else f"{text[:17]}..."
            raise argparse.ArgumentTypeError(f"{shown} is not a whole number of {least} or more")
        return int(text)

    return number
