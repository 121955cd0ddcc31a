"""A run from Python: a planner trained on arrays, interrupted and resumed like the command."""

import dataclasses
import json
import signal

import jax
import numpy as np
import pytest

import hvin_jax
from hvin_jax import training
from hvin_jax.models import GPPN, VIN
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.workdir import RESULT_SCHEMA, read_metrics, read_sittings

RECIPE = training.Recipe(
    num_steps=60,
    batch_size=8,
    validate_every=20,
    optimizer={"learning_rate": 1e-2},
    loss=training.Imitation(any_optimal=True),
)


@pytest.fixture(scope="module")
def mazes():
    law, mechanism = MazeLaw((7, 7)), get_mechanism("news")
    return make_mazes(law=law, mechanism=mechanism, train=64, valid=16, test=16, seed=0)


@pytest.fixture(scope="module")
def task(mazes):
    model = VIN(num_orientations=1, num_actions=4, depth=6, latent_actions=6, hidden=6)
    return training.maze_task(model, mazes)


class Stopping(training.Watcher):
    """Asks to stop after a step, and keeps what it is told."""

    def __init__(self, after=None):
        self.after, self.steps, self.said = after, [], []

    def say(self, text):
        self.said.append(text)

    def on_step(self, step, metrics):
        self.steps.append(step)

    def asked(self):
        return bool(self.steps) and self.steps[-1] == self.after


@pytest.fixture(scope="module")
def whole(task, tmp_path_factory):
    """A run that nobody disturbed: its folder, and what came out."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, training.train(task, RECIPE, folder, watcher=training.Watcher())


@pytest.mark.slow
def test_what_comes_out(whole, mazes, capsys):
    folder, result = whole
    assert result.keys() == RESULT_SCHEMA.keys()
    assert result == json.loads((folder / "result.json").read_text())
    assert result["name"] == "whole"
    assert result["config"]["model"]["kind"] == "vin"
    assert result["test"]["success_rate"] > 0.5
    assert [x["step"] for x in read_metrics(folder) if "success_rate" in x] == [20, 40, 60]
    planner = hvin_jax.load_planner(folder)
    logits = planner.policy(mazes.test.maze, mazes.test.goal).logits
    reached = hvin_jax.tasks.measures.evaluate(np.asarray(logits.argmax(-1)), mazes.test)
    assert reached.successes.tolist() == result["test"]["successes_by_spl"]
    assert "A vin for news" in (folder / "planner/CARD.md").read_text()
    assert capsys.readouterr().out == ""


def test_stopped_and_resumed(whole, task, tmp_path):
    first, second = Stopping(after=25), Stopping()
    with pytest.raises(training.Interrupted, match="stopped after step 26"):
        training.train(task, RECIPE, tmp_path / "run", watcher=first, asked_to_stop=first.asked)
    result = training.train(task, RECIPE, tmp_path / "run", watcher=second)
    assert second.said[0] == "resuming after step 26 of 60"
    assert first.steps + second.steps == list(range(1, 61))
    folder, expected = whole
    assert result["test"] == expected["test"]
    assert read_metrics(tmp_path / "run") == read_metrics(folder)
    jax.tree.map(
        np.testing.assert_array_equal,
        hvin_jax.load_planner(tmp_path / "run").params,
        hvin_jax.load_planner(folder).params,
    )


def test_another_number_of_devices_is_said(task, tmp_path):
    recipe = dataclasses.replace(RECIPE, num_steps=4, validate_every=4)

    def said():
        watcher = Stopping()
        training.train(task, recipe, tmp_path, watcher=watcher, test=False)
        return [line for line in watcher.said if "until here" in line]

    assert said() == []
    sittings = tmp_path / "sittings.jsonl"
    (made,) = read_sittings(tmp_path)
    assert made["devices"] == jax.device_count() == 8
    assert said() == []
    # Sittings that made no step do not count, and earlier versions noted no devices.
    sittings.write_text(json.dumps({**made, "devices": 6}) + "\n" + json.dumps(made) + "\n")
    assert said() == []
    idle = {**made, "first_step": 4}
    sittings.write_text(json.dumps({**made, "devices": 6}) + "\n" + json.dumps(idle) + "\n")
    (line,) = said()
    assert line.startswith("6 devices until here, 8 from here on: sums round differently")
    sittings.write_text(json.dumps({"first_step": 0, "commit": "abc1234"}) + "\n")
    assert said() == []


@pytest.fixture
def key_handler():
    """SIGINT as a script has it; processes that run tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("key_handler")
def test_interrupted_by_a_key(whole, task, tmp_path):
    """The first Ctrl-C saves and stops; the handler is then what it was."""

    class Key(Stopping):
        def on_step(self, step, metrics):
            super().on_step(step, metrics)
            if step == self.after:
                signal.raise_signal(signal.SIGINT)

    watcher = Key(after=30)
    with pytest.raises(training.Interrupted, match="stopped after step 31"):
        training.train(task, RECIPE, tmp_path / "run", watcher=watcher)
    assert watcher.said[-1] == "SIGINT: saving, then stopping"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    result = training.train(task, RECIPE, tmp_path / "run", watcher=Stopping())
    assert result["test"] == whole[1]["test"]


def test_a_complete_run_is_not_run_again(whole, task):
    folder, result = whole
    watcher = Stopping()
    assert training.train(task, RECIPE, folder, watcher=watcher) == result
    assert watcher.said == [f"{folder} is complete"]
    assert watcher.steps == []


