"""The commands that are `hvin` by another name, in processes of their own."""

import pathlib
import time

import pytest
from launching import run, start

from hvin_jax.tasks import MazeLaw, get_mechanism, make_mazes, save_mazes

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_same_seed_same_bytes(tmp_path):
    """With several workers, and several chunks for them, the file that one process makes."""
    out = "new/folder/mazes.npz"
    size = ("--size=9", "--train=1100", "--valid=5", "--test=4", "--seed=3")
    code, printed, err = run("make_mazes", *size, "--workers=2", f"--out={out}", folder=tmp_path)
    assert (code, err) == (0, "")  # no progress where there is no terminal
    assert printed.startswith(f"{out}: 1100 + 5 + 4 mazes of 9×9, diffdrive, seed 3, ")
    law, mechanism = MazeLaw((9, 9)), get_mechanism("diffdrive")
    mazes = make_mazes(law=law, mechanism=mechanism, train=1100, valid=5, test=4, seed=3)
    save_mazes(tmp_path / "here.npz", mazes)
    assert (tmp_path / out).read_bytes() == (tmp_path / "here.npz").read_bytes()


POOL = """
import os, time
from hvin_jax.tasks.datasets import _in_order

def pid(number):
    return os.getpid()

if __name__ == "__main__":
    pids = _in_order(pid, workers=2)
    print(next(pids), flush=True)
    time.sleep(100)
"""


@pytest.mark.slow
def test_workers_end_with_whoever_gave_them_work(tmp_path):
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe/pool.py").write_text(POOL)
    process = start("pool", package="probe", folder=tmp_path)
    worker = pathlib.Path("/proc", process.stdout.readline().strip(), "stat")
    assert worker.exists()
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    end = time.monotonic() + 20
    while worker.exists():
        assert time.monotonic() < end, "a worker lives on"
        time.sleep(0.01)


def test_plan(tmp_path):
    (tmp_path / "map.txt").write_text("#####\n#S.G#\n#####\n")
    code, out, err = run("plan", "--map=map.txt", "--out=", folder=tmp_path)
    assert (code, err) == (0, "")
    assert "#S*G#\n" in out
