import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.files import load_mazes

ROOT = pathlib.Path(__file__).parents[2]


def _run(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "experiments.make_mazes", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


SMALL = ("--size=9", "--train=1100", "--valid=5", "--test=4")


@pytest.mark.parametrize("file_format", ["compact", "npz"])
def test_same_seed_same_bytes(tmp_path, file_format):
    contents = []
    for workers in (1, 2):
        out = f"new/folder/{workers}.npz"
        arguments = (*SMALL, "--seed=3", f"--format={file_format}", f"--workers={workers}")
        result = _run(*arguments, f"--out={out}", folder=tmp_path)
        assert result.returncode == 0
        assert result.stderr == ""  # no progress bar where there is no terminal
        assert result.stdout.startswith(f"{out}: 1100 + 5 + 4 mazes of 9×9, diffdrive, seed 3, ")
        contents.append((tmp_path / out).read_bytes())
    assert contents[0] == contents[1]
    mazes = load_mazes(tmp_path / out)
    assert [len(mazes.train), len(mazes.valid), len(mazes.test)] == [1100, 5, 4]


def test_preview_of_other_shapes(tmp_path):
    result = _run(
        "--size=8x12",
        "--mechanism=moore",
        "--train=3",
        "--valid=0",
        "--test=2",
        "--min_decimation=0.2",
        "--max_decimation=0.4",
        "--out=mazes.npz",
        "--preview=mazes.png",
        folder=tmp_path,
    )
    assert result.returncode == 0
    assert result.stdout.splitlines()[1] == "mazes.png: 3 of them"
    mazes = load_mazes(tmp_path / "mazes.npz")
    assert mazes.train.maze.shape == (3, 8, 12)
    assert mazes.mechanism.name == "moore"
    assert mazes.decimation == (0.2, 0.4)
    assert np.bincount(mazes.train.label.ravel()).size == 8
    with Image.open(tmp_path / "mazes.png") as image:
        assert image.size[0] > 800


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size=nine", "--out=a.npz"), "make_mazes: --size=nine is neither a side, such as 15"),
        (("--size=3", "--out=a.npz"), "make_mazes: a maze of 3×3 has no room"),
        (("--size=5", "--out=a.npz"), "make_mazes: too few distinct maps: "),
        (("--min_decimation=0.5", "--max_decimation=0.2", "--out=a.npz"), "the lower one first"),
        ((*SMALL, "--out=."), "make_mazes: . is a folder; give the name of a file"),
        ((*SMALL, "--out=file/a.npz"), "make_mazes: can't write file: File exists"),
        ((*SMALL, "--out=a.npz", "--preview=a.jpg"), "--preview=a.jpg does not end in .png"),
        ((*SMALL, "--out=a.npz", "test=3"), "make_mazes: unexpected argument 'test=3'"),
        (
            (*SMALL, "--out=a.npz", "--tset=3"),
            "Unknown command line flag 'tset'. Did you mean: test",
        ),
        (SMALL, "Flag --out must have a value"),
        (("--train=-1", "--out=a.npz"), "flag --train=-1: -1 is not a non-negative integer"),
        (("--mechanism=legs", "--out=a.npz"), "value should be one of <diffdrive|moore|news>"),
    ],
)
def test_mistakes_end_with_a_sentence(tmp_path, arguments, message):
    (tmp_path / "file").touch()
    result = _run(*arguments, folder=tmp_path)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device to write to")
def test_a_full_disk(tmp_path):
    """The temporary file is a link to a device that is always full."""
    script = (
        "import os, sys; from hvin_jax.tasks import _npz\n"
        "npz.open = lambda path, mode: open('/dev/full', mode)\n"
        "from experiments import make_mazes; make_mazes._check_writable = lambda path: None\n"
        "from absl import app; app.run(make_mazes.main)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *SMALL, "--out=a.npz", "--workers=1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr == "make_mazes: can't write a.npz: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


def test_help_helps(tmp_path):
    text = _run("--help", folder=tmp_path).stdout
    for word in ("--size", "--preview", "--workers", "python -m experiments.make_mazes --size=15"):
        assert word in text
