"""Many engines: the same views whatever happens to them, and nothing left behind."""

import os
import pathlib
import signal
import time

import numpy as np
import pytest
from doom_helpers import assert_same, small_mazes
from launching import ROOT, run, start
from PIL import Image

from hvin_jax.tasks._npz import MazeFileError
from hvin_jax.tasks.doom import _orphans
from hvin_jax.tasks.doom._compaction import expand
from hvin_jax.tasks.doom.engine import EngineError
from hvin_jax.tasks.doom.levels import draw_looks
from hvin_jax.tasks.doom.rendering import render_mazes
from hvin_jax.tasks.doom.view_data import IncompleteError, load_view_data

pytestmark = [pytest.mark.engine, pytest.mark.processes]

COUNT = 10
VIEWS = ("--size=7", "--train=30", "--valid=5", "--test=5", "--shard=5", "--workers=2")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for temporary files of its own, so that what is left in it can be counted."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture(scope="module")
def mazes():
    return list(small_mazes(COUNT).maze)


@pytest.fixture(scope="module")
def reference(mazes):
    return list(render_mazes(mazes, draw_looks(0, COUNT)))


def _owners(place):
    """Processes that own engine folders in a place."""
    return {int(path.name.split("-")[2]) for path in place.glob("hvin-*/doom-*")}


def _engines(place):
    return {pid for folder in place.glob("hvin-*/doom-*") for pid in _orphans.engine_pids(folder)}


def _memory(place):
    """Shared memory of the engines in a place."""
    names = [path.read_text() for path in place.glob("hvin-*/doom-*/instance")]
    return [path for name in names for path in pathlib.Path("/dev/shm").glob(f"ViZDoom*{name}")]


def _left(place):
    """What there is in a place, but for the folder that stays."""
    return [path for path in place.rglob("*") if path.name != f"hvin-{os.geteuid()}"]


def _wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


@pytest.mark.slow
def test_several_workers_and_files(mazes, reference, place):
    views = render_mazes(mazes, draw_looks(0, COUNT), workers=3, levels_per_file=4)
    for one, other in zip(views, reference, strict=True):
        assert_same(one, other)
    assert not _left(place)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["engine", "worker"])
def test_killed_on_the_way(mazes, reference, place, victim):
    views = render_mazes(mazes, draw_looks(0, COUNT), workers=2)
    first = next(views)
    _wait(lambda: len(_memory(place)) == 6)
    memory = _memory(place)
    workers = _owners(place) - {os.getpid()}
    for pid in _engines(place) if victim == "engine" else workers:
        os.kill(pid, signal.SIGKILL)
    for one, other in zip([first, *views], reference, strict=True):
        assert_same(one, other)
    assert not _left(place)
    assert not any(path.exists() for path in memory)


def test_abandoned(mazes, place):
    """Whoever stops asking for views ends the engines."""
    views = render_mazes(mazes, draw_looks(0, COUNT), workers=2)
    next(views)
    memory = _memory(place)
    views.close()
    assert not _left(place)
    assert memory
    assert not any(path.exists() for path in memory)