@pytest.mark.parametrize(
    "change", ["recipe", "model", "data", "valid", "test", "symmetries", "weights"]
)
def test_a_folder_serves_one_run(whole, task, mazes, change):
    folder, _ = whole
    other, recipe = task, RECIPE
    vin = VIN(num_orientations=1, num_actions=4, depth=6, latent_actions=6, hidden=6)
    if change in ("valid", "test"):
        others = dataclasses.replace(mazes, **{change: mazes.train[:16]})
        other = training.maze_task(vin, others)
    elif change == "symmetries":
        other = training.maze_task(vin, mazes, use_symmetries=True)
    elif change == "weights":
        weights = hvin_jax.load_planner(folder).params
        other = training.maze_task(vin, mazes, weights=weights)
    elif change == "recipe":
        recipe = dataclasses.replace(RECIPE, seed=1)
    elif change == "model":
        other = training.maze_task(GPPN(num_orientations=1, num_actions=4, depth=2), mazes)
    else:
        other = training.maze_task(vin, dataclasses.replace(mazes, train=mazes.train[:32]))
    with pytest.raises(training.WorkdirError, match="belongs to another configuration"):
        training.train(other, recipe, folder)


@pytest.mark.slow
def test_going_on_from_a_shorter_run(whole, task, tmp_path):
    """As if it had been asked for at once; from a longer one there is no way."""
    folder, _ = whole
    short = dataclasses.replace(RECIPE, num_steps=20)
    training.train(task, short, tmp_path / "short", watcher=training.Watcher())
    options = {"start_from": tmp_path / "short", "watcher": training.Watcher()}
    training.train(task, RECIPE, tmp_path / "longer", **options)
    planners = [hvin_jax.load_planner(x).params for x in (folder, tmp_path / "longer")]
    jax.tree.map(np.testing.assert_array_equal, *planners)
    with pytest.raises(training.WorkdirError, match="it made 60 steps, this run is to make 20"):
        training.train(task, short, tmp_path / "shorter", start_from=folder)
    assert not (tmp_path / "shorter/config.json").exists()


def test_lines_are_printed_by_default(task, tmp_path, capsys):
    recipe = dataclasses.replace(RECIPE, num_steps=8, validate_every=4)
    assert training.train(task, recipe, tmp_path / "run", test=False) is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("step ")][:1] == ["4/8"]
    assert not (tmp_path / "run/result.json").exists()


def test_mistakes(mazes, task, tmp_path):
    for name in ("valid", "test"):
        some = dataclasses.replace(mazes, **{name: mazes.train[:0]})
        with pytest.raises(ValueError, match=f"there are no {name} mazes"):
            training.maze_task(VIN(num_orientations=1, num_actions=4), some)
    with pytest.raises(ValueError, match="the model has num_orientations = 4, but news has 1"):
        training.maze_task(VIN(), mazes)
    with pytest.raises(ValueError, match="kernel_size must be odd"):
        training.maze_task(VIN(num_orientations=1, num_actions=4, kernel_size=2), mazes)
    with pytest.raises(ValueError, match="64 training examples do not fill a batch of 128"):
        training.train(task, dataclasses.replace(RECIPE, batch_size=128), tmp_path / "run")
    model = VIN(num_orientations=1, num_actions=4)
    for wrong, message in (
        ((model, RECIPE, tmp_path / "run"), "the task is a VIN, expected a Task"),
        ((task, {}, tmp_path / "run"), "the recipe is a dict, expected a Recipe"),
        ((task, RECIPE, None), "the folder is None, expected a path"),
    ):
        with pytest.raises(TypeError, match=message):
            training.train(*wrong)
    with pytest.raises(ValueError, match="the parameters do not fit the model"):
        training.maze_task(model, mazes, weights=hvin_jax.load_planner("news").params)
    assert not (tmp_path / "run/config.json").exists()


def test_numbers_of_numpy_are_numbers():
    recipe = training.Recipe(num_steps=np.int64(4), seed=np.uint32(7))
    assert json.dumps([recipe.num_steps, recipe.seed]) == "[4, 7]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_steps": 2.5}, "num_steps is 2.5, expected a whole number"),
        ({"num_steps": True}, "num_steps is True, expected a whole number"),
        ({"num_steps": None}, "num_steps is None, expected a whole number"),
        ({"batch_size": "8"}, "batch_size is '8', expected a whole number"),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number"),
        ({"loss": "x"}, "loss is 'x', expected an Imitation"),
        ({"optimizer": "adam"}, "optimizer is 'adam', expected arguments of make_optimizer"),
        ({"optimizer": {"lr": 1}}, "optimizer has 'lr', expected some of name, learning_rate"),
        ({"optimizer": {"learning": 1}}, "did you mean learning_rate?"),
        (
            {"optimizer": {"learning_rate": "1e-3"}},
            "learning_rate of the optimizer is '1e-3', expected a number",
        ),
        ({"feed": "disk"}, "feed is 'disk', expected auto, device or stream"),
        ({"select": "speed"}, "select is 'speed', expected one of optimality, success"),
        ({"validate_every": -1}, "validate_every is -1, expected 0 to"),
        ({"valid_mazes": -1}, "valid_mazes is -1, expected 0 to"),
        ({"batch_size": 0}, "batch_size is 0, expected 1 or more"),
        ({"num_steps": 0, "num_epochs": 0}, "there is nothing to train"),
        ({"seed": 2**64}, "seed is 18446744073709551616, expected 0 to"),
    ],
)
def test_recipes_that_can_not_be_followed(change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dataclasses.replace(RECIPE, **change)
