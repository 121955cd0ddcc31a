"""Flax modules from settings as configurations and files have them."""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from flax import linen as nn

M = TypeVar("M", bound=nn.Module)
# Fields that every Flax module has.
_INHERITED = {"parent", "name"}


def build(module: type[M], settings: Mapping[str, Any], *, name: str) -> M:
    """A module with these settings; a name that it does not have is an error.

    Args:
      module: its class.
      settings: its fields. Lists become tuples: JSON knows no others, and modules are hashed.
      name: what the error calls it.
    """
    known = {field.name for field in dataclasses.fields(module)} - _INHERITED
    for setting in settings:
        if setting not in known:
            near = difflib.get_close_matches(setting, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"{name} has no setting {setting!r}{hint}")
    return module(**{key: _as_tuples(x) for key, x in settings.items()})


def _as_tuples(x: Any) -> Any:
    return tuple(map(_as_tuples, x)) if isinstance(x, list | tuple) else x


def fields_of(module: nn.Module) -> dict[str, Any]:
    """The settings that `build` makes the same module of."""
    names = [field.name for field in dataclasses.fields(module) if field.name not in _INHERITED]
    return {name: getattr(module, name) for name in names}
