"""Measuring planners on maps of other makers, in this process."""

import itertools
import sys

import numpy as np
import pytest
from absl.testing import flagsaver
from launching import loaded

from hvin_jax.tasks import shortest_paths
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import get_mechanism


@pytest.fixture(scope="module")
def other_maps():
    with loaded("other_maps") as module:
        yield module


def test_shapes(other_maps):
    for name, shape in other_maps._SHAPES.items():
        maps = list(itertools.islice(shape(np.random.default_rng(0)), 3))
        assert len(maps) == 3, name
        for one in maps:
            assert one.ndim == 2
            assert set(np.unique(one)) <= {0, 1}
            assert one.sum() > 1
    lane = next(other_maps._serpentine(np.random.default_rng(0)))
    assert lane.shape == (101, 101)
    spl, _ = shortest_paths(lane[None], np.array([[1, 1, 0]]), mechanism=get_mechanism("news"))
    assert spl[spl < UNREACHABLE].max() == lane.sum() - 1  # every cell is on the one way


@pytest.mark.parametrize(("rate", "said"), [(1.0, "100.00"), (1 - 1e-7, "99.99"), (0.5, "50.00")])
def test_all_is_all(other_maps, rate, said):
    assert other_maps._percent(rate) == said


@pytest.mark.slow
def test_what_it_writes(other_maps, tmp_path, monkeypatch, capsys):
    for package in ("mazelib", "labmaze", "minigrid"):
        monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    rows = {"rows": lambda rng: iter([np.ones((1, 2), np.uint8)] * 3)}
    monkeypatch.setattr(other_maps, "_SHAPES", rows)
    with flagsaver.flagsaver(planners=["news"], maps=2, out=str(tmp_path)):
        other_maps.main()
    assert capsys.readouterr().out.splitlines()[:3] == [
        f"{package} is not installed: its maps are left out"
        for package in ("mazelib", "labmaze", "minigrid")
    ]
    page = (tmp_path / "other_maps.md").read_text()
    assert "<!-- made by experiments.other_maps -->" in page
    assert "| maps | sizes | number | starts | longest path | news: SR / OR |" in page
    assert "| rows | 1×2 | 2 | 2 | 1 | 100.00 / 100.00 |" in page


@pytest.mark.slow
def test_maps_in_files(other_maps, tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "b.map").write_text("type octile\nheight 1\nwidth 4\nmap\n...@\n")
    (folder / "notes.md").write_text("no map")
    (tmp_path / "a.csv").write_text("1,0\n1,1\n")
    both = [str(folder), str(tmp_path / "a.csv")]
    where = {"planners": ["news"], "maps": 3, "out": str(tmp_path), "name": "mine"}
    with flagsaver.flagsaver(files=both, **where):
        other_maps.main()
    rows = (tmp_path / "mine.md").read_text().splitlines()
    rows = [row for row in rows if row.startswith(("| b", "| a"))]
    # Three goals, two states each to start from.
    assert [row.split(" | ")[:4] for row in rows] == [
        ["| b.map", "1×4", "3", "6"],
        ["| a.csv", "2×2", "3", "6"],
    ]
    assert all(row.endswith("| 100.00 / 100.00 |") for row in rows)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["gone.map"], "gone.map: there is no such file"),
        (["empty"], "empty has no maps: no file that ends in .txt, .map"),
        (["a.txt", "empty/../a.txt"], "two of --files are called a.txt"),
    ],
)
def test_bad_files_are_explained(other_maps, tmp_path, monkeypatch, capsys, files, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("..\n")
    with flagsaver.flagsaver(planners=["news"], files=files), pytest.raises(SystemExit) as ended:
        other_maps.main()
    assert message in f"{ended.value} {capsys.readouterr().err}"
