"""What the kernels of a DT-VIN say for every arrangement of walls around a cell.

A kernel sees 3×3 cells, so there are 512 arrangements, and each can be looked at. If in all of them
a move leads where it leads, moves into walls lead to walls or nowhere, walls lead to walls, and the
agent can stay at the goal, then planning is value iteration in the true map, whatever the map.
Staying is not needed where every walk between two states is even or odd, as with four moves or
differential drive: one who can't stay comes back, and no detour of one action gains from that.
"""

import itertools
from typing import Any

import jax
import numpy as np

from hvin_jax.models._symmetric import averaged, kernel_tables
from hvin_jax.planner import Planner
from hvin_jax.planning import places_around

CELLS = np.array(list(itertools.product((0, 1), repeat=9)), np.float32)
"""`[512, 9]`, 1 = free, rows of the 3×3 cells one after the other."""
_OWN_CELL = 4
# A kernel is wrong if it has more than this on places that it should not lead to.
_WRONG = 1e-3


def can_be_listed(planner: Planner) -> bool:
    """Whether all that its kernels see are the walls around and the goal of their own cell."""
    settings = planner.settings
    wanted = {"kernel_size": 3, "goal_seen": "own", "head": "actions", "normalise": "action"}
    own = all(settings.get(name) == value for name, value in wanted.items())
    return own and not settings.get("terrain", False)


def leaks(planner: Planner) -> dict[str, np.ndarray]:
    """How much weight kernels have on places that they should not lead to.

    Returns:
      By what they are kernels of, one number for each arrangement, orientation and action: "moves"
      (of free cells, the goal's in other orientations than its own included), "blocked" (moves into
      walls), "walls" (of wall cells), "stays" (at the goal, of the action that stays best).
    """
    mechanism = planner.mechanism
    orientations = range(mechanism.num_orientations)
    places = places_around(3, mechanism.num_orientations, planner.settings["window"])
    cell = np.array([3 * (down + 1) + right + 1 for down, right, _ in places])
    own = places.index((0, 0, 0))
    free, around = CELLS[:, _OWN_CELL] == 1, CELLS[:, cell] == 1  # [512], [512, P]
    found: dict[str, list[np.ndarray]] = {"moves": [], "blocked": [], "walls": [], "stays": []}
    for goal in (None, *orientations):
        kernels = _kernels(planner, goal, len(places))
        for orientation in orientations:
            of_state = kernels[:, :, :, orientation]  # [512, P, A]
            if goal == orientation:
                found["stays"].append(1 - of_state[free, own].max(-1))
                continue
            for action, (down, right, new) in enumerate(mechanism.moves[orientation]):
                target = places.index((down, right, (new - orientation) % len(orientations)))
                weight, enters = of_state[:, :, action], around[:, target]
                moves, blocked = free & enters, free & ~enters
                found["moves"].append(1 - weight[moves, target])
                elsewhere = around & (np.arange(len(places)) != own)
                found["blocked"].append((weight * elsewhere).sum(1)[blocked])
                if goal is None:
                    found["walls"].append((weight * around).sum(1)[~free])
    return {name: np.concatenate(parts) for name, parts in found.items()}


def about_leaks(planner: Planner) -> dict[str, Any]:
    """By kind: how many kernels there are, how many are wrong, and the largest leak."""
    return {
        name: {"kernels": x.size, "wrong": int((x > _WRONG).sum()), "largest": float(x.max())}
        for name, x in leaks(planner).items()
    }


def _kernels(planner: Planner, goal: int | None, places: int) -> np.ndarray:
    """`[512, P, A, O]` of cells that are the goal in an orientation, or in none."""
    mechanism = planner.mechanism
    params = jax.tree.map(np.asarray, planner.params["params"])
    goals = np.zeros((len(CELLS), mechanism.num_orientations), np.float32)
    if goal is not None:
        goals[:, goal] = 1
    seen = np.concatenate([CELLS, goals], axis=1)
    weights, bias = params["transition"], params["transition_bias"]
    if planner.settings.get("symmetric"):
        names = planner.model.names_of_seen(1 + mechanism.num_orientations)
        around = places_around(3, mechanism.num_orientations, planner.settings["window"])
        tables = kernel_tables(planner.settings["moves"], names, around)
        weights, bias = map(averaged, (weights, bias), tables)
    logits = np.einsum("nc,cko->nko", seen, weights) + bias
    logits = logits.reshape(len(CELLS), places, mechanism.num_actions, -1)
    return np.asarray(jax.nn.softmax(planner.model.used_sharpness * logits, axis=1))
