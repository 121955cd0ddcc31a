"""Mazes turned and mirrored: everything known about them is still true."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import ARRAYS, action_sets
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.tasks.symmetries import symmetries
from hvin_jax.training.maze_task import random_symmetry


def make(mechanism, size, count):
    law = MazeLaw(size, decimation=(0.0, 0.5))
    splits = make_mazes(
        law=law, mechanism=get_mechanism(mechanism), train=count, valid=1, test=1, seed=3
    )
    return splits.train


def arrays(data):
    return {name: jnp.asarray(getattr(data, name)) for name in ARRAYS}


@pytest.fixture(scope="module", params=["diffdrive", "news", "moore"])
def mazes(request):
    return make(request.param, (9, 9), 8)


def test_labels_of_a_turned_maze_are_those_of_the_maze_it_is(mazes):
    """Path lengths and optimal actions, found anew, are the ones that were carried along."""
    found = symmetries(mazes.mechanism, mazes.size)
    assert found.order == 8
    distinct = set()
    transform = jax.jit(lambda batch, which: found.transform(batch, which))
    for which in range(found.order):
        moved = transform(arrays(mazes), jnp.full(len(mazes), which))
        moved = {name: np.asarray(array) for name, array in moved.items()}
        spl, optimal = shortest_paths(moved["maze"], moved["goal"], mechanism=mazes.mechanism)
        np.testing.assert_array_equal(moved["spl"], spl)
        np.testing.assert_array_equal(moved["optimal"], optimal)
        sets = action_sets(moved["optimal"], num_actions=mazes.mechanism.num_actions)
        assert np.take_along_axis(sets, moved["label"][..., None].astype(int), -1).all()
        distinct.add(moved["maze"].tobytes() + moved["goal"].tobytes())
        for name in ARRAYS:
            assert moved[name].dtype == getattr(mazes, name).dtype
            if which == 0:
                np.testing.assert_array_equal(moved[name], getattr(mazes, name))
    assert len(distinct) == 8


def test_maps_that_are_not_square_are_not_turned_by_a_quarter():
    mazes = make("diffdrive", (7, 11), 4)
    found = symmetries(mazes.mechanism, mazes.size)
    assert found.order == 4
    moved = jax.jit(lambda batch: found.transform(batch, jnp.arange(4)))(arrays(mazes))
    spl, _ = shortest_paths(
        np.asarray(moved["maze"]), np.asarray(moved["goal"]), mechanism=mazes.mechanism
    )
    np.testing.assert_array_equal(moved["spl"], spl)


def test_a_mechanism_without_a_left_turn_can_be_turned_but_not_mirrored():
    drive = get_mechanism("diffdrive")
    right = dataclasses.replace(
        drive,
        name="right",
        actions=drive.actions[:2],
        moves=tuple(moves[:2] for moves in drive.moves),
    )
    assert symmetries(right, (5, 5)).order == 4
    east = dataclasses.replace(
        get_mechanism("news"), name="east", actions=("E",), moves=(((0, 1, 0),),)
    )
    # Rows may still be counted from below.
    assert symmetries(east, (5, 5)).order == 2


@pytest.mark.slow
def test_random_symmetries_belong_to_the_example(mazes):
    """All of them occur, and they do not depend on how a batch is split."""
    augment = jax.jit(random_symmetry(symmetries(mazes.mechanism, mazes.size)))
    batch = {name: jnp.repeat(array[:1], 64, axis=0) for name, array in arrays(mazes).items()}
    batch["requests"] = jnp.zeros(2)
    key = jax.random.key(0)
    whole = augment(batch, key=key, example_index=jnp.arange(64))
    seen = {np.asarray(maze).tobytes() for maze in whole["maze"]}
    assert len(seen) == 8
    part = {name: array[48:] if name in ARRAYS else array for name, array in batch.items()}
    last = augment(part, key=key, example_index=jnp.arange(48, 64))
    for name in ARRAYS:
        np.testing.assert_array_equal(last[name], whole[name][48:])
    np.testing.assert_array_equal(last["requests"], batch["requests"])
    other = augment(batch, key=jax.random.key(1), example_index=jnp.arange(64))
    assert not np.array_equal(other["maze"], whole["maze"])
