"""A run that is killed and started again ends as if nothing had happened, to the last bit."""

import json
import os
import random
import shutil
import signal
import time

import pytest
from launching import TINY, assert_same_outcome, run, start, wait_for

from hvin_jax.training.workdir import (
    WorkdirError,
    check_owner,
    check_start,
    claim,
    read_metrics,
    read_result,
    start_from,
)

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs")
    code, out, err = run("maze", *TINY, "--workdir=reference", folder=folder)
    assert code == 0, err
    assert "best after step" in out
    return folder


def test_killed_at_random_moments(place):
    folder, arguments = place / "killed", (*TINY, "--workdir=killed")
    chance = random.Random(0)
    checkpoints = folder / "checkpoints"
    moments = {
        "at the first compile": lambda: (folder / "metrics.jsonl").exists(),
        "during a save": lambda: any(checkpoints.glob("*tmp*")),
        "after a step": lambda: len(list(checkpoints.glob("[0-9]*"))) > 1,
    }
    for condition in moments.values():
        process = start("maze", *arguments, folder=place)
        wait_for(condition, process)
        time.sleep(chance.random() * 0.3)
        process.kill()
        process.communicate()
    code, _, err = run("maze", *arguments, folder=place)
    assert code == 0, err
    assert_same_outcome(folder, place / "reference")


