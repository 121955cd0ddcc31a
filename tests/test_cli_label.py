"""`hvin label` and what it makes, in this process; training takes it by a flag."""

import json
import re

import jax
import numpy as np
import pytest
from launching import TINY, run

import hvin_jax
from hvin_jax.cli import main
from hvin_jax.models import HighwayVIN, init_params, settings_of
from hvin_jax.planner import Planner
from hvin_jax.planner_files import save_planner
from hvin_jax.tasks import load_mazes, tabular_mdp
from hvin_jax.tasks.mechanisms import get_mechanism

ROOMS = ["#####\n#..G#\n#.#.#\n#####\n", "######\n#.5..#\n#.##.#\n#....#\n######\n"]


@pytest.fixture
def hvin(capsys, tmp_path, monkeypatch):
    """Runs the command in a folder with maps: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rooms").mkdir()
    for number in range(6):
        room = ROOMS[0].replace(".", "123456"[number], 1)
        walls = f"#{number:03b}#".replace("0", ".").replace("1", "#")
        (tmp_path / f"rooms/{number}.txt").write_text(room.replace("#.#.#", walls))
    (tmp_path / "rooms/large.txt").write_text(ROOMS[1])
    rng = np.random.default_rng(0)
    maps = np.pad(rng.random((20, 5, 5)) < 0.8, ((0, 0), (1, 1), (1, 1))).astype(np.uint8)
    np.save(tmp_path / "maps.npy", maps)
    np.save(tmp_path / "goals.npy", np.argwhere(maps)[:: maps.sum() // 20 + 1][:, 1:])

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code or 0, *capsys.readouterr()

    return run


def test_single_files(hvin, tmp_path):
    """One large map to train on, others to choose and to test by."""
    (tmp_path / "arena.map").write_text("type octile\nheight 2\nwidth 3\nmap\n...\n.@@\n")
    (tmp_path / "table.csv").write_text("1,1,0\n0,1,1\n")
    (tmp_path / "test.txt").write_text("....\n##..\n")
    code, _, err = hvin(
        "label", "--maps=arena.map", "--valid_maps=table.csv", "--test_maps=test.txt",
        "--pad", "--mechanism=news", "--per_map=3", "--out=mine.npz",
    )  # fmt: skip
    assert (code, err) == (0, "")
    mazes = load_mazes("mine.npz")
    assert [len(part) for part in (mazes.train, mazes.valid, mazes.test)] == [3, 3, 3]
    assert mazes.train.maze[0].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]


def test_a_folder_of_drawings(hvin, tmp_path):
    code, out, err = hvin(
        "label", "--maps=rooms", "--pad", "--mechanism=news", "--per_map=4", "--out=mine.npz",
        "--split=4,2,1", "--preview=mine.png",
    )  # fmt: skip
    assert (code, err) == (0, "")
    # Six maps have a goal of their own, four are drawn for the seventh.
    assert out.startswith("mine.npz: ")
    assert out.endswith("mine.png\n")
    mazes = load_mazes("mine.npz")
    assert len(mazes.train) + len(mazes.valid) + len(mazes.test) == 10
    assert mazes.train.size == (5, 6)
    assert mazes.train.extent is not None
    assert mazes.train.cost is not None
    assert (tmp_path / "mine.png").stat().st_size > 1000


def test_arrays_and_splits_by_file(hvin, tmp_path):
    own = {
        "name": "hopper",
        "orientations": ["-"],
        "actions": ["N2", "E2", "W2", "S2", "N", "E"],
        "moves": [[[-2, 0, 0], [0, 2, 0], [0, -2, 0], [2, 0, 0], [-1, 0, 0], [0, 1, 0]]],
        "walls": "block",
    }
    (tmp_path / "hopper.json").write_text(json.dumps(own))
    maps = np.load("maps.npy")
    goal = np.stack([[*np.argwhere(one)[0], -1] for one in maps])
    np.savez("valid.npz", maze=maps[:4], goal=goal[:4], cost=np.full(maps[:4].shape, 2.5))
    code, out, err = hvin(
        "label", "--maps=maps.npy", "--valid_maps=valid.npz", "--test_maps=maps.npy",
        "--mechanism=hopper.json", "--out=sub/mine.npz", "--seed=3",
    )  # fmt: skip
    assert (code, err) == (
        2,
        "hvin label: the train mazes have no costs, others have: all of them need some, or none\n",
    )
    np.savez("valid.npz", maze=maps[:4])
    code, out, err = hvin(
        "label", "--maps=maps.npy", "--valid_maps=valid.npz", "--test_maps=maps.npy",
        "--mechanism=moore", "--out=sub/mine.npz", "--any_orientation",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "20 + 4 + 20 mazes of 7×7, moore, longest path" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--maps=gone.npy"], "gone.npy: there is no such file"),
        (["--maps=rooms"], "need padding to be allowed"),
        (["--maps=maps.npy", "--split=1,2"], "expected three numbers above 0"),
        (["--maps=maps.npy", "--split=a"], "--split=a is not three numbers"),
        (["--maps=maps.npy", "--mechanism=legs"], "unknown mechanism 'legs'"),
        (["--maps=maps.npy", "--mechanism=gone.json"], "gone.json"),
        (["--maps=maps.npy", "--test_maps=maps.npy"], "--valid_maps and --test_maps go together"),
        (["--maps=maps.npy", "--costs=goals.npy"], "maps need as many costs|expected numbers of"),
        (["--maps=goals.npy"], "values other than 0"),
        (["--maps=maps.npy", "--preview=x.gif"], "does not end in .png"),
        (["--maps=maps.txt"], "there is no such file"),
        (["--maps=maps.npy", "--per_map=0"], "0 is not a whole number of 1 or more"),
        (
            ["--maps=maps.npy", f"--per_map={10**12}"],
            "20,000,000,000,000 labelled mazes of 7×7 wou",
        ),
        (["--maps=rooms", "--pad"], "rooms/bad.txt has no free cell for a goal"),
        (
            ["--maps=maps.npy", "--valid_maps=rooms", "--test_maps=./rooms"],
            "--valid_maps and --test_maps are both rooms: ",
        ),
    ],
)
def test_mistakes_of_label(hvin, arguments, message, tmp_path):
    (tmp_path / "rooms/bad.txt").write_text("###\n###\n")
    _refused(hvin("label", "--out=out.npz", *arguments), message)
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"goal": np.full((20, 3), "x")},
            r"the goal of map 0 of x.npz is \['x', 'x', 'x'\], expec",
        ),
        (
            {"goal": [(3, 3, -5)] * 20},
            "the goal of map 0 of x.npz has orientation -5, but diffdriv",
        ),
        ({"goal": [3, 3]}, "20 maps need as many goals, got 2"),
        ({"goal": 3}, "20 maps need as many goals, got a single ndarray"),
        ({"goals": [(3, 3)] * 20}, "array goals is none of maze, goal, cost; did you mean goal?"),
        ({"maze": np.ones((0, 5, 5))}, r"x.npz has shape \(0, 5, 5\), expected one map or more"),
        ({"maze": np.full((3, 5, 5), 2)}, "map 0 of x.npz: the map has values other than 0"),
        (
            {"cost": np.full((20, 7, 7), 1e9)},
            r"map 0 of x.npz: the cost .* is 1e\+09, expected 1e-0",
        ),
    ],
)
def test_mistakes_of_a_file_of_arrays(hvin, change, message):
    np.savez("x.npz", **{"maze": np.ones((20, 7, 7)), **change})
    _refused(hvin("label", "--maps=x.npz", "--out=out.npz"), message)


def _refused(ending, message):
    """By one sentence."""
    code, _, err = ending
    assert code == 2
    assert err.startswith("hvin label: ")
    assert re.search(message, err), err
    assert err.count("\n") == 1


@pytest.mark.parametrize("goal", [(3, 3), (3, 3, -1), [(3, 3)], [(3, 3, -1)] * 2])
def test_goals_of_all_shapes_by_either_way(hvin, goal):
    """In a file of arrays, or in one of their own; -1 stands for any orientation."""
    maps, goals = np.load("maps.npy"), np.array([goal] * 20)
    maps[:, 3] = 1
    np.save("maps.npy", maps)
    np.save("goals.npy", goals)
    np.savez("maps.npz", maze=maps, goal=goals)
    for words in (["--maps=maps.npz"], ["--maps=maps.npy", "--goals=goals.npy"]):
        assert hvin("label", *words, "--out=mine.npz")[::2] == (0, "")
        assert (load_mazes("mine.npz").train.goal.reshape(-1, 3) == (3, 3, -1)).all()


def test_splits_of_different_sizes(hvin, tmp_path):
    np.save("small.npy", np.ones((3, 5, 5)))
    np.save("valid.npy", np.load("maps.npy")[:5])
    words = ("label", "--maps=maps.npy", "--valid_maps=valid.npy", "--test_maps=small.npy")
    ending = hvin(*words, "--out=mine.npz")
    _refused(ending, "the train mazes have 7×7 cells, the test mazes 5×5: .* need padding")
    assert not (tmp_path / "mine.npz").exists()
    assert hvin(*words, "--pad", "--out=mine.npz")[::2] == (0, "")
    assert load_mazes("mine.npz").test.extent.tolist() == [[5, 5]] * 3


def test_plan_with_costs_and_several_goals(hvin, tmp_path):
    drawing = "#######\n#S9..G#\n#.#.#.#\n#...#G#\n#######\n"
    (tmp_path / "map.txt").write_text(drawing)
    code, _, err = hvin("plan", "map.txt", "--out=")
    assert code == 2
    assert err.startswith("hvin plan: diffdrive knows no costs: it was trained on maps where all")
    # A planner that has learned nothing: what it says of the best path is right all the same.
    news = get_mechanism("news")
    model = HighwayVIN(num_orientations=1, num_actions=4, terrain=True, hidden=4, num_blocks=2)
    settings, params = settings_of(model), init_params(model, jax.random.key(0))
    save_planner(tmp_path / "mine", Planner(settings, params, news))
    own = hvin_jax.tasks.from_text(drawing)
    plan = hvin_jax.load_planner("mine").plan(own.maze, own.goals, own.start, cost=own.cost)
    assert (plan.shortest, plan.least_cost) == (8, 8)
    assert tabular_mdp(own.maze, [[1, 5, 0]], mechanism=news, cost=own.cost).reward.min() < -8
    code, out, _ = hvin("plan", "map.txt", "--planner=mine", "--out=plan.png")
    assert code == 1 - plan.reached
    assert out.startswith("#######\n#S")
    np.save(tmp_path / "cost.npy", np.zeros((5, 7)))
    assert hvin("plan", "map.txt", "--planner=mine", "--cost=cost.npy")[::2] == (
        2,
        "hvin plan: the cost of the free cell (1, 1) is 0, expected 1e-06 to 1e+06\n",
    )


@pytest.mark.processes
def test_training_takes_the_file(hvin, tmp_path):
    """Of another mechanism than the configuration's, with costs and maps of two sizes."""
    hvin("label", "--maps=rooms", "--pad", "--mechanism=news", "--per_map=8", "--out=mine.npz")
    command = (
        "maze",
        *TINY,
        "--config.data.file=mine.npz",
        "--config.train.batch_size=2",
        "--config.train.num_steps=4",
        "--config.eval.every_steps=4",
        "--config.eval.batch_size=2",
        "--workdir=run",
        "--pictures",
    )
    code, out, err = run(*command, folder=tmp_path)
    assert code == 0, err
    assert "optimality rate" in out
    result = json.loads((tmp_path / "run/result.json").read_text())
    data, mazes = result["config"]["data"], load_mazes(tmp_path / "mine.npz")
    assert (data["mechanism"], data["size"]) == ("news", 6)
    assert data["train"] == len(mazes.train)
    assert data["test"] == result["test"]["mazes"]
    assert result["test"]["cost_ratio"] is None or result["test"]["cost_ratio"] >= 1
    planner = hvin_jax.load_planner(tmp_path / "run")
    assert planner.model.terrain
    assert planner.mechanism.name == "news"
    # Other mazes under the same name are another run.
    hvin("label", "--maps=rooms", "--pad", "--mechanism=news", "--seed=1", "--out=mine.npz")
    code, _, err = run(*command, folder=tmp_path)
    assert code == 1
    assert "config.data.digest: " in err