def test_a_maze_that_can_not_be_rendered(mazes, place, monkeypatch):
    """No file of levels: a worker tries again and again, and the error says which maze it is."""
    monkeypatch.setattr("hvin_jax.tasks.doom.rendering.write_levels", lambda *_: ["MAP00000"])
    with pytest.raises(
        EngineError, match=r"maze 0 could not be rendered in 3 attempts: .*no such file"
    ):
        list(render_mazes(mazes[:1], draw_looks(0, 1)))
    assert not _left(place)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "workers is 0"),
        ({"levels_per_file": 0}, "levels_per_file 0"),
        ({"looks": []}, "10 mazes but 0 looks"),
    ],
)
def test_bad_arguments(mazes, arguments, message):
    with pytest.raises(ValueError, match=message):
        next(render_mazes(mazes, **{"looks": draw_looks(0, COUNT), **arguments}))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a data set that nobody disturbed."""
    folder = tmp_path_factory.mktemp("views")
    code, out, err = run("make_views", *VIEWS, "--out=whole", "--preview=pictures", folder=folder)
    assert code == 0, err
    assert err == ""
    assert out.startswith("whole: 30 + 5 + 5 mazes of 7×7, seed 0; 7,840 views, ")
    assert out.splitlines()[1:] == ["pictures/level.png", "pictures/views.png"]
    return folder


def _content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_what_is_in_a_data_set(made):
    data = load_view_data(made / "whole")
    assert {name: len(index) for name, index in data.index.items()} == {
        "train": 30,
        "valid": 5,
        "test": 5,
    }
    assert len({view.tobytes() for view in data.views}) == len(data.views)
    assert len({column.tobytes() for column in data.columns}) == len(data.columns)
    maze, look = data.mazes.test.maze[3], data.look("test", 3)
    (again,) = render_mazes([maze], [look])
    np.testing.assert_array_equal(
        data.pictures(data.index["test"][3]), expand(again.columns, again.views[again.index])
    )


@pytest.mark.slow
def test_killed_and_resumed(made, place):
    """Killed by -9 twice: no engine stays, and the same command completes the same files."""
    folder = made / "killed"
    memory = []
    for shards in (1, 3):
        process = start("make_views", *VIEWS, "--out=killed", folder=made, TMPDIR=str(place))
        _wait(lambda n=shards: len(list(folder.glob("views-*.npz"))) >= n)
        memory += _memory(place)
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        _wait(lambda: not _engines(place))
    assert memory
    _wait(lambda: not any(path.exists() for path in memory))  # the workers do it, on their way out
    with pytest.raises(IncompleteError, match="is incomplete, with views of"):
        load_view_data(folder)
    code, _, err = run("make_views", *VIEWS, "--out=killed", folder=made, TMPDIR=str(place))
    assert code == 0, err
    assert _content(folder) == _content(made / "whole")
    assert not _left(place)


@pytest.mark.slow
def test_asked_to_stop(made, place):
    process = start("make_views", *VIEWS, "--out=stopped", folder=made, TMPDIR=str(place))
    _wait(lambda: (made / "stopped" / "views.json").exists())
    code, _, err = run("make_views", *VIEWS, "--out=stopped", folder=made)
    assert (code, err) == (
        1,
        "make_views: another process is making the views in stopped\n",
    )
    process.terminate()
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not _left(place)


@pytest.mark.slow
def test_damaged_and_strange_folders(made, tmp_path):
    def copy(name):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in _content(made / "whole").items():
            (folder / file).write_bytes(content)
        return folder

    folder = copy("damaged")
    shard = folder / "views-00002.npz"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(MazeFileError, match=r"views-00002.npz is damaged: its checksum"):
        load_view_data(folder)
    shard.unlink()
    with pytest.raises(MazeFileError, match="is missing, though"):
        load_view_data(folder)
    (copy("garbled") / "views.json").write_text("{}")
    with pytest.raises(MazeFileError, match="can't be used"):
        load_view_data(tmp_path / "garbled")
    with pytest.raises(IncompleteError, match="is not a folder of views"):
        load_view_data(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--seed=1", "make_views: whole was made with seed 0, not 1; choose another folder"),
        ("--train=201", "was made with mazes"),
        ("--size=7by7", "is neither a side"),
        ("--out=.", "but no views.json, so it is not a folder of views"),
        ("--out=/proc/x", "make_views: can't use /proc/x"),
        ("surplus", "unexpected argument 'surplus'"),
    ],
)
def test_mistakes(made, change, message):
    code, _, err = run("make_views", *VIEWS, "--out=whole", change, folder=made)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1


def test_without_the_engine(tmp_path):
    """One sentence says what is missing, and nothing is written."""
    (tmp_path / "vizdoom.py").write_text("raise ImportError('no such thing')")
    code, _, err = run(
        "make_views",
        *VIEWS,
        "--out=none",
        folder=tmp_path,
        prefix=("env",),  # a process of its own, which looks for packages anew
        PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}",
    )
    assert code == 1
    assert err == ("make_views: the Doom engine needs vizdoom: pip install 'hvin_jax[vizdoom]'\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_preview(made):
    for name in ("level", "views"):
        with Image.open(made / "pictures" / f"{name}.png") as image:
            assert np.asarray(image.convert("L")).std() > 5
