"""Mazes turned and mirrored: the symmetries of the grid under which a mechanism stays itself.

A turned maze is another maze with known answers: states and actions are renamed, path lengths are
carried along. A square maze stands for eight, any other for four.
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hvin_jax.planning._symmetries import DIAGONAL, EXCHANGING, renamings
from hvin_jax.tasks.mechanisms import Mechanism


class Symmetries(NamedTuple):
    """`G` symmetries of maps of one size, as tables; number 0 leaves everything as it is.

    Attributes:
      cell: int32 `[G, H · W]`, which cell comes to each place.
      state: int32 `[G, S]`, which state comes to each place.
      goal: int32 `[G, S, 3]`, where each state comes to: (row, column, orientation).
      action: uint8 `[G, A]`, what each action is called afterwards.
    """

    cell: np.ndarray
    state: np.ndarray
    goal: np.ndarray
    action: np.ndarray

    @property
    def order(self) -> int:
        """`G`."""
        return len(self.cell)

    def transform(self, batch: Mapping[str, jax.Array], which: jax.Array) -> dict[str, jax.Array]:
        """Turns and mirrors mazes.

        Args:
          batch: arrays as in `MazeData`: maze, and cost and inside if they are there, `[B, H, W]`,
            goal `[B, 3]` or `[B, K, 3]`, and label, optimal and spl `[B, H, W, O]`; others are left
            as they are.
          which: int `[B]`, the symmetry for each maze.

        Returns:
          The same arrays, changed.
        """
        row, column, orientation = jnp.moveaxis(batch["goal"], -1, 0)
        _, _, width, orientations = batch["spl"].shape
        goal = (row * width + column) * orientations + jnp.maximum(orientation, 0)
        of_goal = which.reshape(-1, *(1,) * (goal.ndim - 1))
        new_goal = jnp.asarray(self.goal)[of_goal, goal]
        # An orientation of -1 stands for any, and stays so.
        new_goal = new_goal.at[..., 2].set(jnp.where(orientation < 0, -1, new_goal[..., 2]))

        def moved(array: jax.Array, source: np.ndarray) -> jax.Array:
            flat = array.reshape(array.shape[0], -1)
            taken = jnp.take_along_axis(flat, jnp.asarray(source)[which], axis=1)
            return taken.reshape(array.shape)

        def renamed(array: jax.Array, names: np.ndarray) -> jax.Array:
            return jnp.asarray(names)[which[:, None, None, None], moved(array, self.state)]

        def renamed_sets(sets: jax.Array) -> jax.Array:
            sets, one = moved(sets, self.state), jnp.ones((), sets.dtype)
            names = jnp.asarray(self.action).astype(sets.dtype)[which][:, None, None, None]
            bits = [(sets >> one * a & one) << names[..., a] for a in range(names.shape[-1])]
            return functools.reduce(jnp.bitwise_or, bits)

        of_cells = [name for name in ("maze", "cost", "inside") if name in batch]
        return {
            **batch,
            **{name: moved(batch[name], self.cell) for name in of_cells},
            "goal": new_goal,
            "label": renamed(batch["label"], self.action),
            "optimal": renamed_sets(batch["optimal"]),
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
    matrices = DIAGONAL + (EXCHANGING if size[0] == size[1] else [])
    found = [
        _tables(matrix, size, *names) for matrix, *names in renamings(mechanism.moves, matrices)
    ]
    return Symmetries(*(np.stack(tables) for tables in zip(*found, strict=True)))


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
    return Symmetries(
        cell=np.argsort(new_cell).astype(np.int32),
        state=np.argsort(new_state).astype(np.int32),
        goal=goal.reshape(-1, 3),
        action=actions.astype(np.uint8),
    )
