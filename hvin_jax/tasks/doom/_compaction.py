"""Views in a small space, without loss: tables of what is distinct, and indices.

From the centre of a cell, what a column of the picture shows is decided by the first wall that its
rays meet, and there are few walls that they can meet first. So whole views repeat rarely, but their
columns nearly always: a view is stored as 32 indices into a table of columns.
"""

import dataclasses
import hashlib

import numpy as np

from hvin_jax.tasks.doom.camera import VIEW_SHAPE

_ROWS, COLUMNS, _COLOURS = VIEW_SHAPE
COLUMN_SHAPE = (_ROWS, _COLOURS)


@dataclasses.dataclass(frozen=True)
class CompactViews:
    """Views of some mazes.

    Attributes:
      columns: uint8 `[C, 24, 3]`, the distinct columns.
      views: uint32 `[U, 32]`, the distinct views, from left to right as indices into `columns`.
      index: uint32 `[..., H, W, 4]`, for each cell and direction (N, E, W, S) one of `views`.
    """

    columns: np.ndarray
    views: np.ndarray
    index: np.ndarray


def compact(views: np.ndarray) -> CompactViews:
    """Finds what is distinct, in the order in which it first occurs.

    Args:
      views: uint8 `[..., 24, 32, 3]`.

    Returns:
      The same views.
    """
    flat = views.reshape(-1, *VIEW_SHAPE)
    seen: dict[bytes, int] = {}
    index = [seen.setdefault(view.tobytes(), len(seen)) for view in flat]
    table = np.frombuffer(b"".join(seen), dtype=np.uint8).reshape(-1, *VIEW_SHAPE)
    strips = np.ascontiguousarray(table.transpose(0, 2, 1, 3)).reshape(-1, _ROWS * _COLOURS)
    columns: dict[bytes, int] = {}
    width = strips.shape[1]
    raw = strips.tobytes()
    places = [
        columns.setdefault(raw[start : start + width], len(columns))
        for start in range(0, len(raw), width)
    ]
    return CompactViews(
        columns=np.frombuffer(b"".join(columns), dtype=np.uint8).reshape(-1, *COLUMN_SHAPE),
        views=np.array(places, dtype=np.uint32).reshape(-1, COLUMNS),
        index=np.array(index, dtype=np.uint32).reshape(views.shape[:-3]),
    )


def expand(columns: np.ndarray, views: np.ndarray) -> np.ndarray:
    """The pictures of views: uint8 `[..., 24, 32, 3]` of indices `[..., 32]`."""
    return np.ascontiguousarray(np.moveaxis(columns[views], -3, -2))


class Tables:
    """Growing tables of columns and views, to which mazes are added one by one."""

    def __init__(self) -> None:
        self._columns: dict[bytes, int] = {}
        self._views: dict[bytes, int] = {}

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of columns and of views."""
        return len(self._columns), len(self._views)

    def restore(self, columns: np.ndarray, views: np.ndarray) -> None:
        """Adds columns and views that are in terms of these tables already, such as `add` returns.

        Args:
          columns: uint8 `[c, 24, 3]`, new ones.
          views: uint32 `[u, 32]`, new ones.
        """
        _add(self._columns, columns.reshape(len(columns), -1))
        _add(self._views, views, digest=True)

    def add(self, maze: CompactViews) -> CompactViews:
        """Adds a maze.

        Args:
          maze: its views, in tables of their own.

        Returns:
          What was new: columns and views that the tables did not have, in terms of the tables; the
          index points into the tables as a whole.
        """
        column_ids, new_columns = _add(self._columns, maze.columns.reshape(len(maze.columns), -1))
        views = column_ids[maze.views]
        view_ids, new_views = _add(self._views, views, digest=True)
        return CompactViews(maze.columns[new_columns], views[new_views], view_ids[maze.index])


def _add(
    table: dict[bytes, int], rows: np.ndarray, *, digest: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Adds rows to a table: the index of each row uint32, and a mask of those that were new.

    Args:
      table: what is there.
      rows: `[n, k]`.
      digest: whether to keep 16 bytes of each row in place of all; they differ where rows do.
    """
    ids = np.empty(len(rows), dtype=np.uint32)
    before = len(table)
    for place, row in enumerate(np.ascontiguousarray(rows)):
        key = row.tobytes()
        if digest:
            key = hashlib.blake2b(key, digest_size=16).digest()
        ids[place] = table.setdefault(key, len(table))
    # Rows are distinct, so what has an index of the new part is new, in order.
    return ids, ids >= before
