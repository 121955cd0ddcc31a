"""How dataclasses of arrays show themselves: by shapes and types, not by all their numbers."""

import dataclasses
from typing import Any


def repr_of_arrays(self: Any) -> str:
    """For instance `ConvMDP(q_reward=float32[2,9,9,4,5], kernel=float32[3,3,4,4,5])`."""
    fields = (f"{x.name}={_short(getattr(self, x.name))}" for x in dataclasses.fields(self))
    return f"{type(self).__name__}({', '.join(fields)})"


def _short(x: Any) -> str:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    return repr(x)
