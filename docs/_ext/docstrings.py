"""What docstrings mean to a reader of the source, said so that Sphinx understands it.

- An indented block outside of a section (`Args:` and so on) is an equation: it keeps its lines.
- `Returns:` with several `name: text` is a list.
- A Flax module also has the fields of the modules it is derived from.
"""

import inspect
import re
from typing import Any

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):$")
_ENTRY = re.compile(r"  (\w+): (.*)")


def rewrite(lines: list[str]) -> list[str]:
    """The lines of a docstring, whose indentation has been taken off, for napoleon."""
    result: list[str] = []
    section, quoted = "", False
    blocks = _returned(lines)
    for number, line in enumerate(lines):
        if line and not line[0].isspace():
            found = _SECTION.match(line)
            section, quoted = found[1] if found else "", False
        elif line and not section and not quoted and number and not lines[number - 1]:
            result += ["::", ""]
            quoted = True
        result.append(line)
    return _replaced(result, blocks) if blocks else result


def _returned(lines: list[str]) -> list[str]:
    """The entries of a `Returns:` that has several, as a list; else nothing."""
    if "Returns:" not in lines:
        return []
    block = lines[lines.index("Returns:") + 1 :]
    end = next((n for n, line in enumerate(block) if line and not line[0].isspace()), len(block))
    entries = [_ENTRY.match(line) for line in block[:end] if re.match(r"  \S", line)]
    if len(entries) < 2 or not all(entries):
        return []
    return [_ENTRY.sub(r"  - **\1**: \2", line) for line in block[:end]]


def _replaced(lines: list[str], block: list[str]) -> list[str]:
    start = lines.index("Returns:")
    body = [f"  {line}" if line.strip() else "" for line in block]
    return [*lines[:start], ":returns:", *body, *lines[start + 1 + len(block) :]]


def inherited_fields(cls: type) -> list[str]:
    """What is said of the fields in docstrings of the classes that it is derived from."""
    mine = inspect.cleandoc(cls.__doc__ or "").splitlines()
    entries = _fields(mine)
    for base in cls.__mro__[1:]:
        if base.__module__.startswith("hvin_jax"):
            entries = _fields(inspect.cleandoc(base.__doc__ or "").splitlines()) | entries
    known = [field for field in getattr(cls, "__dataclass_fields__", ()) if field in entries]
    return [line for field in known for line in entries[field]]


def _fields(lines: list[str]) -> dict[str, list[str]]:
    """The entries of `Attributes:` by name."""
    entries: dict[str, list[str]] = {}
    if "Attributes:" in lines:
        for line in lines[lines.index("Attributes:") + 1 :]:
            if line and not line[0].isspace():
                break
            if found := _ENTRY.match(line):
                entries[found[1]] = []
            if entries and line.strip():
                entries[list(entries)[-1]].append(line)
    return entries


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and _is_flax(obj) and (fields := inherited_fields(obj)):
        before = lines[: lines.index("Attributes:")] if "Attributes:" in lines else [*lines]
        lines[:] = [*before, "", "Attributes:", *fields]
    lines[:] = rewrite(lines)


def _signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str | None, Any] | None:
    """Flax's own two arguments are left out: their types are longer than all the others."""
    if what == "class" and _is_flax(obj) and signature:
        return re.sub(r",? ?parent: .*\)$", ")", signature, flags=re.S), returns
    return None


def _is_flax(obj: Any) -> bool:
    from flax import linen as nn

    return inspect.isclass(obj) and issubclass(obj, nn.Module)


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls it."""
    from sphinx.domains.python import PyObject

    app.connect("autodoc-process-docstring", _docstring, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
