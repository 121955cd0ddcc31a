"""Checks the links inside a built site: `python docs/_ext/built_links.py docs/_build/html`.

Sphinx checks the links that it understands. This looks at what came out: every `href` and `src` of
every page, raw HTML included, has to lead to a file, and its `#fragment` to an element there.
"""

import html.parser
import pathlib
import sys
import urllib.parse


class _Page(html.parser.HTMLParser):
    """The ids of a page and what it links to."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.targets.add(value)


def broken_links(site: pathlib.Path) -> list[str]:
    """A sentence for each link that leads nowhere."""
    site = site.resolve()
    pages = {path: _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    return [
        f"{page.relative_to(site)} links to {target}: {wrong}"
        for page, content in pages.items()
        for target in sorted(content.targets)
        if (wrong := _wrong(page, target, site, pages))
    ]


def _wrong(
    page: pathlib.Path, target: str, site: pathlib.Path, pages: dict[pathlib.Path, _Page]
) -> str:
    parts = urllib.parse.urlsplit(target)
    if parts.scheme or parts.netloc:
        return ""
    path = page
    if parts.path:
        path = page.parent.joinpath(urllib.parse.unquote(parts.path)).resolve()
        if not path.is_relative_to(site):
            return "it leads out of the site"
        if not path.is_file():
            return "there is no such file"
    fragment = urllib.parse.unquote(parts.fragment)
    if fragment and path in pages and fragment not in pages[path].ids:
        return f"no element has the id {fragment}"
    return ""


if __name__ == "__main__":
    found = broken_links(pathlib.Path(sys.argv[1]))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
