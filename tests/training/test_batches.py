"""The order of the data and its way to the devices."""

import os

import numpy as np
import pytest

from hvin_jax.training import batches, devices


def test_every_example_once_an_epoch_and_resumable():
    def take(first, count):
        stream = batches.batch_indices(num_examples=10, batch_size=3, seed=5, first_step=first)
        return [next(stream).tolist() for _ in range(count)]

    all_of_them = take(0, 9)
    for epoch in range(3):
        seen = {index for batch in all_of_them[3 * epoch : 3 * epoch + 3] for index in batch}
        assert len(seen) == 9
        assert seen <= set(range(10))
    assert all_of_them[:3] != all_of_them[3:6]
    for first in range(9):
        assert take(first, 9 - first) == all_of_them[first:]


@pytest.mark.parametrize("feed", ["device", "stream"])
def test_feeds_deliver_the_asked_for_rows(feed):
    arrays = {"x": np.arange(40, dtype=np.int32).reshape(20, 2), "y": np.arange(20, dtype=np.uint8)}
    order = [np.arange(16), np.arange(16)[::-1], np.full(16, 19)]
    got = list(batches.FEEDS[feed](arrays, iter(order)))
    assert len(got) == 3
    for batch, index in zip(got, order, strict=True):
        assert batch["x"].shape == (8, 2, 2)
        np.testing.assert_array_equal(np.asarray(batch["x"]).reshape(16, 2), arrays["x"][index])
        np.testing.assert_array_equal(np.asarray(batch["y"]).reshape(16), arrays["y"][index])


def test_bad_batches():
    with pytest.raises(ValueError, match="batch of 12 can't be shared evenly by 8 devices"):
        devices.check_batch_size(12)
    with pytest.raises(ValueError, match="5 training examples do not fill a batch of 8"):
        batches.steps_per_epoch(5, 8)


@pytest.mark.parametrize(
    ("batch_size", "cores", "expected"),
    [(32, 2, 8), (32, 64, 32), (30, 2, 6), (7, 1, 1), (0, 3, 12)],
)
def test_cpu_devices_share_a_batch_evenly(batch_size, cores, expected):
    assert devices.even_number(batch_size, cores) == expected


def test_usable_cores_are_those_a_process_is_pinned_to(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert devices.usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert devices.usable_cores() == 7
