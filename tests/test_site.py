"""What the site needs, without building it: `make docs` does, and .ci/run runs that."""

import ast
import json
import os
import pathlib
import re
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.M | re.S)
DIRECTIVE = re.compile(r"^\.\. (auto\w+|py:data):: (\S+)", re.M)


@pytest.fixture(autouse=True)
def _extensions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs/_ext")


def pages():
    """The files of `include_patterns` in conf.py, without their endings."""
    tree = ast.parse((ROOT / "docs/conf.py").read_text())
    settings = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    patterns = ast.literal_eval(settings["include_patterns"])
    files = [file for x in patterns for file in ROOT.glob(x.replace("**.md", "**/*.md"))]
    names = {str(file.relative_to(ROOT).with_suffix("")) for file in files}
    return {name for name in names if not name.startswith("docs/_")}


def listed(page):
    """The pages in the toctrees of a page; patterns stand for what they match."""
    path = ROOT / f"{page}.md"
    for block in TOCTREE.findall(path.read_text() if path.exists() else ""):
        for line in block.splitlines():
            entry = re.sub(r".*<(.*)>", r"\1", line.strip())
            if not entry or entry.startswith(":"):
                continue
            name = os.path.normpath(pathlib.Path(page).parent / entry)
            found = ROOT.glob(f"{name}.*")
            yield from (str(file.relative_to(ROOT).with_suffix("")) for file in found)


def test_every_page_is_in_a_toctree():
    reached, waiting = set(), ["docs/index"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += listed(page)
    assert {"docs/start", "docs/notebooks/train", "RESULTS", "results/README"} <= reached
    assert pages() - reached == set()


def test_every_public_name_has_a_docstring():
    import public_names

    names = public_names.public_names()
    assert {"hvin_jax.highway_vi", "hvin_jax.tasks.drawing.draw_maze"} <= names.keys()
    assert public_names.undocumented(names) == []


def test_every_public_name_is_in_the_reference():
    import public_names

    text = "".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    names, shown = public_names.public_names(), set()
    for directive, target in DIRECTIVE.findall(text):
        if directive == "automodule":
            module = sys.modules[target]
            shown |= {f"{target}.{name}" for name in public_names.exported(module)}
        else:
            shown.add(target)
    assert public_names.missing(names, shown) == []
    rest = shown - {"hvin_jax.models.VIN"}
    assert public_names.missing(names, rest) == ["hvin_jax.models.VIN"]


def test_what_is_undocumented_is_found():
    import public_names

    module = types.ModuleType("some")
    source = """
class Documented:
    "It is."
    def said(self):
        "So is this."
    def forgotten(self):
        pass
    def _private(self):
        pass
def bare():
    pass
number = 3
"""
    exec(source, vars(module) | {"__name__": "some"}, vars(module))
    assert public_names.exported(module) == ["Documented", "bare"]
    names = {f"some.{name}": getattr(module, name) for name in public_names.exported(module)}
    assert public_names.undocumented(names) == ["some.Documented.forgotten", "some.bare"]


def test_docstrings_as_sphinx_reads_them():
    import docstrings

    text = """What it is.

  Q = R + V
    = more

Args:
  one: this.

    And more of it.

Returns:
  first: the one,
    or none.
  second: the other.

Raises:
  ValueError: if not."""
    assert (
        "\n".join(docstrings.rewrite(text.splitlines()))
        == """What it is.

::

  Q = R + V
    = more

Args:
  one: this.

    And more of it.

:returns:
    - **first**: the one,
      or none.
    - **second**: the other.

Raises:
  ValueError: if not."""
    )
    single = ["Sum.", "", "Returns:", "  A value: one."]
    assert docstrings.rewrite(single) == single


def test_models_have_the_fields_of_their_bases():
    import docstrings

    from hvin_jax.models import HighwayVIN

    lines = docstrings.inherited_fields(HighwayVIN)
    said = [line.strip().partition(":")[0] for line in lines if re.match(r"  \w+: ", line)]
    assert {"num_orientations", "latent_actions", "num_blocks"} <= {*said}
    assert len(said) == len({*said})


def test_links_of_a_built_site(tmp_path):
    import built_links

    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a><a href="https://x.org/y">x</a>')
    found = built_links.broken_links(tmp_path)
    assert found == [
        "a.html links to b.html#there: no element has the id there",
        "a.html links to c.png: there is no such file",
    ]
    (tmp_path / "c.png").touch()
    (tmp_path / "b.html").write_text('<h1 id="there"></h1><a href="../outside.html">o</a>')
    found = built_links.broken_links(tmp_path)
    assert found == ["b.html links to ../outside.html: it leads out of the site"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path):
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "".join(cells[0]["source"]).startswith("# ")
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    # The first cell installs the package where there is none, all in the same way.
    others = json.loads(NOTEBOOKS[0].read_text())["cells"]
    install = next(cell for cell in others if cell["cell_type"] == "code")
    assert code[0]["source"] == install["source"]
    assert "%pip install" in "".join(code[0]["source"])


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 5
