"""The command `hvin`, in this process: what it does, says and returns."""

import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import hvin_jax
from hvin_jax import _files
from hvin_jax.cli import main, mazes
from hvin_jax.tasks.files import load_mazes
from hvin_jax.tasks.generation import FAMILIES

DRAWING = "#######\n#S....#\n#.##..#\n#..#.G#\n#######\n"
NO_PATH = "#######\n#S..#.#\n#.##.##\n#..#.G#\n#######\n"


@pytest.fixture
def hvin(capsys, tmp_path, monkeypatch):
    """Runs the command in a folder with some maps: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    maps = {"map": DRAWING, "no_path": NO_PATH}
    maps["bare"] = DRAWING.replace("S", ".").replace("G", ".")
    for name, text in maps.items():
        (tmp_path / f"{name}.txt").write_text(text)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        return end.value.code or 0, *capsys.readouterr()

    return run


def test_plan_draws_and_says_what_it_did(hvin, tmp_path):
    code, out, err = hvin("plan", "map.txt")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "#S****#",
        "#.##.*#",
        "#..#.G#",
        "#######",
        "",
        "diffdrive: the planner reaches the goal in 7 actions, as few as possible",
        "plan.png",
    ]
    with Image.open(tmp_path / "plan.png") as image:
        assert image.width > 500
    # The way it was once called.
    assert hvin("plan", "--map=map.txt", "--out=") == (0, out.removesuffix("plan.png\n"), "")


def test_plan_from_the_standard_input(hvin, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.StringIO(DRAWING))
    code, out, err = hvin("plan", "-", "--out=", "--goal=3,5,N", "--start=1, 1,E")
    assert (code, err) == (0, "")
    assert "in 9 actions" in out
    assert not (tmp_path / "plan.png").exists()


def test_plan_without_a_path(hvin, tmp_path):
    """No path is drawn, and what the planner did is not called one; with a planner of one's own."""
    hvin_jax.save_planner(tmp_path / "mine", hvin_jax.load_planner("diffdrive-15"))
    code, out, _ = hvin("plan", "no_path.txt", "--planner=mine", "--out=")
    assert code == 1
    assert out == f"{NO_PATH}\nmine: there is no path from the start to the goal\n"


def test_plan_without_matplotlib(hvin, tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] in ("matplotlib", "PIL"):
            monkeypatch.setitem(sys.modules, name, None)
    for name in ("hvin_jax.tasks.drawing", "hvin_jax.tasks._panels", "hvin_jax.report.plans"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    code, out, err = hvin("plan", "map.txt")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == (
        "no picture was drawn, since drawing needs matplotlib: pip install 'hvin_jax[draw]'"
    )
    (tmp_path / "map.png").write_bytes(b"")
    assert hvin("plan", "map.png")[::2] == (
        2,
        "hvin plan: reading a map from an image needs pillow: pip install 'hvin_jax[draw]'\n",
    )
    code, _, err = hvin("mazes", "--out=a.npz", "--preview=a.png")
    assert (code, err) == (
        2,
        "hvin mazes: drawing needs matplotlib: pip install 'hvin_jax[draw]'\n",
    )


def test_plan_outside_of_what_was_measured(hvin, tmp_path):
    (tmp_path / "long.txt").write_text(f"{'#' * 28}\n#SG{'.' * 24}#\n{'#' * 28}\n")
    code, out, err = hvin("plan", "long.txt", "--planner=diffdrive-25", "--out=")
    assert code == 0
    assert "\ndiffdrive-25: the planner reaches" in out
    assert err.startswith("hvin plan: diffdrive-25 was measured on maps of up to 25×25, and this")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say which MAP to plan on"),
        (["map.txt", "--map=map.txt"], "one at a time"),
        (["gone.txt"], "gone.txt: there is no such file"),
        (["map.txt", "--goal=1,1,1,1"], "the goal is (1, 1, 1, 1), expected whole numbers"),
        (["map.txt", "--goal=1,1,Q"], "or one of N, E, W, S"),
        (["map.txt", "--start=0,0"], "the start (0, 0) is on a wall"),
        (["map.txt", "--planner=nobody"], "nobody: no planner there"),
        (["map.txt", "--mechanism=legs"], "'legs' is none of diffdrive, moore, news"),
        (["map.txt", "--mechanism=knight.json"], "a mechanism of your own comes with the planner"),
        (["map.txt", "--planner=diffdrive-15", "--mechanism=news"], "is for diffdrive, not for"),
        (["map.txt", "--cell=0"], "--cell: 0 is not a whole number of 1 or more"),
        (["bare.txt"], "the map has no S: say where the start is by --start=ROW,COLUMN"),
        (["map.txt", "--out=x.docx"], "--out=x.docx does not end in .png or .svg"),
        (["map.txt", "--out=gone/x.png"], "can't use gone/"),
        (["map.txt", "--strat=1,1"], "there is no option --strat; did you mean --start?"),
        (["map.txt", "--pl=news"], "there is no option --pl; did you mean --planner?"),
        (["map.txt", "surplus"], "unexpected argument 'surplus': options begin with --"),
    ],
)
def test_mistakes_of_plan(hvin, arguments, message):
    code, _, err = hvin("plan", *arguments)
    assert code == 2
    assert err.startswith("hvin plan: ")
    assert message in err
    assert err.count("\n") == 1


SMALL = ("--size=9", "--train=11", "--valid=5", "--test=4", "--workers=1")


