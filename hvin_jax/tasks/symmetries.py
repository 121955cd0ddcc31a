"""Mazes turned and mirrored: the symmetries of the grid under which a mechanism stays itself.

A turned maze is another maze with known answers: states and actions are renamed, path lengths are
carried along. A square maze stands for eight, any other for four.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.tasks.maze_data import action_sets
from hvin_jax.tasks.mechanisms import Mechanism

# Turns and reflections of (row, column), the identity first; the last four exchange the two.
_SIGNS = list(itertools.product((1, -1), repeat=2))
_DIAGONAL = [np.diag(signs) for signs in _SIGNS]
_EXCHANGING = [matrix[::-1] for matrix in _DIAGONAL]


class Symmetries(NamedTuple):
    """`G` symmetries of maps of one size, as tables; number 0 leaves everything as it is.

    Attributes:
      cell: int32 `[G, H · W]`, which cell comes to each place.
      state: int32 `[G, S]`, which state comes to each place.
      goal: int32 `[G, S, 3]`, where each state comes to: (row, column, orientation).
      action: uint8 `[G, A]`, what each action is called afterwards.
      actions: uint8 `[G, 2 ** A]`, the same for sets of actions (bit `a` is action `a`).
    """

    cell: np.ndarray
    state: np.ndarray
    goal: np.ndarray
    action: np.ndarray
    actions: np.ndarray

    @property
    def order(self) -> int:
        """`G`."""
        return len(self.cell)

    def transform(self, batch: Mapping[str, jax.Array], which: jax.Array) -> dict[str, jax.Array]:
        """Turns and mirrors mazes.

        Args:
          batch: arrays as in `MazeData`: maze `[B, H, W]`, goal `[B, 3]`, and label, optimal and
            spl `[B, H, W, O]`; others are left as they are.
          which: int `[B]`, the symmetry for each maze.

        Returns:
          The same arrays, changed.
        """
        row, column, orientation = jnp.moveaxis(batch["goal"], -1, 0)
        _, _, width, orientations = batch["spl"].shape
        goal = (row * width + column) * orientations + orientation

        def moved(array: jax.Array, source: np.ndarray) -> jax.Array:
            flat = array.reshape(array.shape[0], -1)
            taken = jnp.take_along_axis(flat, jnp.asarray(source)[which], axis=1)
            return taken.reshape(array.shape)

        def renamed(array: jax.Array, names: np.ndarray) -> jax.Array:
            return jnp.asarray(names)[which[:, None, None, None], moved(array, self.state)]

        return {
            **batch,
            "maze": moved(batch["maze"], self.cell),
            "goal": jnp.asarray(self.goal)[which, goal],
            "label": renamed(batch["label"], self.action),
            "optimal": renamed(batch["optimal"], self.actions),
            "spl": moved(batch["spl"], self.state),
        }


def symmetries(mechanism: Mechanism, size: tuple[int, int]) -> Symmetries:
    """The symmetries of a mechanism on maps of a size.

    Args:
      mechanism: how the agent moves.
      size: `(H, W)`.

    Returns:
      All turns and reflections of the map for which orientations and actions can be renamed so that
      every move leads to the image of where it led.
    """
    matrices = _DIAGONAL + (_EXCHANGING if size[0] == size[1] else [])
    found = []
    for matrix in matrices:
        names = _rename(mechanism, matrix)
        if names is not None:
            found.append(_tables(matrix, size, *names))
    return Symmetries(*(np.stack(tables) for tables in zip(*found, strict=True)))


def _rename(mechanism: Mechanism, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """New names of orientations and actions, `[O]` and `[A]`; None if there are none that fit."""
    table = mechanism.table.astype(int)
    for orientations in itertools.permutations(range(mechanism.num_orientations)):
        names = np.array(orientations)
        image = np.concatenate([table[..., :2] @ matrix.T, names[table[..., 2:]]], axis=-1)
        renamed = table[names]
        # Whether action a does, seen from outside, what action b does after the renaming.
        fits = (image[:, :, None] == renamed[:, None, :]).all(axis=(0, 3))
        if (fits.sum(axis=1) == 1).all() and (fits.sum(axis=0) == 1).all():
            return names, fits.argmax(axis=1)
    return None


def _tables(
    matrix: np.ndarray, size: tuple[int, int], orientations: np.ndarray, actions: np.ndarray
) -> Symmetries:
    place = np.stack(np.meshgrid(*map(np.arange, size), indexing="ij"), axis=-1).reshape(-1, 2)
    image = place @ matrix.T
    image -= image.min(axis=0)
    new_cell = image[:, 0] * size[1] + image[:, 1]
    new_state = (new_cell[:, None] * len(orientations) + orientations).ravel()
    count = len(new_cell), len(orientations)
    goal = np.empty((*count, 3), np.int32)
    goal[..., :2], goal[..., 2] = image[:, None], orientations
    sets = action_sets(np.arange(2 ** len(actions), dtype=np.uint8), num_actions=len(actions))
    return Symmetries(
        cell=np.argsort(new_cell).astype(np.int32),
        state=np.argsort(new_state).astype(np.int32),
        goal=goal.reshape(-1, 3),
        action=actions.astype(np.uint8),
        actions=(sets << actions).sum(axis=1).astype(np.uint8),
    )
