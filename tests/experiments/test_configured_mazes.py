"""The maps of a configuration: made once and kept, each kind in a file of its own."""

import numpy as np
import pytest

from experiments.configs.base import base_config
from experiments.launch.mazes import check_mazes, configured_mazes
from experiments.launch.views import check_views


def _data(**changes):
    data = base_config(name="", model="vin", size=9).data
    data.update({"train": 20, "valid": 5, "test": 5, **changes})
    return data


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    monkeypatch.setattr("experiments.launch.mazes.usable_cores", lambda: 1)


def test_families_are_made_and_kept(tmp_path):
    kinds = ("", "caves:2,rooms", "caves,rooms")
    made = {kind: configured_mazes(_data(families=kind), tmp_path) for kind in kinds}
    assert len(list(tmp_path.iterdir())) == 3
    assert len({mazes.train.maze.tobytes() for mazes in made.values()}) == 3
    for kind, mazes in made.items():
        check_mazes(_data(families=kind))
        assert mazes.families == kind
        kept = configured_mazes(_data(families=kind), tmp_path)
        np.testing.assert_array_equal(kept.train.label, mazes.train.label)
    assert (tmp_path / "diffdrive-9-20-5-5-seed0-decimation0to1.npz").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": "caverns"}, "unknown family 'caverns'"),
        ({"families": "caves:0"}, "the weight of caves is '0'"),
        ({"families": "caves", "size": 6}, "both sides must be at least 7"),
        ({"families": "caves", "max_decimation": 0.5}, "decimation is for the protocol's mazes"),
    ],
)
def test_impossible_families_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        check_mazes(_data(**changes))


def test_views_are_of_the_protocols_mazes():
    check_views(_data())
    with pytest.raises(ValueError, match=r"leave config\.data\.families empty"):
        check_views(_data(families="caves"))
