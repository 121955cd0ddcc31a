"""The examples of README and docs run, and print what they say they print.

A page's blocks run in order and in one namespace. `print(...)  # prints TEXT` says what comes out,
where `...` stands for anything.
"""

import pathlib
import re

import jax
import pytest

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
PRINTS = re.compile(r"# prints (.+)")
EXAMPLES = {str(page.relative_to(ROOT)): BLOCK.findall(page.read_text()) for page in PAGES}
# Pages that train a planner.
SLOW = {
    "README.md",
    *(f"docs/{name}.md" for name in ("costs", "own_data", "own_moves", "reward", "train")),
}
WITH_EXAMPLES = [name for name, blocks in EXAMPLES.items() if blocks]


def test_there_are_examples():
    assert {"README.md", "docs/planning.md", "docs/train.md", "docs/own_mdp.md"} <= {*WITH_EXAMPLES}
    for name in WITH_EXAMPLES:
        assert PRINTS.search("".join(EXAMPLES[name])), f"{name} says nothing of what it prints"


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in WITH_EXAMPLES]
)
def test_examples(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what an example writes is gone afterwards
    namespace = {"__name__": "__main__"}
    for number, code in enumerate(EXAMPLES[name], 1):
        with jax.numpy_dtype_promotion("standard"):  # as users have it, and as optax needs it
            exec(compile(code, f"{name}, example {number}", "exec"), namespace)
        printed = capsys.readouterr().out
        for text in PRINTS.findall(code):
            parts = [re.escape(part) for part in text.split("...")]
            assert re.search(".*".join(parts), printed), f"{text!r} is not in {printed!r}"
