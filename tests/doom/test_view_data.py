"""Data sets of views on disk: what is read is what was written. No engine is started."""

import json

import numpy as np
import pytest
from doom_helpers import small_mazes
from flips import with_one_bit_flipped

from hvin_jax.tasks._npz import MazeFileError
from hvin_jax.tasks.doom import view_data
from hvin_jax.tasks.doom._compaction import compact
from hvin_jax.tasks.doom.camera import VIEW_SHAPE
from hvin_jax.tasks.doom.view_data import load_view_data, make_view_data
from hvin_jax.tasks.maze_data import ARRAYS, SPLITS, MazeSplits


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of noise in place of pictures."""
    rng = np.random.default_rng(0)

    def noise(mazes, looks, *, workers):
        return (compact(rng.integers(0, 2, (*maze.shape, 4, *VIEW_SHAPE), "u1")) for maze in mazes)

    monkeypatch.setattr(view_data, "load_vizdoom", lambda: None)
    monkeypatch.setattr(view_data, "render_mazes", noise)
    monkeypatch.setattr(view_data.metadata, "version", lambda name: "1.0")
    mazes = small_mazes(4)
    splits = MazeSplits(train=mazes[:2], valid=mazes[2:3], test=mazes[3:], seed=5)
    make_view_data(tmp_path / "views", lambda: splits, settings={"size": 7}, seed=3, shard=3)
    return tmp_path / "views"


def _content(folder):
    data = load_view_data(folder)
    mazes = [getattr(getattr(data.mazes, x), name) for x in SPLITS for name in ARRAYS]
    arrays = (data.columns, data.views, *data.index.values(), *mazes)
    return [x.tobytes() for x in arrays], data.looks, data.mazes.seed


def test_a_changed_bit_never_gives_other_views(folder):
    content, refused = _content(folder), 0
    for paths in (folder.glob("views-*.npz"), [folder / "views.json"], [folder / "mazes.npz"]):
        for _ in with_one_bit_flipped(list(paths), 40):
            try:
                assert _content(folder) == content
            except MazeFileError:
                refused += 1
    assert refused > 90


def test_the_checksum_of_the_list_of_shards(folder):
    """Folders of earlier versions have none."""
    content = _content(folder)
    path = folder / "views.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "seed": 4}))
    with pytest.raises(MazeFileError, match=r"views.json can't be used: its checksum is wrong"):
        load_view_data(folder)
    del manifest["sha256"]
    path.write_text(json.dumps(manifest))
    assert _content(folder) == content
