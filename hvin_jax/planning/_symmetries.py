"""Turns and reflections of the grid under which an agent's moves stay themselves."""

import itertools
from typing import Any, NamedTuple

import numpy as np

# Turns and reflections of (row, column), the identity first; the last four exchange the two.
_SIGNS = list(itertools.product((1, -1), repeat=2))
DIAGONAL = [np.diag(signs) for signs in _SIGNS]
EXCHANGING = [matrix[::-1] for matrix in DIAGONAL]


class Renaming(NamedTuple):
    """A symmetry: what it does to (row, column), new names of orientations and actions."""

    matrix: np.ndarray
    orientations: np.ndarray
    actions: np.ndarray


def renamings(moves: Any, matrices: Any = (*DIAGONAL, *EXCHANGING)) -> list[Renaming]:
    """The symmetries among matrices for which orientations and actions can be renamed.

    Args:
      moves: `[O][A]` triples (rows, columns, new orientation).
      matrices: `[2, 2]` each.

    Returns:
      Those after whose renaming every move leads to the image of where it led.
    """
    table = np.asarray(moves, dtype=int)
    found = []
    for matrix in matrices:
        for orientations in itertools.permutations(range(len(table))):
            names = np.array(orientations)
            image = np.concatenate([table[..., :2] @ matrix.T, names[table[..., 2:]]], axis=-1)
            # Whether action a does, seen from outside, what action b does after the renaming.
            fits = (image[:, :, None] == table[names][:, None, :]).all(axis=(0, 3))
            if (fits.sum(axis=1) == 1).all() and (fits.sum(axis=0) == 1).all():
                found.append(Renaming(matrix, names, fits.argmax(axis=1)))
                break
    return found
