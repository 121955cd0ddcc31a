"""Engines that nobody owns any more are cleared away, and nothing that others have planted is."""

import os
import subprocess
import time

import pytest

from hvin_jax import _owners, _private
from hvin_jax.tasks.doom import _orphans
from hvin_jax.tasks.doom.view_data import make_view_data

INSTANCE = "AbCdEfGh12"
MEMORY = [f"ViZDoom{name}{INSTANCE}" for name in ("MQCtr", "MQDoom", "SM")]
# No process has this number.
GONE = f"{_owners.name_of(os.getpid()).split('-')[0]}-999999999-1"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place for temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """A place for shared memory, with that of an engine in it."""
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(_orphans, "_SHARED_MEMORY", folder)
    for name in MEMORY:
        (folder / name).write_text("memory")
    return folder


@pytest.fixture
def start():
    """Starts processes that have certain arguments and wait."""
    started = []

    def start(*arguments):
        command = ["sh", "-c", "read word", *map(str, arguments)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.stdin.close()
        process.wait()


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def _abandoned(instance=INSTANCE):
    """The folder of an engine whose owner is gone."""
    folder = _private.private_folder() / f"doom-{GONE}-x"
    folder.mkdir()
    (folder / "instance").write_text(instance)
    return folder


def test_everything_of_the_dead_is_cleared(place, memory):
    """Owner and engine were killed together."""
    (memory / "ViZDoomSMother12345").touch()
    folder = _abandoned()
    own = _orphans.make_folder()
    _orphans.clear_orphans()
    assert not folder.exists()
    assert own.exists()
    assert _names(memory) == ["ViZDoomSMother12345"]


@pytest.mark.processes
def test_an_engine_without_an_owner_is_ended(place, memory, start):
    folder = _abandoned("")
    engine = start("-config", folder / "engine.ini", "+viz_instance_id", INSTANCE)
    reader = start(folder / "engine.ini.copy")  # not an engine
    _orphans.clear_orphans()
    assert engine.wait() == -9
    assert reader.poll() is None
    assert not folder.exists()
    assert _names(memory) == []


@pytest.mark.processes
def test_the_memory_is_known_while_the_engine_starts(place, memory, start):
    folder = _orphans.make_folder()
    with _orphans.remembering_instance(folder):
        assert _names(folder) == []
        start("-config", folder / "engine.ini", "+viz_instance_id", INSTANCE)
        end = time.monotonic() + 10
        while _names(folder) != ["instance"] and time.monotonic() < end:
            time.sleep(0.001)
    assert (folder / "instance").read_text() == INSTANCE


@pytest.mark.processes
def test_the_memory_of_a_living_engine_stays(place, memory, start):
    folder = _abandoned()
    start("-config", "elsewhere.ini", "+viz_instance_id", INSTANCE)
    _orphans.clear_orphans()
    assert not folder.exists()
    assert _names(memory) == MEMORY


@pytest.mark.parametrize("instance", ["/../../victim", "*", "", "?" * 10, f"{INSTANCE}\n"])
def test_an_instance_that_is_none(place, memory, tmp_path, instance):
    """Neither in the folder of our own nor in what used to be one, which anybody can make."""
    (tmp_path / "victim").touch()
    (memory / "ViZDoom").mkdir()
    planted = place / "hvin_doom-999999999-1-x"
    planted.mkdir()
    (planted / "instance").write_text(instance)
    _abandoned(instance)
    _orphans.clear_orphans()
    assert (tmp_path / "victim").exists()
    assert _names(memory) == sorted(["ViZDoom", *MEMORY])
    assert planted.exists()


def test_links_are_not_followed(place, memory, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "instance").write_text(INSTANCE)
    link = _private.private_folder() / f"doom-{GONE}-y"
    link.symlink_to(victim)
    _orphans.clear_orphans()
    assert _names(victim) == ["instance"]
    assert _names(memory) == MEMORY

    link.unlink()
    folder = _abandoned()
    (folder / "instance").unlink()
    (folder / "instance").symlink_to(victim / "instance")
    _orphans.clear_orphans()
    assert not folder.exists()
    assert _names(victim) == ["instance"]
    assert _names(memory) == MEMORY


def test_no_mazes_are_made_where_no_engine_can_work(place, tmp_path):
    (place / f"hvin-{os.geteuid()}").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="it is not a folder of yours"):
        make_view_data(tmp_path / "views", pytest.fail, settings={}, seed=0)
    assert not (tmp_path / "views").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_is_of_others_stays(place, memory):
    os.chown(memory / MEMORY[0], 12345, 12345)
    (memory / MEMORY[1]).unlink()
    (memory / MEMORY[1]).symlink_to(memory / "elsewhere")
    planted = _private.private_folder() / f"doom-{GONE}-y"
    planted.mkdir()
    os.chown(planted, 12345, 12345)
    _abandoned()
    _orphans.clear_orphans()
    assert planted.exists()
    assert _names(memory) == MEMORY[:2]