@pytest.fixture(scope="module")
def stopped(place):
    """A run that was asked to stop on its way."""
    process = start("maze", *TINY, "--workdir=stopped", folder=place)
    checkpoints = place / "stopped" / "checkpoints"
    wait_for(lambda: len(list(checkpoints.glob("[0-9]*[0-9]"))) > 0, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "SIGTERM: saving, then stopping" in out
    assert "the same command goes on from there" in out
    return place / "stopped"


def test_interrupted_by_a_key(place):
    process = start("maze", *TINY, "--workdir=interrupted", folder=place)
    wait_for(lambda: (place / "interrupted/metrics.jsonl").exists(), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 128 + signal.SIGINT, err
    assert "SIGINT: saving, then stopping" in out


def test_asked_to_stop(place, stopped):
    shutil.copytree(stopped, place / "continued")
    code, out, err = run("maze", *TINY, "--workdir=continued", folder=place)
    assert code == 0, err
    assert "resuming after step" in out
    assert_same_outcome(place / "continued", place / "reference")


def test_damaged_checkpoint(place, stopped):
    shutil.copytree(stopped, place / "damaged")
    checkpoints = place / "damaged" / "checkpoints"
    newest = max(int(path.name) for path in checkpoints.iterdir())
    for path in (checkpoints / str(newest)).rglob("*"):
        if path.is_file() and path.stat().st_size > 1000:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
    code, out, err = run("maze", *TINY, "--workdir=damaged", folder=place)
    assert code == 0, err
    assert f"the checkpoint of step {newest} is damaged and put aside" in out
    assert_same_outcome(place / "damaged", place / "reference")


def test_finished_run_is_not_run_again(place):
    before = (place / "reference" / "result.json").read_text()
    code, out, _ = run("maze", *TINY, "--workdir=reference", folder=place)
    assert code == 0
    assert "reference is complete" in out
    assert "success rate" in out
    assert (place / "reference" / "result.json").read_text() == before


def test_another_configuration_is_refused(place):
    code, _, err = run(
        "maze", *TINY, "--workdir=reference", "--config.model.block_depth=3", folder=place
    )
    assert code == 1
    assert "belongs to another configuration" in err
    assert "config.model.block_depth: 2 there, 3 now" in err


def test_a_setting_that_came_later_is_off_in_earlier_runs(tmp_path):
    claim(tmp_path, {"train": {"batch_size": 32}})
    check_owner(tmp_path, {"train": {"batch_size": 32, "later": False}})
    for config in ({"batch_size": 32, "later": True}, {}):
        with pytest.raises(WorkdirError, match="belongs to another configuration"):
            check_owner(tmp_path, {"train": config})


def test_a_run_whose_checkpoints_are_gone_is_not_gone_on_from(tmp_path):
    shorter, longer = tmp_path / "shorter", tmp_path / "longer"
    for folder, steps in ((shorter, 10), (longer, 20)):
        folder.mkdir()
        claim(folder, {"train": {"num_steps": steps}, "optimizer": {"schedule": "constant"}})
    with pytest.raises(WorkdirError, match="its checkpoints are gone"):
        check_start(json.loads((longer / "config.json").read_text()), shorter)


def test_a_damaged_result_is_one_sentence(tmp_path):
    (tmp_path / "result.json").write_text(100_000 * "[")
    with pytest.raises(WorkdirError, match=r"^\S+result.json is not sound JSON: it is nested too"):
        read_result(tmp_path)


def test_what_a_killed_process_began_is_begun_anew(tmp_path):
    """A half-written config.json does not make a folder strange, and checkpoints are not mixed."""
    shorter, longer = tmp_path / "shorter", tmp_path / "longer"
    for folder, steps in ((shorter, 10), (longer, 20)):
        config = {"train": {"num_steps": steps}, "optimizer": {"schedule": "constant"}}
        folder.mkdir()
        (folder / ".config.json.01234567-999999999-1-01234567.part").touch()
        check_owner(folder, config)
        claim(folder, config)
        for name in ("metrics.jsonl", "sittings.jsonl"):
            (folder / name).touch()
    (shorter / "checkpoints/10").mkdir(parents=True)
    (longer / "checkpoints.part/5").mkdir(parents=True)
    start_from(longer, shorter)
    assert [path.name for path in (longer / "checkpoints").iterdir()] == ["10"]


def test_checkpoints_are_not_copied_through_a_link(tmp_path):
    shorter, longer, victim = (tmp_path / name for name in ("shorter", "longer", "victim"))
    for folder in (shorter, longer):
        folder.mkdir()
        claim(folder, {"optimizer": {"schedule": "constant"}})
        for name in ("metrics.jsonl", "sittings.jsonl"):
            (folder / name).touch()
    (shorter / "checkpoints/10").mkdir(parents=True)
    victim.mkdir()
    (longer / "checkpoints.part").symlink_to(victim)
    with pytest.raises(WorkdirError, match="is a link, and nothing is copied through it"):
        start_from(longer, shorter)
    assert not list(victim.iterdir())


def test_two_processes_in_one_folder(place):
    arguments = (*TINY, "--workdir=twice")
    first = start("maze", *arguments, folder=place)
    wait_for(lambda: (place / "twice" / "config.json").exists(), first)
    code, _, err = run("maze", *arguments, folder=place)
    first.kill()
    first.communicate()
    assert code == os.EX_TEMPFAIL
    assert err == "maze: another process is working in twice\n"


# After one such step nothing is finite any more.
HOT = (
    *TINY,
    "--config.optimizer.name=sgd",
    "--config.optimizer.learning_rate=1e30",
    "--config.optimizer.clip_norm=0.0",
)


def test_not_finite_stops(place):
    code, _, err = run("maze", *HOT, "--workdir=hot", folder=place)
    assert code == 1
    assert err.startswith("maze: step ")
    assert "the last good checkpoint is" in err
    assert "Traceback" not in err


def test_not_finite_is_skipped_and_said(place):
    code, out, err = run(
        "maze",
        *HOT,
        "--config.train.skip_not_finite=True",
        "--config.train.num_steps=100",
        "--workdir=skipping",
        folder=place,
    )
    assert code == 0, err
    assert "step 100: not finite, as all since the last report; they are skipped" in out
    losses = [line["loss"] for line in read_metrics(place / "skipping") if "loss" in line]
    assert losses[1:] == [None]
    result = json.loads((place / "skipping" / "result.json").read_text())
    assert 90 < result["skipped_steps"] < 100


def test_a_run_whose_parameters_stand_still_is_given_up(place):
    code, _, err = run(
        "maze",
        *HOT,
        "--config.train.skip_not_finite=True",
        "--config.train.stop_after_collapses=4",
        "--config.train.num_steps=200",
        "--config.eval.every_steps=50",
        "--workdir=given_up",
        folder=place,
    )
    assert code == 0, err
    result = json.loads((place / "given_up" / "result.json").read_text())
    assert result["collapsed"]
    assert result["steps"] == 100  # of the first 50, some were finite
