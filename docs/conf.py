"""How the site is built: `make docs`.

The source is the whole repository, so that pages outside of docs/ (RESULTS.md, CHANGELOG.md, those
under results/) are part of the site as they are, with their links and pictures.
"""

import hashlib
import logging
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/_ext"))

import hvin_jax  # noqa: E402

project = "hvin_jax"
author = "the authors of hvin_jax"
copyright = "the authors of hvin_jax, Apache-2.0"
version = release = hvin_jax.__version__
language = "en-GB"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "public_names",
    "repository_files",
]

# What is a page. The patterns are those of the files from the root of the repository.
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/notebooks/*.ipynb",
    "RESULTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "WORKSPACE.md",
    "benchmarks/README.md",
    "results/README.md",
    "results/*/report/*.md",
    "results/generality/*.md",
    "hvin_jax/weights/*/CARD.md",
]
exclude_patterns = [".*", "docs/_*", "runs", "data", "build", "dist", "**/.*", "*.egg-info"]

# Markdown, and notebooks that run.
myst_enable_extensions = ["colon_fence", "html_image"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
logging.getLogger("traitlets").setLevel(logging.WARNING)  # which notebook runs: not of interest


def _code_digest() -> str:
    """Of the library: when it changes, all notebooks run again."""
    files = sorted((ROOT / "hvin_jax").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


nb_execution_cache_path = str(ROOT / "docs/_build/notebooks" / _code_digest())

# Docstrings: Google's style; a single backtick is code, and a link where there is such a name.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"
autosummary_generate = False

html_theme = "furo"
html_title = f"hvin_jax {release}"
html_static_path = ["_static"]
html_extra_path = ["_root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e4f", "color-brand-content": "#0b6e4f"},
    "dark_css_variables": {"color-brand-primary": "#5ad1a5", "color-brand-content": "#5ad1a5"},
}
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"
