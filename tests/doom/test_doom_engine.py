"""One engine: poses, what it sees, and that it leaves nothing behind. With the real engine."""

import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from doom_helpers import free_distance, small_levels

from hvin_jax.tasks.doom import MissingExtraError, _orphans
from hvin_jax.tasks.doom._compaction import Tables, compact, expand
from hvin_jax.tasks.doom.camera import DIRECTIONS, maze_views, shrink
from hvin_jax.tasks.doom.engine import Engine, EngineError, Pose, check_pose, load_vizdoom
from hvin_jax.tasks.doom.levels import ANGLES, cell_centre, draw_looks

SHARED_MEMORY = pathlib.Path("/dev/shm")


@pytest.fixture(scope="module")
def levels(tmp_path_factory):
    return small_levels(tmp_path_factory.mktemp("levels"))


@pytest.fixture(scope="module")
def engine(levels):
    _, wad, names = levels
    with Engine(wad, first_map=names[0], depth=True) as engine:
        yield engine


@pytest.fixture(scope="module")
def views(levels, engine):
    data, _, names = levels
    return [maze_views(engine, name, data.size) for name in names]


@pytest.mark.engine
def test_poses_are_exact(levels, engine):
    _, _, names = levels
    engine.open_level(names[1])
    facing = 0.0
    for row, column in [(0, 0), (3, 4), (6, 6)]:
        x, y = cell_centre(row, column, 7)
        engine.warp(x, y)
        for turn in (0, 90, 90, -90, 180):
            engine.act(turn=turn)
            facing = (facing - turn) % 360
            assert (engine.pose.x, engine.pose.y) == (x, y)
            assert abs((engine.pose.angle - facing + 180) % 360 - 180) < 1e-5


@pytest.mark.parametrize(
    "pose", [Pose(33, 32, 90), Pose(32, 32.001, 90), Pose(32, 32, 91), Pose(32, 32, 270)]
)
def test_wrong_poses_are_noticed(pose):
    check_pose(Pose(32, 32, 90.00000002), x=32, y=32, angle=90)
    with pytest.raises(EngineError, match="but was sent to"):
        check_pose(pose, x=32, y=32, angle=90)


@pytest.mark.engine
def test_depth_agrees_with_the_grid(levels, engine):
    """What lies ahead is as far away as the maze says, in free cells and in chambers."""
    data, _, names = levels
    maze = data.maze[0]
    engine.open_level(names[0])
    facing, seen = "E", {}
    turn_right = {"E": "S", "S": "W", "W": "N", "N": "E"}
    for row in range(7):
        for column in range(7):
            engine.warp(*cell_centre(row, column, 7))
            for turn in (0, 90, 90, 90):
                engine.act(turn=turn)
                facing = turn_right[facing] if turn else facing
                ahead = free_distance(maze, row, column, facing) if maze[row, column] else -1
                middle = int(engine.depth[60, 79:81].mean())
                seen.setdefault(ahead, set()).add(middle)
    # One depth for each distance, the nearer the smaller; chambers (-1) are the nearest.
    assert all(len(depths) == 1 for depths in seen.values()), seen
    order = [seen[distance].copy().pop() for distance in sorted(seen)]
    assert order == sorted(set(order))
    assert len(seen) > 3


@pytest.mark.engine
def test_open_and_blocked_views_differ(levels, views):
    data, _, _ = levels
    maze, pictures = data.maze[0], views[0]
    blocked = {
        pictures[row, column, k].tobytes()
        for row, column in np.argwhere(maze)
        for k, name in enumerate(DIRECTIONS)
        if free_distance(maze, row, column, name) == 0
    }
    opened = {
        pictures[row, column, k].tobytes()
        for row, column in np.argwhere(maze)
        for k, name in enumerate(DIRECTIONS)
        if free_distance(maze, row, column, name) > 0
    }
    chambers = {x.tobytes() for x in pictures[maze == 0].reshape(-1, 24 * 32 * 3)}
    assert blocked
    assert not blocked & opened
    assert not chambers & opened
    assert all(np.frombuffer(x, np.uint8).std() > 1 for x in chambers)  # textured, not a constant


@pytest.mark.engine
def test_chambers_follow_the_look(views):
    """A wall cell shows the texture of its level: no constant gives the map away."""
    corners = {pictures[0, 0].tobytes() for pictures in views}
    walls = {(look.wall, look.light) for look in draw_looks(0, len(views))}
    assert len(corners) == len(walls) > 1


@pytest.mark.engine
def test_rendering_is_deterministic(levels, views):
    data, wad, names = levels
    with Engine(wad, first_map=names[2]) as other:
        for k in (2, 0):  # another engine, another order, and no depth buffer
            np.testing.assert_array_equal(maze_views(other, names[k], data.size), views[k])


def test_shrink():
    screen = np.random.default_rng(0).integers(0, 256, (120, 160, 3), dtype=np.uint8)
    mean = screen.reshape(24, 5, 32, 5, 3).mean(axis=(1, 3))
    np.testing.assert_array_equal(shrink(screen), np.floor(mean + 0.5).astype(np.uint8))


