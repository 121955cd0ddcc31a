"""Which weights of a DT-VIN mean the same after a turn or reflection of the grid."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hvin_jax.planning._dynamic_backup import Places
from hvin_jax.planning._symmetries import renamings

Seen = Sequence[tuple[int, int, int]]
"""(rows down, columns to the right, channel) of each number that a kernel is made from; channel 0
is the map, those from 1 on are the goals of each orientation, then others."""


def kernel_tables(moves: Any, seen: Seen, places: Places) -> tuple[np.ndarray, np.ndarray]:
    """Flat indices of equal weights, for `transition` `[C, P·A, O]` and `transition_bias`.

    Args:
      moves: `[O][A]` triples, see `Mechanism`.
      seen: what the `C` numbers are.
      places: the `P` places, see `places_around`.

    Returns:
      int `[G, C, P·A, O]` and `[G, P·A, O]`: the weight that one becomes by each symmetry.
    """
    orientations, actions = len(moves), len(moves[0])
    weights, biases = [], []
    for symmetry in renamings(moves):
        names = symmetry.orientations
        turned = [(*_turned(symmetry.matrix, x), _renamed(x[2], names)) for x in seen]
        input_of = np.array([seen.index(x) for x in turned])
        place_of = np.array(
            [
                [
                    places.index(
                        (*_turned(symmetry.matrix, place),
                         int(names[(o + place[2]) % orientations] - names[o]) % orientations)
                    )
                    for o in range(orientations)
                ]
                for place in places
            ]
        )  # fmt: skip
        kernel_of = place_of[:, None] * actions + symmetry.actions[:, None]  # [P, A, O]
        bias = (kernel_of * orientations + names).reshape(-1, orientations)
        biases.append(bias)
        weights.append(input_of[:, None, None] * bias.size + bias)
    return np.stack(weights), np.stack(biases)


def reward_tables(moves: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for `reward` `[C, O]` and `reward_bias` `[O]`."""
    every = [symmetry.orientations for symmetry in renamings(moves)]
    rows = np.array([[_renamed(x, names) for x in range(channels)] for names in every])
    biases = np.stack(every)
    return rows[..., None] * len(moves) + biases[:, None], biases


def averaged(weights: Any, table: np.ndarray) -> Any:
    """Weights of which equal ones are their mean; a numpy or JAX array."""
    return weights.reshape(-1)[table].mean(0)


def _turned(matrix: np.ndarray, place: Sequence[int]) -> tuple[int, int]:
    row, column = matrix @ np.array(place[:2])
    return int(row), int(column)


def _renamed(channel: int, names: np.ndarray) -> int:
    """What a channel becomes when orientations get other names."""
    return 1 + int(names[channel - 1]) if 1 <= channel <= len(names) else channel
