"""The examples of the README run, and print what they say they print."""

import pathlib
import re

import pytest

README = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", README, re.M | re.S)


def test_there_are_examples():
    assert [title for title, _ in EXAMPLES] == [
        "Try it",
        "Plan in a small MDP",
        "Plan on a grid",
        "Train a planner",
        "Make mazes",
    ]


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example(title, code, capsys):
    exec(compile(code, title, "exec"), {})
    printed = capsys.readouterr().out
    expected = {
        "Try it": ["True 7 7"],
        "Plan in a small MDP": ["[ 5.9  6.6  7.3  8.1  9.  10. ]", "[1 1 1 1 1 1]"],
        "Plan on a grid": ["-11.0"],
        "Train a planner": ["(2, 15, 15, 4, 3) (2, 15, 15, 4)"],
        "Make mazes": ["success_rate=1.0", "optimality_rate=1.0"],
    }
    for text in expected[title]:
        assert text in printed
