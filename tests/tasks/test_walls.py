"""Walls around maps that have free cells at their edge."""

import numpy as np
import pytest

from hvin_jax.tasks import label_maps
from hvin_jax.tasks.walls import open_at_edge, walled

OPEN = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 0, 1]], np.uint8)
CLOSED = np.pad(np.ones((1, 3), np.uint8), 1)


@pytest.mark.parametrize("mechanism", ["news", "moore", "diffdrive"])
def test_paths_stay_as_they_are(mechanism):
    data = label_maps([OPEN, CLOSED, OPEN.T[:3]], [(0, 0), (1, 1), (0, 0)], mechanism=mechanism,
                      pad=True)  # fmt: skip
    np.testing.assert_array_equal(open_at_edge(data.maze, data.extent), [True, False, True])
    new = walled(data)
    np.testing.assert_array_equal(new.extent, [[5, 6], [3, 5], [5, 5]])
    np.testing.assert_array_equal(new.goal[:, :2], [[1, 1], [1, 1], [1, 1]])
    assert not open_at_edge(new.maze, new.extent).any()
    anew = label_maps([np.pad(OPEN, 1), CLOSED, np.pad(OPEN.T[:3], 1)], new.goal[:, :2].tolist(),
                      mechanism=mechanism, pad=True, size=new.size)  # fmt: skip
    for name in ("maze", "spl"):
        np.testing.assert_array_equal(getattr(new, name), getattr(anew, name))
    reached = (new.spl > 0) & (new.spl < 1000)
    np.testing.assert_array_equal(new.optimal[reached], anew.optimal[reached])


def test_without_open_edges_nothing_changes():
    data = label_maps([CLOSED], [(1, 1)], mechanism="news")
    assert walled(data) is data
    every = walled(label_maps([OPEN], [(0, 0)], mechanism="news"))
    assert every.extent is None
    assert every.size == (5, 6)
