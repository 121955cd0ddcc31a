"""Sweeps: which trials there are, what they cost, and real Ray: failures, a killed driver."""

import json
import os
import pathlib
import signal
import sys
import time

import launching
import pytest
from launching import ROOT, copy_commands, run
from loopback import ISOLATED, needs_isolation

import experiments
from experiments.configs.base import base_config
from experiments.grids import Sweep, jobs_of, on_ray
from experiments.grids.estimate import duration, estimate, operations
from experiments.grids.on_ray import Options, check_hidden, check_reachable, check_room
from experiments.grids.running import Share, run_side_by_side
from experiments.grids.scratch import clear_abandoned
from experiments.grids.studies import study_jobs
from experiments.grids.trials_table import Row, TrialsTable
from experiments.launch import exits
from experiments.sweeps import tiny
from hvin_jax.training.workdir import is_locked

pytestmark = pytest.mark.processes


def test_a_sweep_and_a_study_share_their_runs():
    of_study = study_jobs("paper", ["depths"], [2], pathlib.Path("results"))
    sweep = Sweep(
        folder="paper",
        base="experiments/configs/paper.py:{model}-{size}-{depth}",
        grids=[{"model": ["highway_vin"], "size": [15], "depth": [100]}],
        seeds=(2,),
    )
    (job,) = jobs_of(sweep, pathlib.Path("results"))
    assert job in of_study
    assert job.folder == pathlib.Path("results/paper/highway_vin-15-100-seed2")


def test_grids():
    sweep = Sweep(
        folder="x",
        base="experiments/configs/cpu.py:{model}-15-{depth}",
        grids=[
            {"model": ["vin"], "depth": [20, 40], "optimizer.learning_rate": [1e-3, 3e-3]},
            {"model": ["gppn"], "depth": [20]},
        ],
        settings={"train.num_steps": 7},
        variants={"one": {"model.latent_actions": 1}},
        seeds=(0, 1, 2),
    )
    jobs = jobs_of(sweep, pathlib.Path("results"))
    assert [job.title for job in jobs[:3]] == [
        "vin-15-20-optimizer.learning_rate=0.001-seed0",
        "vin-15-20-optimizer.learning_rate=0.003-seed0",
        "vin-15-40-optimizer.learning_rate=0.001-seed0",
    ]
    assert len(jobs) == 15
    config = jobs[1].load_config()
    assert (config.optimizer.learning_rate, config.train.num_steps) == (3e-3, 7)
    sweep.grids = [{"model": ["vin"], "depth": [20], "variant": ["", "one"]}]
    plain, one, *_ = jobs_of(sweep, pathlib.Path("results"))
    assert (plain.title, one.title) == ("vin-15-20-seed0", "vin-15-20-one-seed0")
    assert one.load_config().model.latent_actions == 1
    sweep.grids = [{"model": ["vin"], "depth": [20], "variant": ["two"]}]
    with pytest.raises(ValueError, match="unknown variant 'two': expected one"):
        jobs_of(sweep, pathlib.Path("results"))
    sweep.grids = [{"model": ["vin"]}]
    with pytest.raises(ValueError, match=r"no values for \{depth\}"):
        jobs_of(sweep, pathlib.Path("results"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": "experiments/configs/none.py"}, "No such file"),
        ({"base": "experiments/configs/cpu.py:vim-15-20"}, "unknown model 'vim'"),
        ({"grids": [{"model.blok_depth": [1]}]}, "blok_depth"),
        ({"grids": [{"train.batch_size": ["many"]}]}, "batch_size"),
        ({"grids": []}, r"grids of a sweep is \[\], expected a list of grids"),
        ({"grids": {"train.batch_size": [8]}}, "grids of a sweep"),
        ({"grids": [3]}, "grids of a sweep"),
        ({"grids": [{"model.kind": "vin"}]}, "grids of a sweep"),
        ({"grids": [{"train.batch_size": []}]}, "grids of a sweep"),
        ({"seeds": ("a",)}, r"seeds of a sweep is \('a',\), expected different whole numbers"),
        ({"seeds": 0}, "seeds of a sweep is 0"),
        ({"seeds": ()}, "seeds of a sweep"),
        ({"seeds": (-1,)}, "seeds of a sweep"),
        ({"seeds": (1, 1)}, "seeds of a sweep"),
        ({"command": "mazes"}, "command of a sweep is 'mazes', expected maze or vizdoom"),
        ({"folder": ""}, "folder of a sweep is '', expected a name"),
        ({"base": 3}, "base of a sweep is 3"),
        ({"settings": 3}, "settings of a sweep is 3"),
        ({"variants": ["one"]}, r"variants of a sweep is \['one'\]"),
    ],
)
def test_wrong_sweeps(change, message):
    sweep = tiny.get_config()
    for name, value in change.items():
        setattr(sweep, name, value)
    with pytest.raises(ValueError, match=message):
        jobs_of(sweep, pathlib.Path("results"))[0].load_config()


