"""What the documents point to is there, and the README stays short."""

import itertools
import pathlib
import re

import pytest

import hvin_jax

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted(
    itertools.chain(
        ROOT.glob("*.md"),
        ROOT.glob("docs/**/*.md"),
        ROOT.glob("benchmarks/*.md"),
        ROOT.glob("results/*.md"),
        ROOT.glob("results/*/report/*.md"),
    )
)
CODE = re.compile(r"^```.*?^```|^(?: {4}).*?$", re.M | re.S)
# [text](target), ![text](target), [name]: target, <img src="target">
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]:\s+(\S+)|src=\"([^\"]+)\"", re.M)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# Commands are modules of these packages, or `hvin`.
COMMAND = re.compile(r"python -m ((?:experiments|benchmarks)\.[\w.]+)")


def links(page):
    """The relative links of a page: (path, anchor)."""
    for groups in LINK.findall(CODE.sub("", page.read_text())):
        target = next(filter(None, groups))
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page):
    """The anchors of a page's headings, as they are made on the usual sites."""
    titles = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text()), re.M)
    texts = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {text.replace(" ", "-") for text in texts}


def test_there_are_documents():
    assert {"README.md", "WORKSPACE.md", "CONTRIBUTING.md", "docs/index.md"} <= {*NAMES}
    assert "docs/train.md" in [path for path, _ in links(ROOT / "README.md")]


@pytest.mark.parametrize("name", NAMES)
def test_links(name):
    page = ROOT / name
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} points to {path}, which is not there"
        assert target.is_relative_to(ROOT), f"{name} points out of the repository: {path}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name}: {path} has no heading #{anchor}"


@pytest.mark.parametrize("name", NAMES)
def test_commands(name):
    if name == "CHANGELOG.md":
        return  # which also speaks of what there was
    for module in COMMAND.findall((ROOT / name).read_text()):
        path = ROOT / f"{module.rstrip('.').replace('.', '/')}.py"
        assert path.exists() or module.endswith("NAME"), f"{name}: there is no {module}"


def test_the_version_to_cite():
    assert f"\nversion: {hvin_jax.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {hvin_jax.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1000
