"""The training command from end to end, and what it says when something is wrong."""

import functools
import json
import os
import resource
import subprocess

import jax
import numpy as np
import pytest
from launching import ROOT, TINY, run, start
from PIL import Image

from experiments.configs import base, cpu, paper, quickstart
from experiments.launch.settings import model_of, settle_kind, stored
from hvin_jax import load_planner
from hvin_jax.training.results import git_commit, scores_table, spl_ranges
from hvin_jax.training.workdir import RESULT_SCHEMA, read_metrics

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished run and the mazes it was made from."""
    folder = tmp_path_factory.mktemp("launcher")
    code, out, err = run("maze", *TINY, "--pictures", "--workdir=runs/tiny", folder=folder)
    assert code == 0, err
    assert err == ""  # no progress bar, no chatter
    return folder, out


def test_what_is_printed(finished):
    _, out = finished
    lines = out.splitlines()
    validations = [line for line in lines if line.startswith("step ")]
    assert [line.split()[1] for line in validations[:1] + validations[-1:]] == ["15/60", "60/60"]
    assert "shortest path    start states   success rate   optimality rate" in lines
    assert lines[-1] == ("runs/tiny: result.json, planner/, curves.png, examples.png, plan.png")


def test_result_follows_its_schema(finished):
    folder, _ = finished
    result = json.loads((folder / "runs/tiny/result.json").read_text())
    assert result.keys() == RESULT_SCHEMA.keys()
    assert result["test"].keys() == RESULT_SCHEMA["test"].keys() - {"cost_ratio"}
    assert result["steps"] == 60
    assert result["config"]["model"]["block_depth"] == 2
    assert result["device"]["count"] == 2
    assert sum(row["count"] for row in result["test"]["ranges"]) == sum(
        result["test"]["starts_by_spl"]
    )
    assert f"{100 * result['test']['success_rate']:.2f} %" in scores_table(result["test"])


def test_logs_and_pictures(finished):
    folder, _ = finished
    lines = read_metrics(folder / "runs/tiny")
    assert [line["step"] for line in lines if "success_rate" in line] == [15, 30, 45, 60]
    assert [line["step"] for line in lines if "loss" in line] == [50]
    learned = [line["alpha"] for line in lines if "success_rate" in line]
    planner = load_planner(folder / "runs/tiny")
    best = json.loads((folder / "runs/tiny/result.json").read_text())["best_step"]
    np.testing.assert_allclose(
        learned[best // 15 - 1], planner.params["params"]["alpha"], atol=1e-4
    )
    assert list((folder / "runs/tiny/tensorboard").glob("events*"))
    for name in ("curves", "examples", "plan"):
        with Image.open(folder / f"runs/tiny/{name}.png") as image:
            assert np.asarray(image.convert("L")).std() > 10


def test_best_by_validation_is_what_is_tested(finished):
    folder, _ = finished
    result = json.loads((folder / "runs/tiny/result.json").read_text())
    lines = [x for x in read_metrics(folder / "runs/tiny") if "optimality_rate" in x]
    best = max(reversed(lines), key=lambda line: np.float32(line["optimality_rate"]))
    assert result["best_step"] == best["step"]
    assert result["valid_score"] == pytest.approx(best["optimality_rate"])


def test_eval_of_a_checkpoint_repeats_the_test(finished):
    folder, _ = finished
    (data,) = (folder / "data").glob("*.npz")
    code, out, err = run(
        "maze", "--mode=eval", "--checkpoint=runs/tiny", f"--data={data}", folder=folder
    )
    assert code == 0, err
    result = json.loads((folder / "runs/tiny/result.json").read_text())
    assert scores_table(result["test"]) in out
    (written,) = (folder / "runs/tiny").glob("eval-*.json")
    again = json.loads(written.read_text())
    assert again["successes_by_spl"] == result["test"]["successes_by_spl"]
    assert again["data"] == f"{data.name}:test"  # no matter where it was


def test_eval_at_another_depth(finished):
    folder, _ = finished
    (data,) = (folder / "data").glob("*.npz")
    words = ("--mode=eval", "--checkpoint=runs/tiny", f"--data={data}")

    def rates(layers):
        code, _, err = run("maze", *words, f"--layers={layers}", folder=folder)
        assert code == 0, err
        (written,) = (folder / "runs/tiny").glob(f"eval-*-{layers}_layers.json")
        scores = json.loads(written.read_text())
        written.unlink()
        assert scores["layers"] == str(layers)
        return scores["successes_by_spl"]

    planner = load_planner(folder / "runs/tiny")
    own = json.loads((folder / "runs/tiny/result.json").read_text())["test"]["successes_by_spl"]
    assert rates(planner.model.num_layers) == own
    assert rates(planner.model.block_layers) != own
    assert sum(rates("auto")) > 0
    for wrong, said in (
        ((*words, "--layers=7777777"), "layers is 7777777, expected"),
        ((*words, "--layers=deep"), "layers is 'deep', expected"),
        ((*TINY, "--layers=4"), "--layers is for --mode=eval"),
    ):
        code, _, err = run("maze", *wrong, folder=folder)
        assert code == 1
        assert said in err
        assert "Traceback" not in err


def test_train_without_a_test(finished):
    folder, _ = finished
    code, _, err = run("maze", *TINY, "--mode=train", "--workdir=runs/untested", folder=folder)
    assert code == 0, err
    assert not (folder / "runs/untested/result.json").exists()
    code, out, _ = run("maze", *TINY, "--workdir=runs/untested", folder=folder)
    assert code == 0
    assert "resuming after step 60 of 60" in out
    same = [
        json.loads((folder / f"runs/{name}/result.json").read_text())["test"]
        for name in ("tiny", "untested")
    ]
    assert same[0] == same[1]


def test_weights_to_begin_with(finished):
    """At a learning rate of nearly 0 they stay what they were, on mazes of another size, too."""
    folder, _ = finished
    changes = (
        "--config.train.weights=runs/tiny",
        "--config.train.num_steps=15",
        "--config.optimizer.learning_rate=1e-30",
        "--config.model.block_depth=3",
        "--config.data.size=9",
    )
    code, _, err = run("maze", *TINY, *changes, "--workdir=runs/begun", folder=folder)
    assert code == 0, err
    before, after = (load_planner(folder / "runs" / name).params for name in ("tiny", "begun"))
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-12), before, after)
    code, _, err = run(
        "maze",
        *TINY,
        "--config.train.weights=runs/tiny",
        "--config.model.num_blocks=5",
        folder=folder,
    )
    assert code == 1
    assert "weights=runs/tiny: the parameters do not fit the model: alpha has shape" in err
    moves = ("--config.data.mechanism=news", "--config.train.weights=runs/tiny")
    code, _, err = run("maze", *TINY, *moves, "--workdir=runs/news", folder=folder)
    assert code == 1
    assert "runs/tiny is a planner for diffdrive, not news" in err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--config.model.blok_depth=3"], "no setting 'blok_depth'; did you mean block_depth?"),
        (["--config.model.block_depth=deep"], "block_depth"),
        (["--confg=x"], "Unknown command line flag 'confg'"),
        (["--config=nothing.py"], "maze: --config=nothing.py: no such file"),
        (
            [f"--config={ROOT}/experiments/configs/cpu.py"],
            "expected MODEL-SIZE-DEPTH after a colon",
        ),
        (["--config.model.kind=vinn"], "maze: unknown model 'vinn'"),
        (
            ["--config.model.kind=vin"],  # beside block_depth, which is given, too
            "a vin has no setting 'block_depth'; did you mean depth?",
        ),
        (["--config.model.kernel_size=4"], "maze: kernel_size must be odd"),
        (["--config.model.epsilon=1.5"], "epsilon must lie in [0, 1], got 1.5"),
        (["--config.model.initial_temperature=nan"], "initial_temperature must be finite, got nan"),
        (["--config.model.block_depth=1000000"], "has 2,000,000 layers, expected 100,000 at most"),
        (["--config.data.train=99999999999999"], "mazes of 7×7 would take"),
        (["--config.train.batch_size=7"], "a batch of 7 can't be shared evenly by 2 devices"),
        (["--config.train.batch_size=128"], "64 training examples do not fill a batch of 128"),
        (["--config.data.file=gone.npz"], "maze: gone.npz: there is no such file"),
        (["--config.data.mechanism=moor"], "maze: unknown mechanism 'moor'"),
        (["--config.data.min_decimation=1.0"], "maze: too few distinct maps"),
        (["--config.optimizer.name=sdg"], "maze: optax has no optimiser 'sdg'"),
        (["--config.optimizer.schedule=step"], "maze: unknown schedule 'step'"),
        (["--config.train.weights=gone"], "maze: gone: no planner there"),
        (["--config.eval.select=speed"], "select is 'speed'"),
        (["--config.eval.every_steps=-1"], "validate_every is -1"),
        (["--start_from=gone"], "maze: gone/config.json: there is no such file"),
        (["--workdir=/proc/nowhere"], "maze: can't use"),
        (["surplus"], "maze: unexpected argument 'surplus'"),
    ],
)
def test_mistakes(tmp_path, changes, message):
    arguments = (*TINY, "--workdir=runs/wrong", *changes)
    code, _, err = run("maze", *arguments, folder=tmp_path)
    assert code != 0
    assert message in err
    assert err.startswith("maze: ")
    assert err.count("\n") == 1
    # Nothing was begun: no folder, no data.
    assert not list(tmp_path.iterdir())


def test_what_is_no_configuration(tmp_path):
    """A pipe would be read for ever; a file may lack a setting."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "bare.py").write_text(
        "import ml_collections\nget_config = ml_collections.ConfigDict"
    )
    for name, message in (
        ("pipe.py", "pipe.py is a pipe or a device, expected a file"),
        ("bare.py", "the configuration has no setting data, see experiments/configs"),
    ):
        code, _, err = run("maze", f"--config={name}", folder=tmp_path)
        assert (code, err) == (1, f"maze: {message}\n")