@pytest.mark.parametrize(
    ("share", "message"),
    [
        ({"cpus": 0}, "cpus of a run is 0, expected a number above 0"),
        ({"cpus": -1.0}, "cpus of a run"),
        ({"cpus": "many"}, "cpus of a run"),
        ({"gpus": -0.5}, "gpus of a run is -0.5, expected 0, a fraction of 1"),
        ({"gpus": 1.5}, "gpus of a run"),
        ({"max_failures": -1}, "max_failures is -1, expected a whole number from 0"),
    ],
)
def test_what_no_trial_can_get(share, message):
    with pytest.raises(ValueError, match=message):
        Share(**share)


def test_file_without_a_sweep(tmp_path):
    (tmp_path / "none.py").write_text("def get_config():\n    return {}\n")
    code, _, err = run("sweep", "--config=none.py", folder=tmp_path)
    assert (code, err) == (1, "sweep: --config: get_config returns {}, expected a Sweep\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            SyntaxError("invalid syntax", ("x.py", 3, 1, "")),
            "--config: invalid syntax in x.py, line 3",
        ),
        (
            KeyError("Field nope not found on dataclass <class 'Sweep'>"),
            "the configuration has no setting 'nope'",
        ),
    ],
)
def test_mistakes_in_a_file(error, message):
    assert exits._sentence(error) == message


def test_estimates(tmp_path):
    (job, *_) = jobs_of(tiny.get_config(), tmp_path)
    config = job.load_config()
    # 4 blocks of 2 layers, 9×9 mazes, 5×5 windows from 4 to 4 · 20 maps, forwards and twice back.
    assert operations(config) == 3 * 32 * 8 * 81 * 2 * 25 * 4 * 80
    # Of many latent actions a layer that explores looks at one: it takes as long as 25 of them.
    config.model.latent_actions = 100
    assert operations(config) == 3 * 32 * 81 * 2 * 25 * 16 * (4 * 100 + 4 * 25)
    config.model.value_exploration = False
    assert operations(config) == 3 * 32 * 81 * 2 * 25 * 16 * 8 * 100
    config = job.load_config()
    first = estimate(job, config, 300, cpus=2.0, gpus=0.0)
    assert first.steps == 300
    assert first.seconds == pytest.approx(300 * operations(config) / 4e11)
    assert "assumed" in first.source
    other = tmp_path / "tiny" / f"{job.name}-seed7"
    other.mkdir(parents=True)
    (other / "result.json").write_text(json.dumps({"wall_seconds": 30.0, "steps": 300}))
    job.folder.mkdir()
    (job.folder / "metrics.jsonl").write_text('{"step": 100, "loss": 1.0}\n')
    measured = estimate(job, config, 300, cpus=2.0, gpus=0.0)
    assert (measured.steps, measured.seconds) == (200, pytest.approx(20.0))
    assert measured.source == "1 finished run of it"
    assert [duration(x) for x in (3.2, 150, 9000, 4e5)] == [
        "4 seconds",
        "2.5 minutes",
        "2.5 hours",
        "4.63 days",
    ]
    assert operations(base_config(name="x", model="gppn", size=15)) > 0


def test_what_a_trial_gets():
    data = pathlib.Path("data")
    assert Options(data).environment == {"JAX_PLATFORMS": "cpu"}
    assert Options(data, gpus=1.0).environment == {}
    assert Options(data, gpus=0.25).environment == {"XLA_CLIENT_MEM_FRACTION": "0.225"}
    (job, *_) = jobs_of(tiny.get_config(), pathlib.Path("results"))  # batches of 32
    assert [Options(data, cpus=x).cpu_devices(job) for x in (0.5, 1.0, 3.0)] == [4, 4, 8]
    assert Options(data, gpus=1.0).cpu_devices(job) == 0
    check_room({"CPU": 2.0}, Options(data, cpus=2.0))
    with pytest.raises(ValueError, match="is to have 1 GPUs, but this machine has 0"):
        check_room({"CPU": 2.0}, Options(data, gpus=1.0))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "here"])
def test_no_cluster(address):
    with pytest.raises(ValueError, match=f"can't reach Ray at {address}, expected HOST:PORT"):
        check_reachable(address)


def test_ray_works_where_nobody_else_can(tmp_path, monkeypatch):
    """It makes its folder one that everybody can write to."""
    used = []
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(on_ray.ray, "init", lambda **settings: used.append(settings["_temp_dir"]))
    monkeypatch.setattr(on_ray.ray, "cluster_resources", lambda: {"CPU": 1})
    with on_ray._ray(Options(data_dir=tmp_path)):
        around = pathlib.Path(used[0]).parent
        assert around.stat().st_mode & 0o777 == 0o700
        assert around.parent == tmp_path
    assert not list(around.iterdir())


