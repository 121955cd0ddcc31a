import numpy as np
import pytest

from hvin_jax.tasks.datasets import CHUNK, make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import ARRAYS, SPLITS
from hvin_jax.tasks.mechanisms import MECHANISMS


def _make(*, size=(9, 9), mechanism="diffdrive", train=900, valid=60, test=40, seed=0, **options):
    return make_mazes(
        law=MazeLaw(size, options.pop("decimation", (0.0, 1.0))),
        mechanism=MECHANISMS[mechanism],
        train=train,
        valid=valid,
        test=test,
        seed=seed,
        **options,
    )


def _equal(first, second):
    return all(
        np.array_equal(getattr(getattr(first, split), name), getattr(getattr(second, split), name))
        for split in SPLITS
        for name in ARRAYS
    )


@pytest.mark.processes
@pytest.mark.slow
def test_the_number_of_workers_does_not_matter():
    alone = _make(train=2000)
    assert _equal(alone, _make(train=2000, workers=3))
    assert not _equal(alone, _make(train=2000, seed=1))


def test_no_map_occurs_twice():
    mazes = _make(size=(7, 7), train=600, valid=300, test=200)
    assert [len(getattr(mazes, split)) for split in SPLITS] == [600, 300, 200]
    maps = np.concatenate([getattr(mazes, split).maze for split in SPLITS])
    assert len({maze.tobytes() for maze in maps}) == 1100
    # Duplicates did occur and were dropped: the open map is the most common of all.
    assert sum(maze[1:-1, 1:-1].all() for maze in maps) == 1


def test_splits_are_dealt_at_random():
    """Of the six maps of 5×5 the open one tends to be drawn first, but is dealt like any other."""
    draws = 150
    in_train = sum(
        _make(size=(5, 5), train=1, valid=0, test=5, seed=seed).train.maze[0, 1:-1, 1:-1].all()
        for seed in range(draws)
    )
    assert abs(in_train / draws - 1 / 6) < 4 * np.sqrt(1 / 6 * 5 / 6 / draws)


def test_seeds_share_nothing():
    first, second = (
        _make(size=(15, 15), train=2 * CHUNK, valid=0, test=0, seed=seed).train for seed in (0, 1)
    )
    maps = {maze.tobytes() for maze in first.maze}
    # Nearly open maps occur in both by chance.
    assert sum(maze.tobytes() in maps for maze in second.maze) < 0.1 * len(maps)


def test_all_mechanisms_get_the_same_maps():
    drive, news, moore = (_make(mechanism=name) for name in ("diffdrive", "news", "moore"))
    for other in (news, moore):
        np.testing.assert_array_equal(drive.train.maze, other.train.maze)
        np.testing.assert_array_equal(drive.test.goal[:, :2], other.test.goal[:, :2])
    assert moore.test.label.shape == (40, 9, 9, 1)
    assert moore.seed == 0
    assert moore.decimation == (0.0, 1.0)


def test_empty_splits_and_parts():
    mazes = _make(train=5, valid=0, test=0)
    assert mazes.valid.maze.shape == (0, 9, 9)
    assert mazes.valid.spl.shape == (0, 9, 9, 4)
    part = mazes.train[1:3]
    np.testing.assert_array_equal(part.label, mazes.train.label[1:3])
    assert len(part) == 2
    assert part.goal_maps().shape == (2, 9, 9, 4)


def test_progress_adds_up():
    steps = []
    _make(train=3 * CHUNK, valid=1, test=1, progress=steps.append)
    assert sum(steps) == 3 * CHUNK + 2
    assert len(steps) >= 4


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.slow
def test_too_few_maps_is_an_error(workers):
    # 5×5 without decimation: the search goes round the four cells in one of two ways; the goal
    # frees the wall that is left, the one in the middle, or none.
    with pytest.raises(ValueError, match=r"draws of 5×5 mazes .* gave only 5, and 1000 were asked"):
        _make(size=(5, 5), decimation=(0.0, 0.0), workers=workers)
    assert len(_make(size=(5, 5), decimation=(0.0, 0.0), train=5, valid=0, test=0).train) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train": -1}, "train is -1, expected 0 or more"),
        ({"seed": -5}, "seed is -5, expected 0 or more"),
        ({"seed": 2**63}, "expected less than 2⁶³"),
        ({"workers": 0}, "workers is 0, expected 1 or more"),
        ({"train": 0, "valid": 0, "test": 0}, "no mazes were asked for"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        _make(**options)