def test_missing_config(tmp_path):
    code, _, err = run("maze", folder=tmp_path)
    assert code == 1
    assert err == "maze: --config is missing, for instance experiments/configs/quickstart.py\n"
    code, _, err = run("maze", "--config=configs/quikstart.py", folder=tmp_path)
    assert (code, err) == (1, "maze: --config=configs/quikstart.py: no such file\n")


@pytest.mark.parametrize(
    ("kilobytes", "message"),
    [
        (12, "maze: can't use data/diffdrive-7-64-16-16-seed0-decimation0to1.npz: File too large"),
        (20, "maze: can't write a checkpoint in "),
    ],
)
def test_full_disk(tmp_path, kilobytes, message):
    """A file may not grow beyond some size, which fails like a full disk."""
    process = start("maze", *TINY, "--workdir=runs/full", folder=tmp_path)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, 2 * (1024 * kilobytes,))
    _, err = process.communicate()
    assert process.returncode == 1
    # The last line: orbax may log an error of its own before.
    assert err.splitlines()[-1].startswith(message)


def test_help(tmp_path):
    code, out, _ = run("maze", "--help", folder=tmp_path)
    assert code == 1  # absl's exit code for --help
    for flag in ("--workdir", "--mode", "--checkpoint", "--data_dir", "--config"):
        assert flag in out


