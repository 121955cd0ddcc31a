"""One malformed input, tried in a process of its own."""

import os
import shutil
import subprocess
import time
from typing import NamedTuple

from tests.malformed.kit import ROOT

OUTCOMES = ("clear", "traceback", "accepted", "hang", "unclear", "left something")
SECONDS = 30


class Result(NamedTuple):
    """What came of a case.

    Attributes:
      outcome: one of `OUTCOMES`.
      said: what was said on stderr.
      seconds: how long it took.
    """

    outcome: str
    said: str
    seconds: float


def attempt(case, starter, kit, folder):
    """Runs a case in a folder, which is made for it and removed."""
    shutil.copytree(kit, folder)
    case.spoil(folder)
    before = listing(folder)
    if case.command.startswith(("experiments", "hvin_jax")):
        module, words = case.command, case.words
    else:
        module, words = "tests.malformed.load", (case.command, *case.words)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    began = time.monotonic()
    process = starter.start(module, words, folder=folder, environment=environment)
    try:
        _, said = process.communicate(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        said = None
    seconds = time.monotonic() - began
    process.wait()
    made = listing(folder) - before
    shutil.rmtree(folder)
    return Result(outcome(process.returncode, said, made), said or f"{sorted(made)}", seconds)


def listing(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def outcome(code, said, made):
    """Which of `OUTCOMES` it is."""
    if said is None:
        return "hang"
    if "Traceback" in said:
        return "traceback"
    if code == 0:
        return "accepted"
    if code < 0 or said.count("\n") != 1 or len(said) > 600:
        return "unclear"
    return "left something" if made else "clear"