@pytest.mark.engine
def test_compaction_loses_nothing(views):
    tables = Tables()
    columns, table, pieces = [], [], []
    for pictures in views:
        small = compact(pictures)
        assert len({x.tobytes() for x in small.views}) == len(small.views)
        np.testing.assert_array_equal(expand(small.columns, small.views[small.index]), pictures)
        new = tables.add(small)
        columns.append(new.columns)
        table.append(new.views)
        pieces.append(new.index)
    columns, table = np.concatenate(columns), np.concatenate(table)
    assert tables.sizes == (len(columns), len(table))
    for index, pictures in zip(pieces, views, strict=True):
        np.testing.assert_array_equal(expand(columns, table[index]), pictures)
    again = tables.add(compact(views[0]))
    assert len(again.columns) == len(again.views) == 0
    np.testing.assert_array_equal(again.index, pieces[0])


def test_angles_are_those_of_the_mechanism():
    assert DIRECTIONS == ("N", "E", "W", "S")
    assert set(ANGLES) == set(DIRECTIONS)


def _memory_of(folder):
    return list(SHARED_MEMORY.glob(f"ViZDoom*{(folder / 'instance').read_text()}"))


@pytest.mark.engine
def test_close_leaves_nothing(levels):
    _, wad, names = levels
    with Engine(wad, first_map=names[0]) as engine:
        folder, memory = engine.folder, _memory_of(engine.folder)
        assert engine.pids
        assert len(memory) == 3
    assert _orphans.engine_pids(folder) == []
    assert not folder.exists()
    assert not any(path.exists() for path in memory)


@pytest.mark.engine
def test_dead_engine_is_noticed_and_cleared(levels):
    _, wad, names = levels
    with Engine(wad, first_map=names[0]) as engine:
        memory = _memory_of(engine.folder)
        for pid in engine.pids:
            subprocess.run(["kill", "-9", str(pid)], check=True)
        with pytest.raises(EngineError, match="has died"):
            engine.open_level(names[1])
    assert not any(path.exists() for path in memory)


@pytest.mark.engine
@pytest.mark.processes
def test_orphans_are_cleared(levels, tmp_path, monkeypatch):
    """A Python that is killed leaves its engine behind; the next one clears it away."""
    _, wad, names = levels
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    script = (
        "import sys, time; from hvin_jax.tasks.doom.engine import Engine; "
        f"e = Engine({str(wad)!r}, first_map={names[0]!r}); print(e.folder, flush=True); "
        "time.sleep(100)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    said = process.stdout.readline().strip()
    assert said, "the engine did not start; its error is above"
    folder = pathlib.Path(said)
    memory = _memory_of(folder)
    assert len(memory) == 3
    _orphans.clear_orphans()
    assert _orphans.engine_pids(folder)  # its owner lives
    process.kill()
    process.wait()
    process.stdout.close()
    assert _orphans.engine_pids(folder)
    _orphans.clear_orphans()
    end = time.monotonic() + 10
    while _orphans.engine_pids(folder) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _orphans.engine_pids(folder)
    assert not folder.exists()
    assert not any(path.exists() for path in memory)


@pytest.mark.engine
def test_the_memory_is_known_as_soon_as_it_is_there(levels, monkeypatch, tmp_path):
    """Or whoever is killed as the engine starts would leave it for ever."""
    _, wad, names = levels
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    vizdoom = load_vizdoom()
    known = []

    class Game(vizdoom.DoomGame):
        def init(self):
            super().init()
            known.extend(tmp_path.glob("hvin-*/doom-*/instance"))

    monkeypatch.setattr(vizdoom, "DoomGame", Game)
    with Engine(wad, first_map=names[0]) as engine:
        assert known == [engine.folder / "instance"]


def test_engines_do_not_race_for_their_folder(levels, monkeypatch, tmp_path):
    """One that finds it missing, and then there, dies."""
    _, wad, names = levels
    monkeypatch.chdir(tmp_path)
    vizdoom = load_vizdoom()

    class Game(vizdoom.DoomGame):
        def init(self):
            assert (tmp_path / "_vizdoom").is_dir()

    monkeypatch.setattr(vizdoom, "DoomGame", Game)
    for _ in range(2):
        Engine(wad, first_map=names[0]).close()


def test_missing_extra(monkeypatch, levels):
    _, wad, names = levels
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    with pytest.raises(
        MissingExtraError,
        match=r"^the Doom engine needs vizdoom: pip install 'hvin_jax\[vizdoom\]'$",
    ):
        Engine(wad, first_map=names[0])


def test_bad_input(levels):
    _, wad, names = levels
    with pytest.raises(EngineError, match="no such file"):
        Engine("gone.wad", first_map=names[0])
    long = wad.parent.joinpath(*["x" * 100] * 3, "levels.wad")
    long.parent.mkdir(parents=True)
    shutil.copy(wad, long)
    with pytest.raises(EngineError, match=r"levels.wad: the path has \d+ bytes, the engine takes"):
        Engine(long, first_map=names[0])
    with pytest.raises(ValueError, match="no resolution 1×1"):
        Engine(wad, first_map=names[0], resolution=(1, 1))