def test_a_drawing_that_is_no_text(hvin, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\udcff##"))
    code, _, err = hvin("plan", "-")
    assert (code, err) == (
        2,
        "hvin plan: the standard input is not a text in UTF-8, as a drawing is\n",
    )


@pytest.mark.processes
def test_a_reader_that_has_seen_enough(tmp_path):
    (tmp_path / "map.txt").write_text(DRAWING)
    words = [sys.executable, "-m", "hvin_jax", "plan", "map.txt", "--out="]
    process = subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 128 + signal.SIGPIPE


def test_mazes_of_other_shapes_with_a_preview(hvin, tmp_path):
    code, out, err = hvin(
        "mazes",
        "--size=8x12",
        "--mechanism=moore",
        "--train=3",
        "--valid=0",
        "--test=2",
        "--min_decimation=0.2",
        "--max_decimation=0.4",
        "--out=new/mazes.npz",
        "--preview=mazes.png",
    )
    assert (code, err) == (0, "")
    assert out.startswith("new/mazes.npz: 3 + 0 + 2 mazes of 8×12, moore, seed 0, ")
    assert out.splitlines()[1] == "mazes.png: 3 of them"
    data = load_mazes(tmp_path / "new/mazes.npz")
    assert data.train.maze.shape == (3, 8, 12)
    assert data.mechanism.name == "moore"
    assert data.decimation == (0.2, 0.4)
    assert np.bincount(data.train.label.ravel()).size == 8
    with Image.open(tmp_path / "mazes.png") as image:
        assert image.size[0] > 800


def test_mazes_of_families(hvin, tmp_path):
    families = "--families=caves:2,rooms,bordered"
    code, out, err = hvin("mazes", *SMALL, families, "--out=a.npz")
    assert (code, err) == (0, "")
    assert out.startswith("a.npz: 11 + 5 + 4 mazes of caves:2,rooms,bordered, 9×9, diffdrive, seed")
    data = load_mazes(tmp_path / "a.npz")
    assert data.families == "caves:2,rooms,bordered"
    assert data.train.spl.shape == (11, 9, 9, 4)
    out = hvin("mazes", "--help")[1]
    for name in (*FAMILIES, "bordered"):
        assert f"\n  {name} " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size=nine", "--out=a.npz"), "--size=nine is neither a side, such as 15"),
        (("--size=3", "--out=a.npz"), "a maze of 3×3 has no room"),
        (("--size=5", "--out=a.npz", "--workers=1"), "too few distinct maps: "),
        (("--min_decimation=0.5", "--max_decimation=0.2", "--out=a.npz"), "the lower one first"),
        (("--max_decimation=1.5", "--out=a.npz"), "expected two probabilities"),
        (
            ("--families=caverns", "--out=a.npz"),
            "unknown family 'caverns': expected one of",
        ),
        (("--families=caves:x", "--out=a.npz"), "the weight of caves is 'x', expected a number"),
        (("--families=caves", "--size=6", "--out=a.npz"), "both sides must be at least 7"),
        (("--families=caves", "--min_decimation=0.5", "--out=a.npz"), "leave it out with --famil"),
        ((*SMALL, "--out=."), ". is a folder; give the name of a file"),
        ((*SMALL, "--out=map.txt/a.npz"), "can't use map.txt: File exists"),
        ((*SMALL, "--out=a.npz", "--preview=a.jpg"), "--preview=a.jpg does not end in .png"),
        ((*SMALL, "--out=a.npz", "test=3"), "unexpected argument 'test=3'"),
        ((*SMALL, "--out=a.npz", "--tset=3"), "there is no option --tset; did you mean --test?"),
        (SMALL, "the following arguments are required: --out"),
        (("--train=-1", "--out=a.npz"), "--train: -1 is not a whole number of 0 or more"),
        (("--mechanism=legs", "--out=a.npz"), "invalid choice: 'legs' (choose from"),
    ],
)
def test_mistakes_of_mazes(hvin, tmp_path, arguments, message):
    before = sorted(tmp_path.iterdir())
    code, _, err = hvin("mazes", *arguments)
    assert code == 2
    assert err.startswith("hvin mazes: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_nothing_beside_the_file_is_touched(hvin, tmp_path):
    (tmp_path / "a.npz.test").write_text("mine")
    assert hvin("mazes", *SMALL, "--out=a.npz")[0] == 0
    assert (tmp_path / "a.npz.test").read_text() == "mine"


def test_a_full_disk(hvin, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mazes, "check_writable", lambda path: None)
    monkeypatch.setattr(_files.os, "fsync", full)
    before = sorted(tmp_path.iterdir())
    code, _, err = hvin("mazes", *SMALL, "--out=a.npz")
    assert (code, err) == (2, "hvin mazes: can't use a.npz: No space left on device\n")
    assert sorted(tmp_path.iterdir()) == before


def test_progress_on_a_terminal(hvin, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert hvin("mazes", *SMALL, "--out=a.npz")[0] == 0
    assert terminal.getvalue() == "\r20 of 20 mazes\r\033[K"


def test_help_and_version(hvin):
    for words, expected in (
        ((), ("hvin plan my_maze.txt", "--version")),
        (("plan",), ("MAP", "--cell N", "hvin plan my_maze.txt", "exit code: 0 if")),
        (("mazes",), ("--size", "--preview", "hvin mazes --size=15 --out=data/mazes15.npz")),
    ):
        code, out, _ = hvin(*words, "--help")
        assert code == 0
        assert all(text in out for text in expected)
    assert hvin("--version") == (0, f"hvin_jax {hvin_jax.__version__}\n", "")
    what = "hvin plan, mazes, label or play"
    assert hvin()[::2] == (2, f"hvin: say what to do: {what}, see hvin --help\n")
    assert hvin("dance")[0] == 2
    assert "no option --verison; did you mean --version?" in hvin("--verison")[2]
