"""How long it takes to make mazes and to measure policies, start-up and writing included.

    python -m benchmarks.mazes [--json=FILE]

Needs about a minute and 300 MB of disk for temporary files. Prints the table that stands in
benchmarks/README.md.
"""

import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import app, flags

from benchmarks.harness import ROOT, Figure, report
from hvin_jax.tasks.files import load_mazes
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import SPL_RANGES, evaluate

_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_SPLITS = "25,000 / 5,000 / 5,000"


def main(argv: list[str]) -> None:
    """Measures, prints a Markdown table and writes it as JSON if asked to."""
    del argv
    figures: list[Figure] = []

    def add(name: str, began: float, goal: float | None = None) -> None:
        figures.append(Figure(name, time.perf_counter() - began, "s", goal))

    with tempfile.TemporaryDirectory() as folder:
        compact = f"{folder}/compact.npz"
        for size, file_format, limit in (
            (25, "compact", 30.0),
            (25, "npz", None),
            (15, "compact", None),
        ):
            out = compact if (size, file_format) == (25, "compact") else f"{folder}/other.npz"
            began = time.perf_counter()
            _command(f"--size={size}", f"--format={file_format}", f"--out={out}")
            add(f"make {_SPLITS} mazes, {size}×{size}, {file_format}", began, limit)
        began = time.perf_counter()
        counts = ("--train=10000", "--valid=0", "--test=0")
        _command("--size=25", "--costs=1:9", *counts, f"--out={folder}/costs.npz")
        add("make 10,000 mazes with costs from 1 to 9, 25×25, compact", began, 30.0)
        began = time.perf_counter()
        test = load_mazes(compact).test
        add(f"read and check {_SPLITS} mazes, 25×25, compact", began)
    for name, policy in _policies(test).items():
        began = time.perf_counter()
        evaluate(policy, test).by_range(SPL_RANGES[25])
        add(f"SR and OR of 5,000 mazes, 25×25, all starts, {name}", began, 5.0)
    report(figures, _JSON.value)


def _command(*arguments: str) -> None:
    """The whole command, from the start of Python to its end."""
    subprocess.run(
        [sys.executable, "-m", "experiments.make_mazes", *arguments],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )


def _policies(data: MazeData) -> dict[str, np.ndarray]:
    """Policies as networks produce them: faultless, faulty, untrained."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, data.mechanism.num_actions, size=data.label.shape, dtype=np.uint8)
    faulty = np.where(rng.random(data.label.shape) < 0.02, noise, data.label)
    return {"optimal policy": data.label, "2 % faults": faulty, "random policy": noise}


if __name__ == "__main__":
    app.run(main)