def test_rows_of_the_paper():
    deep = paper.get_config("highway_vin-25-300")
    assert (deep.model.num_blocks, deep.model.block_depth) == (30, 10)
    assert (deep.model.latent_actions, deep.model.hidden, deep.model.kernel_size) == (100, 150, 5)
    assert (deep.train.batch_size, deep.train.num_epochs, deep.data.train) == (32, 30, 25000)
    assert paper.get_config("vin-15-20").model.depth == 20
    assert paper.get_config("gppn-25-30").model.hidden == 150
    assert cpu.get_config("gppn-15-20").model.hidden == 50
    assert cpu.get_config("highway_network-15-40").model.latent_actions == 40


@pytest.mark.parametrize("cell", ["", "vin-15", "vin-fifteen-20", "vim-15-20", "highway_vin-15-50"])
def test_cells_that_do_not_exist(cell):
    with pytest.raises(ValueError, match=r"expected|multiple of 20"):
        paper.get_config(cell)


def test_a_kind_brings_its_settings():
    """What both kinds have stays, what is given explicitly stays, the rest is the new kind's."""
    config = quickstart.get_config()
    config.model.kind = "vin"
    settle_kind(config, ["model.kind"])
    settings = stored(config)["model"]
    assert settings.keys() == {"kind", *base.MODEL_SETTINGS["vin"]}
    assert (settings["latent_actions"], settings["depth"]) == (20, 20)
    config.model.kind, config.model.depth = "highway_vin", 7
    settle_kind(config, ["model.kind", "model.depth"])
    with pytest.raises(ValueError, match="a highway_vin has no setting 'depth'"):
        model_of(config)
    config.model.depth = None
    assert model_of(config).block_depth == 5


def test_ranges():
    assert spl_ranges(15, 90) == ((0, 30), (30, 60), (60, 100))
    assert spl_ranges(15, 120)[-1] == (100, 120)
    assert spl_ranges(11, 50) == ((0, 17), (17, 34), (34, 51))


def test_commit_of_the_code(tmp_path):
    files = [tmp_path / name for name in ("results/run.json", "docs/notes.md", "package/code.py")]
    for file in files:
        file.parent.mkdir()
        file.write_text("first")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "x")):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    commit = git_commit(tmp_path)
    assert len(commit) == 7
    for file, then in zip(files, (commit, commit, f"{commit}-dirty"), strict=True):
        file.write_text("second")
        assert git_commit(tmp_path) == git_commit(file.parent) == then
    assert git_commit(tmp_path.parent) is None


def test_planner_of_a_run(finished):
    folder, _ = finished
    planner = load_planner(folder / "runs/tiny")
    assert planner.card["steps"] == 60
    assert planner.mechanism.name == "diffdrive"
