"""Links to files and folders of the repository that are no pages of the site.

Documents link to source files and to folders of runs. Each of these becomes a page under `files/`:
the text of the file, or the list of what is in the folder. What is not there fails the build.
"""

import html
import pathlib
import posixpath
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

_LARGEST = 200_000  # bytes that are shown
_LEXERS = {".py": "python", ".json": "json", ".jsonl": "json", ".md": "markdown", ".csv": "text"}


def _replace_links(app: Any, doctree: nodes.document) -> None:
    """Makes references of the links that MyST takes for downloads, or can't place."""
    docname = app.env.current_document.docname
    root = pathlib.Path(app.srcdir)
    for node in list(doctree.findall(addnodes.download_reference)) + [
        node for node in doctree.findall(addnodes.pending_xref) if node.get("reftype") == "myst"
    ]:
        target = node["reftarget"].partition("#")[0]
        if node.get("refdomain") == "doc":  # Markdown, named from the root without its ending
            if target in app.env.found_docs:
                continue
            path = root / f"{target}.md"
        elif target and "://" not in target:
            path = (root / docname).parent.joinpath(target).resolve()
        else:
            continue
        if not path.exists() or not path.is_relative_to(root):
            logging.getLogger(__name__).warning("there is no %s", target, location=node)
            continue
        relative = str(path.relative_to(root))
        _linked(app).setdefault(docname, set()).add(relative)
        uri = app.builder.get_relative_uri(docname, _page(relative))
        node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def _linked(app: Any) -> dict[str, set[str]]:
    """The files and folders that each page links to."""
    if not hasattr(app.env, "repository_files"):
        app.env.repository_files = {}
    return app.env.repository_files


def _page(path: str) -> str:
    return f"files/{path}"


def _forget(app: Any, env: Any, docname: str) -> None:
    _linked(app).pop(docname, None)


def _merge(app: Any, env: Any, docnames: Any, other: Any) -> None:
    _linked(app).update(getattr(other, "repository_files", {}))


def _pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each, and for the files in each folder."""
    root = pathlib.Path(app.srcdir)
    paths = {root / path for files in _linked(app).values() for path in files}
    folders = {path for path in paths if path.is_dir()}
    paths |= {file for folder in folders for file in _children(folder)}
    for path in sorted(paths):
        name = str(path.relative_to(root))
        body = _listing(path) if path.is_dir() else _text(app, path)
        title = html.escape(name)
        yield _page(name), {"title": title, "body": f"<h1>{title}</h1>{body}"}, "page.html"


def _children(folder: pathlib.Path) -> list[pathlib.Path]:
    """What a reader may look at: files with a text, and folders with such."""
    found = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "__"))]
    inner = [file for path in found if path.is_dir() for file in _children(path)]
    return found + inner


def _listing(folder: pathlib.Path) -> str:
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        link = posixpath.join(folder.name, f"{path.name}.html")
        size = "" if path.is_dir() else f" · {path.stat().st_size:,} bytes"
        lines.append(f'<li><a href="{html.escape(link)}">{html.escape(path.name)}</a>{size}</li>')
    return f"<ul>{''.join(lines)}</ul>"


def _text(app: Any, path: pathlib.Path) -> str:
    try:
        content = path.read_bytes()
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or len(content) > _LARGEST:
        return f"<p>{len(content):,} bytes, not shown: it is in the repository.</p>"
    lexer = _LEXERS.get(path.suffix, "text")
    return app.builder.highlighter.highlight_block(text, lexer, force=True)


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls it."""
    app.connect("doctree-read", _replace_links, priority=400)  # before downloads are collected
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("html-collect-pages", _pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