def test_only_what_is_ours_is_cleared(tmp_path):
    for name in ("left", "link", "foreign"):
        (tmp_path / f".tune-{name}").mkdir()
    (tmp_path / ".tune-left/.lock").touch()
    (tmp_path / ".tune-link/.lock").symlink_to(tmp_path / ".tune-left/.lock")
    if os.geteuid() == 0:  # only root can give files away
        (tmp_path / ".tune-foreign/.lock").touch()
        os.chown(tmp_path / ".tune-foreign", 12345, 12345)
    clear_abandoned(tmp_path, ".tune-")
    assert {path.name for path in tmp_path.iterdir()} == {".tune-link", ".tune-foreign"}


def test_ray_that_others_can_reach():
    check_hidden("127.0.0.1")
    with pytest.raises(ValueError, match=r"listens at 192\.0\.2\.1 and not at 127\.0\.0\.1 alone"):
        check_hidden("192.0.2.1")


def test_table_says_what_changes(capsys):
    table = TrialsTable({"a": 60})
    waiting = Row("a", "waiting", None, None, 0)
    table.show([waiting], done=False)
    table.show([waiting], done=False)
    table.show([Row("a", "running", 15, 0.5, 1)], done=True)
    assert capsys.readouterr().out.splitlines() == [
        "a: waiting",
        "a: running (has failed once)",
        "trial           step  success rate  state",
        "a          15/60       50.00 %  running (has failed once)",
    ]


def test_dry_run(tmp_path):
    config = f"--config={ROOT}/experiments/sweeps/tiny.py"
    code, out, err = run("sweep", config, "--dry_run", folder=tmp_path)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("quickstart-model.block_depth=2-seed0  to be done")
    assert "300 steps" in lines[0]
    assert lines[4].startswith("4 runs on 1 CPUs each")
    assert not (tmp_path / "results").exists()


def test_without_ray(tmp_path, monkeypatch):
    """The extra is missing: one sentence."""
    monkeypatch.delitem(sys.modules, "experiments.grids.on_ray")
    monkeypatch.delattr(experiments.grids, "on_ray")
    monkeypatch.setitem(sys.modules, "ray", None)
    jobs = jobs_of(tiny.get_config(), tmp_path)
    with pytest.raises(ImportError, match=r"need Ray Tune: pip install 'hvin_jax\[sweep\]'"):
        run_side_by_side(jobs, {}, Share())


@pytest.fixture
def start(tmp_path):
    """Starts a command in a network of its own; its output goes to a file."""
    started = []

    def start(command, *arguments):
        with (tmp_path / "driver.txt").open("a") as log:
            process = launching.start(
                command,
                *arguments,
                folder=tmp_path,
                prefix=ISOLATED,
                log=log,
                PYTHONPATH=str(tmp_path),
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def _wait(condition, process=None, seconds=900):  # generous: Ray on a busy core takes minutes
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        assert process is None or process.poll() is None, "the driver has ended"
        time.sleep(0.02)


def _processes(words):
    """The processes whose command line has some words in it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_bytes().replace(b"\0", b" ").decode():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def _listening(process):
    """The addresses on which anything in the network of a process listens, in hexadecimal."""
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in pathlib.Path(f"/proc/{process.pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return {fields[1].split(":")[0] for fields in lines if fields[3] == "0A"}


SWEEP = """
from experiments.grids import Sweep

def get_config():
    return Sweep(
        folder="cpu",
        base="experiments/configs/cpu.py:{model}-15-{depth}",
        grids=[{"model": ["vin"], "depth": [20]}, {"model": ["highway_vin"], "depth": [100]}],
        seeds=(0,),
    )
"""


@needs_isolation
def test_real_ray(tmp_path, start):
    """A trial of a study is killed and retried, the driver is killed, a sweep of two goes on."""
    copy_commands(tmp_path)
    (tmp_path / "two.py").write_text(SWEEP)
    results = tmp_path / "results/cpu"
    victim, other = (results / f"{name}-seed0" for name in ("vin-15-20", "highway_vin-15-100"))

    driver = start("study", "--name=value_maps", "--cells=vin-15-20-*", "--parallel")
    _wait(lambda: (victim / "checkpoints/15").exists(), driver)
    (process,) = _processes(f"--workdir={victim}")
    os.kill(process, signal.SIGKILL)
    log = results / "logs/vin-15-20-seed0.txt"
    _wait(lambda: "resuming after step" in log.read_text(), driver)
    assert _listening(driver) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    driver.kill()
    driver.wait()
    assert not (victim / "result.json").exists()
    _wait(lambda: not is_locked(victim))

    code = start("sweep", "--config=two.py").wait()
    out = (tmp_path / "driver.txt").read_text()
    assert code == 0, out
    assert (other / "result.json").exists()
    assert "vin-15-20-seed0: waiting (has failed once)" in out
    assert out.endswith("results/cpu/report/sweep-two.md\n2 of 2 trials are finished\n")
    assert "| VIN | 2 | – | 2 |" in (results / "report/sweep-two.md").read_text()
    assert not list(results.glob(".tune-*"))
