"""Learning by reward, as a command, in this process and at a tiny size."""

import json
import os
import signal

import jax
import pytest
from absl.testing import flagsaver
from launching import loaded

from experiments.launch.exits import INTERRUPTED
from hvin_jax import load_planner
from hvin_jax.models import init_params
from hvin_jax.training.actor_critic import Progress, Report


@pytest.fixture(scope="module")
def reward():
    with loaded("reward") as module:
        yield module


@pytest.fixture
def command(reward, tmp_path, monkeypatch, capsys):
    """Runs the command; what it prints."""
    monkeypatch.chdir(tmp_path)
    tiny = {
        "model": "dtvin",
        "mechanism": "news",
        "size": 7,
        "mazes": 64,
        "unseen": 40,
        "depth": 10,
    }
    walks = {"updates": 40, "every": 20, "maps": 16, "agents": 16, "steps": 12, "epochs": 2}
    start = {"start": "random", "learning_rate": 0.03}

    def run(**options):
        with (
            flagsaver.flagsaver(**{**tiny, **walks, **start, **options}),
            jax.numpy_dtype_promotion("standard"),  # as optax needs it
        ):
            reward.main()
        return capsys.readouterr().out.splitlines()

    return run


def stand_in(actions):
    """Learning without learning: does something before each report."""

    def learn(key, model, env, settings, *, num_updates, every, learning_rate):
        yield Progress(0, init_params(model, key), None)
        for number, act in enumerate(actions, 1):
            act()
            params = init_params(model, jax.random.fold_in(key, number))
            yield Progress(number, params, Report(0.1 * number, 1.0, 0.5))

    return learn


@pytest.mark.slow
def test_it_learns_and_what_it_writes(command):
    """From kernels and rewards that start at random, so that all that is known was rewarded."""
    lines = command()
    assert [line.partition(" updates,")[0] for line in lines[:3]] == ["0", "20", "40"]
    assert "runs/reward: result.json, planner/, curves.png, examples.png" in lines
    with open("runs/reward/result.json") as file:
        result = json.load(file)
    assert result["untrained"]["success_rate"] < 0.2
    assert result["test"]["success_rate"] > 0.7
    first, half, last = result["history"]
    assert [line["update"] for line in (first, half, last)] == [0, 20, 40]
    assert last["reward"] > half["reward"] + 0.03
    assert last["entropy"] < half["entropy"]
    order = [(line["success_rate"], line["optimality_rate"]) for line in (first, half, last)]
    assert result["best_update"] == 20 * order.index(max(order))
    assert result["actions"] == 40 * 16 * 16 * 12
    assert result["flags"]["mechanism"] == "news"
    assert result["test"]["mazes"] == result["untrained"]["mazes"] == 40
    for name in ("curves.png", "examples.png"):
        assert os.path.getsize(f"runs/reward/{name}") > 1000
    planner = load_planner("runs/reward")
    assert planner.card["test"] == result["test"]
    assert "measured on maps of up to 7×7" in planner.caution((9, 7))
    # What was learned is not overwritten.
    with pytest.raises(SystemExit, match="runs/reward has a planner already: choose another"):
        command()


def test_stopping_keeps_the_planner(command, reward, monkeypatch, capsys):
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(reward, "learn", stand_in([lambda: None, interrupt, pytest.fail]))
    with pytest.raises(SystemExit) as end:
        command(model="highway_vin", mechanism="diffdrive")
    assert end.value.code == INTERRUPTED
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "SIGINT: saving, then stopping"
    assert lines[-1].startswith("runs/reward/planner: the planner after ")
    assert lines[-1].endswith(" updates, not tested")
    assert load_planner("runs/reward").settings["kind"] == "highway_vin"
    assert not os.path.exists("runs/reward/result.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 7}, "--depth=7 is not a multiple of 5"),
        ({"wall_reward": float("inf")}, "wall_reward is inf, expected a finite number"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0, expected a number above 0"),
        ({"entropy": float("nan")}, "entropy is nan, expected 0 or more"),
        ({"size": 5}, "too few distinct maps"),
    ],
)
def test_mistakes(command, options, message):
    with pytest.raises(SystemExit) as end:
        command(**options)
    assert message in str(end.value)
    assert not os.path.exists("runs")
