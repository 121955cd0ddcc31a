"""Kernels of all arrangements of walls around a cell."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from hvin_jax import Planner, load_planner, shipped_planners
from hvin_jax.models import DTVIN, init_params, settings_of
from hvin_jax.planning import places_around
from hvin_jax.report.arrangements import CELLS, _kernels, about_leaks, can_be_listed, leaks
from hvin_jax.tasks.maze_data import goal_maps
from hvin_jax.tasks.mechanisms import get_mechanism


def untrained(mechanism, **settings):
    motion = get_mechanism(mechanism)
    model = DTVIN(motion.num_orientations, motion.num_actions, depth=1, moves=motion.moves,
                  goal_seen="own", **settings)  # fmt: skip
    return Planner(settings_of(model), init_params(model, jax.random.key(1)), motion)


@pytest.mark.parametrize(("mechanism", "symmetric"), [("news", False), ("diffdrive", True)])
def test_kernels_are_those_of_the_model(mechanism, symmetric):
    """Its value after one layer is what they make of the rewards."""
    planner = untrained(mechanism, sharpness=1.0, symmetric=symmetric)
    maze = CELLS[[5, 200, 511]].reshape(-1, 3, 3)
    goal = np.array([[1, 1, 0]] * 3)
    orientations = planner.mechanism.num_orientations
    maps = goal_maps(goal, size=(3, 3), num_orientations=orientations)
    apply = jax.jit(partial(planner.model.apply, train=False, layers=1))
    value = np.asarray(apply(planner.params, maze, maps).value)[:, 1, 1]
    params = jax.tree.map(np.asarray, planner.params["params"])
    reward = np.concatenate([maze[..., None], maps], -1) @ params["reward"] + params["reward_bias"]
    places = places_around(3, orientations, "steps")
    kernels = _kernels(planner, 0, len(places))[[5, 200, 511]]
    for orientation in range(orientations):
        paid = np.stack(
            [
                reward[:, 1 + down, 1 + right, (orientation + turn) % orientations]
                for down, right, turn in places
            ],
            axis=1,
        )
        best = np.einsum("npa,np->na", kernels[..., orientation], paid).max(-1)
        np.testing.assert_allclose(value[:, orientation], best, rtol=1e-4)


def test_what_counts_as_a_leak():
    """Kernels that start as moves know no walls: moves are right, all else is wrong."""
    planner = untrained("news", apart=50.0)
    found = leaks(planner)
    assert {name: x.size for name, x in found.items()} == {
        "moves": 512,
        "blocked": 512,
        "walls": 1024,
        "stays": 256,
    }
    assert found["moves"].max() < 1e-3
    assert found["blocked"].max() < 1e-3  # into walls, which is where a wall is
    assert found["walls"].max() == pytest.approx(1)
    assert found["stays"].min() == pytest.approx(1)
    wrong = {name: x["wrong"] for name, x in about_leaks(planner).items()}
    # Half of what is beside a wall is free.
    assert wrong == {"moves": 0, "blocked": 0, "walls": 512, "stays": 256}


@pytest.mark.parametrize("change", [{"goal_seen": "around"}, {"head": "q"}, {"terrain": True}])
def test_what_can_not_be_listed(change):
    planner = untrained("news")
    assert can_be_listed(planner)
    model = dataclasses.replace(planner.model, **change)
    other = Planner(settings_of(model), init_params(model, jax.random.key(0)), planner.mechanism)
    assert not can_be_listed(other)
    assert not can_be_listed(load_planner("diffdrive-15"))


def test_shipped_planners_know_every_arrangement():
    """Moves of free cells are right whatever is around them, so that maps of any kind are."""
    planners = [x for x in map(load_planner, shipped_planners()) if can_be_listed(x)]
    assert [x.name for x in planners] == ["diffdrive", "moore", "news"]
    for planner in planners:
        about = about_leaks(planner)
        assert max(about["moves"]["largest"], about["blocked"]["largest"]) < 2e-3
        said = planner.card["measured"]["kernels"]
        for name, x in about.items():
            assert said[name]["kernels"] == x["kernels"]
            assert said[name]["largest"] == pytest.approx(x["largest"], rel=0.1, abs=1e-6)
