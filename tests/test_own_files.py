"""Files in places where others write too: nothing of theirs is touched, nothing of ours is left."""

import os
import stat

import pytest

from hvin_jax import _files, _owners, _private
from hvin_jax._files import atomic_write, check_writable
from hvin_jax._locks import held, is_held

# No process has this number.
GONE = f"{_owners.name_of(os.getpid()).split('-')[0]}-999999999-1"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_the_private_folder(place):
    folder = _private.private_folder()
    assert folder == place / f"hvin-{os.geteuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "file").touch()
    assert _private.private_folder() == folder
    assert (folder / "file").exists()


@pytest.mark.parametrize("planted", ["link", "open", "file", "foreign"])
def test_a_planted_private_folder_is_refused(place, monkeypatch, planted):
    folder = place / f"hvin-{os.geteuid()}"
    if planted == "link":
        (place / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(place / "elsewhere")
    elif planted == "file":
        folder.touch(mode=0o700)
    elif planted == "open":
        folder.mkdir(mode=0o755)
    else:
        folder = place / "hvin-12345"
        folder.mkdir(mode=0o700)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="it is not a folder of yours") as error:
        _private.private_folder()
    assert error.value.filename == str(folder)


def test_processes_by_name():
    own = _owners.name_of(os.getpid())
    here, pid, started = own.split("-")
    assert not _owners.is_gone(own)
    assert _owners.is_gone(f"{here}-{pid}-{int(started) + 1}")
    assert _owners.is_gone(GONE)
    assert not _owners.is_gone(f"{int(here, 16) ^ 1:08x}-999999999-1")  # elsewhere
    assert not _owners.is_gone(f"{here}-999999999-0")  # written where there is no /proc


def test_a_file_is_not_written_through_a_link(tmp_path, monkeypatch):
    """Neither through one with the name that is to be, nor with the names on the way there."""
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_text("theirs")
    path.symlink_to(victim)
    (tmp_path / f".file.{os.getpid()}.part").symlink_to(victim)
    (tmp_path / f".file.{_owners.name_of(os.getpid())}-00000000.part").symlink_to(victim)
    monkeypatch.setattr(_files.secrets, "token_hex", lambda _: "00000000")
    with pytest.raises(FileExistsError), atomic_write(path) as file:
        file.write(b"ours")
    monkeypatch.undo()
    with atomic_write(path) as file:
        file.write(b"ours")
    assert victim.read_text() == "theirs"
    assert path.read_text() == "ours"
    assert not path.is_symlink()
    assert len(list(tmp_path.glob(".file.*"))) == 2  # what was planted


def test_permissions_are_those_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "file"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_what_the_dead_have_left_is_cleared(tmp_path):
    """By the next write of the same file; not what others are writing, or have made by hand."""
    parts = [f".file.{GONE}-01234567.part", f".file.{GONE}-89abcdef.part"]
    others = [
        f".file.{_owners.name_of(os.getpid())}-01234567.part",
        f".file.{GONE}-1.part",
        f".file.{GONE}.part",
        f".other.{GONE}-01234567.part",
        f".file.part.{GONE}-01234567.part",
        "file.part",
    ]
    for name in [*parts, *others]:
        (tmp_path / name).touch()
    link = f".file.{GONE}-22222222.part"
    (tmp_path / link).symlink_to(tmp_path / "file.part")
    check_writable(tmp_path / "file")
    assert {path.name for path in tmp_path.iterdir()} == {*others, link}


def test_a_lock_is_not_taken_through_a_link(tmp_path):
    victim, lock = tmp_path / "victim", tmp_path / ".lock"
    victim.write_text("theirs")
    lock.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"), held(lock):
        pass
    assert victim.read_text() == "theirs"
    lock.unlink()
    os.mkfifo(lock)  # which would make us wait for ever
    with pytest.raises(OSError, match="No such device"), held(lock):
        pass
    lock.unlink()
    assert not is_held(lock)
    with held(lock):
        assert is_held(lock)
        with pytest.raises(BlockingIOError), held(lock):
            pass
    assert not is_held(lock)
