"""Malformed files and words end in one sentence, and nothing is begun: what is quick to try.

`python -m tests.malformed` tries all of it, each in a process of its own.
"""

import shutil
import signal

import pytest

from hvin_jax.cli import main
from tests.malformed.attempt import listing, outcome
from tests.malformed.cases import all_cases
from tests.malformed.kit import make_kit
from tests.malformed.load import READERS

pytestmark = pytest.mark.slow
COMMANDS = {"experiments.plan": "plan", "experiments.make_mazes": "mazes"}
# Cases that need seconds or gigabytes.
LONG = ("unpacks to 3 GB", "long.txt", "tall.txt", "wide.txt", "9000.png", "3000×3000 map")


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kit")
    make_kit(folder)
    return folder


@pytest.fixture(autouse=True)
def _no_hanging():
    signal.alarm(120)
    yield
    signal.alarm(0)


def _end(case):
    """Exit code and sentence, as the process would have them."""
    try:
        if case.command in READERS:
            READERS[case.command](*case.words)
            return 0, ""
        main([COMMANDS[case.command], *case.words])
    except ValueError as error:
        return 1, f"{error}\n"
    except SystemExit as end:
        return end.code, None


@pytest.mark.parametrize("command", [*READERS, *COMMANDS])
def test_one_sentence(command, kit, tmp_path, monkeypatch, capsys):
    cases = [case for case in all_cases() if case.command == command and _is_quick(case)]
    assert len(cases) > 9
    wrong = []
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        shutil.copytree(kit, folder, copy_function=shutil.copy)
        case.spoil(folder)
        monkeypatch.chdir(folder)
        before = listing(folder)
        code, said = _end(case)
        said = capsys.readouterr().err if said is None else said
        if (found := outcome(code, said, listing(folder) - before)) != "clear":
            wrong.append((case.name, found, said))
    assert not wrong


def _is_quick(case):
    return not any(case.name.endswith(name) for name in LONG)
