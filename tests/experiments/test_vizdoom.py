"""The training command from views, from end to end, and the walk of what it trained."""

import json
import pathlib

import numpy as np
import pytest
from launching import ROOT, assert_same_outcome, run, start, wait_for
from PIL import Image

from experiments.configs import vizdoom_cpu, vizdoom_paper
from experiments.grids.studies import study_jobs
from experiments.launch.settings import depth_of
from hvin_jax import load_planner
from hvin_jax.report.runs import Group, Run
from hvin_jax.report.tables import rates_table
from hvin_jax.training.workdir import RESULT_SCHEMA, read_metrics
from hvin_jax.visual_planner import load_visual_planner

pytestmark = [pytest.mark.engine, pytest.mark.processes]

TINY = (
    f"--config={ROOT}/experiments/configs/vizdoom_cpu.py:highway_vin-40",
    "--config.data.size=7",
    "--config.data.train=64",
    "--config.data.valid=16",
    "--config.data.test=16",
    "--config.model.num_blocks=3",
    "--config.model.block_depth=2",
    "--config.model.latent_actions=6",
    "--config.model.hidden=8",
    "--config.train.batch_size=16",
    "--config.train.num_steps=60",
    "--config.eval.every_steps=20",
    "--config.eval.batch_size=16",
    "--config.perception.true_map_epochs=5",
    "--config.optimizer.warmup_steps=10",
    "--config.optimizer.schedule=constant",
    "--cpu_devices=2",
    "--nopictures",
)
VIEWS = "views-7-64-16-16-seed0"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished run, and the views that were made on the way."""
    folder = tmp_path_factory.mktemp("vizdoom")
    code, out, err = run("vizdoom", *TINY, "--pictures", "--workdir=runs/tiny", folder=folder)
    assert code == 0, err
    return folder, out


def test_it_learns(finished):
    """Perception learns the map, on mazes and looks it has not seen, and the planner to plan."""
    folder, out = finished
    lines = read_metrics(folder / "runs/tiny")
    accuracy = [line["map_accuracy"] for line in lines if "map_accuracy" in line]
    assert len(accuracy) == 3
    assert accuracy[-1] > 0.97
    result = json.loads((folder / "runs/tiny/result.json").read_text())
    assert result["test"].keys() == RESULT_SCHEMA["test"].keys() - {"cost_ratio"}
    assert result["test"]["map_accuracy"] > 0.97
    success = [line["success_rate"] for line in lines if "success_rate" in line]
    assert success[-1] > 2 * success[0]
    assert "cells whose map is predicted right: " in out
    assert "map 9" in out or "map 100" in out


def test_a_killed_run_ends_as_if_it_had_not_been(finished):
    folder, _ = finished
    arguments, killed = (*TINY, "--workdir=runs/killed"), folder / "runs/killed"
    process = start("vizdoom", *arguments, folder=folder)
    wait_for(lambda: any((killed / "checkpoints").glob("[0-9]*[0-9]")), process)
    process.kill()
    process.communicate()
    code, out, err = run("vizdoom", *arguments, folder=folder)
    assert code == 0, err
    assert "resuming after step" in out
    assert_same_outcome(killed, folder / "runs/tiny")


def test_what_a_run_leaves(finished):
    folder, out = finished
    assert out.splitlines()[-1] == (
        "runs/tiny: result.json, planner/, curves.png, examples.png, plan.png, perception/, "
        "maps.png, views.png"
    )
    assert load_planner(folder / "runs/tiny").mechanism.name == "diffdrive"
    for name in ("maps", "views"):
        with Image.open(folder / f"runs/tiny/{name}.png") as image:
            assert np.asarray(image.convert("L")).std() > 10
    trained = load_visual_planner(folder / "runs/tiny")
    assert trained.params["params"].keys() == {"perception", "planner"}


def test_eval_repeats_the_test(finished):
    folder, _ = finished
    code, _, err = run(
        "vizdoom", "--mode=eval", "--checkpoint=runs/tiny", f"--data=data/{VIEWS}", folder=folder
    )
    assert code == 0, err
    result = json.loads((folder / "runs/tiny/result.json").read_text())
    again = json.loads((folder / f"runs/tiny/eval-{VIEWS}-test.json").read_text())
    assert again["successes_by_spl"] == result["test"]["successes_by_spl"]
    assert again["map_accuracy"] == result["test"]["map_accuracy"]


@pytest.mark.parametrize(
    ("changes", "kept", "changed"),
    [
        (
            ("--config.perception.weights=runs/tiny", "--config.perception.learning=frozen"),
            "perception",
            "planner",
        ),
        (
            ("--config.train.weights=runs/tiny", "--config.optimizer.learning_rate=1e-30"),
            "planner",
            "perception",
        ),
    ],
)
def test_pretrained_parts(finished, changes, kept, changed):
    folder, _ = finished
    arguments = (*TINY, *changes, "--config.train.num_steps=20", f"--workdir=runs/{kept}")
    code, _, err = run("vizdoom", *arguments, folder=folder)
    assert code == 0, err
    assert _same_weights(folder / "runs", "tiny", kept, part=kept)
    assert not _same_weights(folder / "runs", "tiny", kept, part=changed)


def _same_weights(runs, one, other, *, part):
    with (
        np.load(runs / one / part / "weights.npz") as before,
        np.load(runs / other / part / "weights.npz") as after,
    ):
        return all(np.allclose(before[name], after[name], atol=1e-12) for name in before.files)


def test_walk(finished):
    folder, _ = finished
    code, out, err = run(
        "vizdoom_walk", "--run=runs/tiny", "--size=7", "--walks=2", "--out=walk.gif", folder=folder
    )
    lines = out.splitlines()
    assert lines[1] == "walk.gif", err
    reached = sum(line.startswith("the agent reached the goal in ") for line in lines)
    assert lines[-1] == f"{reached} of 2 goals were reached"
    assert code == (0 if reached == 2 else 1)
    with Image.open(folder / "walk.gif") as gif:
        assert gif.n_frames > 1


def test_walk_on_a_map_of_ones_own(finished):
    folder, _ = finished
    (folder / "map.txt").write_text("G....\n####.\nS....\n")
    code, out, err = run(
        "vizdoom_walk", "--run=runs/tiny", "--map=map.txt", "--out=", folder=folder
    )
    assert out.startswith("the agent "), err
    assert code == (0 if "reached the goal" in out else 1)
    assert "(a shortest path has " in out


@pytest.mark.parametrize(
    ("command", "changes", "message"),
    [
        ("vizdoom", [*TINY, "--config.perception.learning=never"], "perception learns 'never'"),
        ("vizdoom", [*TINY, "--config.perception.weights=gone"], "gone: no perception there"),
        ("vizdoom", [*TINY, "--config.data.file=gone"], "vizdoom: gone is not a folder of views"),
        ("vizdoom", [*TINY, "--config.data.mechanism=news"], "the agent moves by diffdrive"),
        ("vizdoom", [*TINY, "--config.loss.map_weight=-1.0"], "map_weight is -1.0"),
        ("vizdoom", [], "--config is missing"),
        ("vizdoom", [f"--config={ROOT}/experiments/configs/quickstart.py"], "for mazes with a map"),
        ("vizdoom_walk", ["--run=gone"], "vizdoom_walk: gone: no perception there"),
        ("vizdoom_walk", ["--run=runs/tiny", "--out=walk.mov"], "does not end in .gif"),
        ("vizdoom_walk", ["--run=runs/tiny", "--map=gone.txt"], "there is no such file"),
    ],
)
def test_mistakes(finished, tmp_path, command, changes, message):
    folder, _ = finished
    arguments = [*changes, f"--workdir={tmp_path}/run"] if command == "vizdoom" else changes
    code, _, err = run(command, *arguments, folder=folder)
    assert code == 1
    assert message in err
    assert err.count("\n") == 1


def test_study():
    for scale in ("paper", "cpu"):
        jobs = {job.title: job for job in study_jobs(scale, ["vizdoom"], [0], pathlib.Path())}
        job = jobs["highway_vin-15-100-views-seed0"]
        assert job.command == "vizdoom"
        assert job.load_config().name == f"vizdoom-{scale}-highway_vin-100"
    test = {"ranges": [{"low": 60, "high": 100, "count": 5, "success_rate": 0.5}]}
    group = Group("highway_vin", 15, 100, "views", (Run(None, {"test": test}),))
    row = rates_table([group], "success_rate", 15)[1]
    assert row[-1].startswith("96.98")  # the paper's 3D table


def test_rows_of_the_paper():
    for model in ("vin", "gppn", "highway_network", "highway_vin"):
        for depth in vizdoom_paper.DEPTHS:
            config = vizdoom_paper.get_config(f"{model}-{depth}")
            assert depth_of(config) == depth
            assert (config.data.size, config.data.train) == (15, 25000)
    assert vizdoom_cpu.get_config("gppn-40").model.hidden == 50
    assert vizdoom_cpu.get_config("vin-100").model.latent_actions == 40
    assert vizdoom_paper.get_config("vin-15-40") == vizdoom_paper.get_config("vin-40")
    for cell in ("vin", "vin-25-40", ""):
        with pytest.raises(ValueError, match=r"expected MODEL-DEPTH|mazes have size 15"):
            vizdoom_paper.get_config(cell)
