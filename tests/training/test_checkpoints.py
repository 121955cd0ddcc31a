"""Checkpoints: what is read is what was written, or the checkpoint is put aside."""

import dataclasses
import gc

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flips import with_one_bit_flipped

from hvin_jax.training import hosts
from hvin_jax.training.checkpoints import Best, CheckpointError, Checkpoints, Snapshot
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.step import create_state

# When one array can't be read, orbax drops the others that it is reading without waiting for them.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def _snapshot(step):
    kernel = np.random.default_rng(step).standard_normal((20, 30), np.float32)
    params = {"params": {"kernel": jnp.asarray(kernel)}}
    state = create_state(jax.random.key(step), params, make_optimizer())
    return Snapshot(
        state=dataclasses.replace(state, step=jnp.asarray(step, jnp.int32)),
        best=Best.none(params),
        collapsed=jnp.zeros((), jnp.int32),
        seconds=jnp.asarray(1.5, jnp.float32),
    )


@pytest.fixture(scope="module")
def snapshots():
    return {step: _snapshot(step) for step in (1, 2)}


@pytest.fixture
def folder(tmp_path, snapshots):
    """A folder with the checkpoints of two steps."""
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for snapshot in snapshots.values():
        checkpoints.save(snapshot)
    checkpoints.close()
    yield tmp_path / "checkpoints"
    gc.collect()  # what orbax has dropped shall complain here, not in another test


def _restore(folder, like):
    """What is found, and what is said."""
    checkpoints, said = Checkpoints(folder), []
    try:
        return checkpoints.restore(like, said.append), said
    finally:
        checkpoints.close()


def _bytes(snapshot):
    keys = jax.random.key_data(snapshot.state.key)
    others = dataclasses.replace(snapshot, state=dataclasses.replace(snapshot.state, key=keys))
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(others)]


@pytest.mark.slow
def test_a_changed_bit_never_gives_other_numbers(folder, snapshots):
    """The checkpoint is put aside and the one before it used, or the bit did not matter."""
    newest, aside = folder / "2", folder.parent / "damaged-checkpoints-2"
    put_aside = 0
    for _ in with_one_bit_flipped([x for x in newest.rglob("*") if x.is_file()], 30):
        found, said = _restore(folder, snapshots[1])
        assert _bytes(found) == _bytes(snapshots[int(found.state.step)])
        if int(found.state.step) == 1:
            (line,) = said
            assert line.startswith(
                f"the checkpoint of step 2 is damaged and put aside as {aside.name}: "
            )
            aside.rename(newest)
            put_aside += 1
        else:
            assert said == []
    assert put_aside > 10
    assert int(_restore(folder, snapshots[1])[0].state.step) == 2


def _damage(folder):
    for path in (folder / "default").rglob("d/*"):
        path.write_bytes(path.read_bytes()[::-1])


def test_put_aside_beside_an_earlier_one(folder, snapshots):
    for name in ("damaged-checkpoints-2", "damaged-checkpoints-2-2", "damaged-checkpoints-2-3"):
        _damage(folder / "2")
        found, said = _restore(folder, snapshots[1])
        assert int(found.state.step) == 1
        assert f"put aside as {name}: " in said[0]
        assert (folder.parent / name / "default").is_dir()
        checkpoints = Checkpoints(folder)
        checkpoints.save(snapshots[2])
        checkpoints.close()
    _damage(folder / "1")
    _damage(folder / "2")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be read"):
        _restore(folder, snapshots[1])


def test_of_an_earlier_version(tmp_path, snapshots):
    """Before there were checksums."""
    with ocp.CheckpointManager(tmp_path / "checkpoints") as manager:
        manager.save(2, args=ocp.args.StandardSave(snapshots[2]))
    found, said = _restore(tmp_path / "checkpoints", snapshots[1])
    assert _bytes(found) == _bytes(snapshots[2])
    assert said == ["the checkpoint of step 2 is of an earlier version and has no checksum"]


def test_what_another_process_can_not_read_is_put_aside(folder, snapshots, monkeypatch):
    verdicts = iter([False, True])
    monkeypatch.setattr(hosts, "all_say", lambda flag: flag and next(verdicts))
    found, said = _restore(folder, snapshots[1])
    assert _bytes(found) == _bytes(snapshots[1])
    assert said[0].endswith("put aside as damaged-checkpoints-2: another process can't read it")


def test_a_process_that_is_gone_is_no_damage(folder, snapshots, monkeypatch):
    """What is left of a group of processes ends, and leaves the checkpoints as they are."""
    checkpoints = Checkpoints(folder)

    def gone(*_, **__):
        raise jax.errors.JaxRuntimeError("UNKNOWN: Gloo all-reduce failed: reset by peer")

    with monkeypatch.context() as during:
        for name in ("save", "restore"):
            during.setattr(checkpoints._manager, name, gone)
        with pytest.raises(jax.errors.JaxRuntimeError, match="Gloo"):
            checkpoints.restore(snapshots[1], pytest.fail)
        with pytest.raises(jax.errors.JaxRuntimeError, match="Gloo"):
            checkpoints.save(_snapshot(3))
    checkpoints.close()
    assert int(_restore(folder, snapshots[1])[0].state.step) == 2
