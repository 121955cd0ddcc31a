"""The commands that are `hvin` by another name, in processes of their own."""

import pytest
from launching import run

from hvin_jax.tasks.files import load_mazes

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path):
    """With any number of workers; mazes of several chunks, so that two have something to do."""
    contents = []
    for workers in (1, 2):
        out = f"new/folder/{workers}.npz"
        code, printed, err = run(
            "make_mazes",
            "--size=9",
            "--train=1100",
            "--valid=5",
            "--test=4",
            "--seed=3",
            f"--workers={workers}",
            f"--out={out}",
            folder=tmp_path,
        )
        assert (code, err) == (0, "")  # no progress where there is no terminal
        assert printed.startswith(f"{out}: 1100 + 5 + 4 mazes of 9×9, diffdrive, seed 3, ")
        contents.append((tmp_path / out).read_bytes())
    assert contents[0] == contents[1]
    mazes = load_mazes(tmp_path / out)
    assert [len(mazes.train), len(mazes.valid), len(mazes.test)] == [1100, 5, 4]


def test_plan(tmp_path):
    (tmp_path / "map.txt").write_text("#####\n#S.G#\n#####\n")
    code, out, err = run("plan", "--map=map.txt", "--out=", folder=tmp_path)
    assert (code, err) == (0, "")
    assert "#S*G#\n" in out
    code, out, err = run("plan", "--map=gone.txt", folder=tmp_path)
    assert (code, out, err) == (2, "", "hvin plan: gone.txt: there is no such file\n")
