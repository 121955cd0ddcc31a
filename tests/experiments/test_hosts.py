"""Several processes that train together: as good as one, and ended by the death of any of them."""

import contextlib
import json
import os
import signal
import sys
import threading

import jax
import pytest
from launching import TINY, assert_same_outcome, run, start, wait_for
from loopback import needs_isolation, shared_network

from experiments.launch import exits
from hvin_jax.training.checkpoints import CheckpointError

pytestmark = pytest.mark.processes

# One device a process: a sum of two numbers has one result, in whatever order it is made.
ALONE = tuple("--cpu_devices=1" if x.startswith("--cpu_devices") else x for x in TINY)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a run of one process with two devices."""
    folder = tmp_path_factory.mktemp("hosts")
    code, _, err = run("maze", *TINY, "--workdir=reference", folder=folder)
    assert code == 0, err
    return folder


@pytest.fixture(scope="module")
def network():
    """A network in which the processes hear nobody but each other."""
    with shared_network() as prefix:
        yield prefix


@contextlib.contextmanager
def _both(place, network, port, *arguments, others=()):
    """Two processes that train together; `others` are arguments of the second alone."""
    together = (f"--coordinator=127.0.0.1:{port}", "--num_processes=2")
    processes = [
        start(
            "maze",
            *(*ALONE, *together, f"--process_id={number}", *arguments, *more),
            folder=place,
            prefix=network,
        )
        for number, more in enumerate([(), others])
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _ends(processes):
    """Waits for processes that have to end by themselves: [(exit code, stdout, stderr)]."""
    said = [process.communicate(timeout=120) for process in processes]
    return [
        (process.returncode, "".join(filter(_is_ours, out.splitlines(keepends=True))), err)
        for process, (out, err) in zip(processes, said, strict=True)
    ]


def _is_ours(line):
    return not line.startswith("[Gloo]")  # it greets on stdout, where we can't stop it


def _has_checkpoint(folder):
    return lambda: any((folder / "checkpoints").glob("[0-9]*[0-9]"))


def _newest(folder):
    return max(int(path.name) for path in (folder / "checkpoints").glob("[0-9]*[0-9]"))


def _assert_says_alone(err):
    """The one sentence about a lost process, after at most what the runtime logs of it."""
    *logged, last = err.splitlines()
    assert last == "maze: another process of this run is gone, which ends this one; see there"
    assert len(logged) <= 4, err


@needs_isolation
def test_killed_asked_to_stop_and_finished(place, network):
    folder = place / "both"
    with _both(place, network, 4001, "--workdir=both") as processes:
        wait_for(_has_checkpoint(folder), processes[0])
        processes[1].kill()
        (code, _, err), _ = _ends(processes)
    assert code == 1
    _assert_says_alone(err)
    assert not (folder / "result.json").exists()

    before = _newest(folder)
    with _both(place, network, 4002, "--workdir=both") as processes:
        while processes[0].stdout.readline() != f"resuming after step {before} of 60\n":
            assert processes[0].poll() is None
        processes[1].send_signal(signal.SIGTERM)
        (code, out, err), (other_code, other_out, other_err) = _ends(processes)
    assert (code, other_code) == (143, 143), (err, other_err)
    assert "the same command goes on from there" in out
    assert other_out == "SIGTERM: saving, then stopping\n"
    after = _newest(folder)
    assert before < after < 60

    with _both(place, network, 4003, "--workdir=both") as processes:
        (code, out, err), (other_code, other_out, other_err) = _ends(processes)
    assert (code, other_code) == (0, 0), (err, other_err)
    assert f"resuming after step {after} of 60" in out
    assert "2 processes, 2 cpu devices: batches of 8, 4 a device" in out
    assert "success rate" in out
    assert other_out == ""
    result = json.loads((folder / "result.json").read_text())
    assert result["device"]["processes"] == 2
    assert_same_outcome(folder, place / "reference", but={"device"})


@needs_isolation
def test_processes_that_disagree(place, network):
    other = ["--config.optimizer.name=sgd"]
    with _both(place, network, 4004, "--workdir=apart", others=other) as processes:
        ends = _ends(processes)
    assert all(code not in (0, None) for code, _, _ in ends)
    expected = "maze: processes 0 and 1 do not have the same configuration; start all of them"
    assert any(expected in err for _, _, err in ends)
    assert not (place / "apart" / "result.json").exists()


@needs_isolation
def test_the_first_one_fails(place, network):
    """Its message is one sentence; the other one ends although nobody has told it anything."""
    (place / "taken").mkdir()
    (place / "taken" / "strange.txt").write_text("")
    with _both(place, network, 4005, "--workdir=taken") as processes:
        (code, _, err), (other_code, _, other_err) = _ends(processes)
    assert (code, other_code) == (1, 1)
    assert "maze: taken holds strange.txt but no config.json" in err
    assert "Traceback" not in err
    _assert_says_alone(other_err)


@pytest.mark.parametrize("kind", [jax.errors.JaxRuntimeError, CheckpointError])
def test_errors_of_the_connection(kind, monkeypatch, capsys):
    monkeypatch.setattr(exits.hosts, "are_several", lambda: True)
    monkeypatch.setattr(exits, "_last_words", threading.RLock())
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as end, exits.ending_at_once("maze"):
        raise kind("Gloo AllGather failed: Connection reset by peer")
    assert end.value.code == 1
    _assert_says_alone(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num_processes=2"], "--coordinator, --num_processes and --process_id belong together"),
        (
            ["--coordinator=nowhere", "--num_processes=2", "--process_id=0"],
            "the coordinator is 'nowhere', expected HOST:PORT",
        ),
        (
            ["--coordinator=127.0.0.1:4006", "--num_processes=2", "--process_id=2"],
            "process 2 of 2: processes are counted from 0 to 1",
        ),
    ],
)
def test_mistakes(tmp_path, flags, message):
    code, _, err = run("maze", *ALONE, *flags, "--workdir=run", folder=tmp_path)
    assert (code, err) == (1, f"maze: {message}\n")
