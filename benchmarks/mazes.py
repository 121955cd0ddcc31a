"""How long it takes to make mazes and to measure policies, start-up and writing included.

    python -m benchmarks.mazes [--json=FILE]

Needs about a minute and 300 MB of disk for temporary files. Prints the table that stands in
benchmarks/README.md.
"""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import app, flags

from hvin_jax.tasks.files import load_mazes
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import SPL_RANGES, evaluate

_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_ROOT = pathlib.Path(__file__).resolve().parents[1]
_SPLITS = "25,000 / 5,000 / 5,000"


def main(argv: list[str]) -> None:
    """Measures, prints a Markdown table and writes it as JSON if asked to."""
    del argv
    rows: list[tuple[str, float, float | None]] = []
    with tempfile.TemporaryDirectory() as folder:
        compact = f"{folder}/compact.npz"
        for size, file_format, limit in (
            (25, "compact", 30.0),
            (25, "npz", None),
            (15, "compact", None),
        ):
            out = compact if (size, file_format) == (25, "compact") else f"{folder}/other.npz"
            seconds = _command(f"--size={size}", f"--format={file_format}", f"--out={out}")
            rows.append((f"make {_SPLITS} mazes, {size}×{size}, {file_format}", seconds, limit))
        began = time.perf_counter()
        test = load_mazes(compact).test
        rows.append((f"read and check {_SPLITS} mazes, 25×25, compact", _since(began), None))
    for name, policy in _policies(test).items():
        began = time.perf_counter()
        evaluate(policy, test).by_range(SPL_RANGES[25])
        rows.append((f"SR and OR of 5,000 mazes, 25×25, all starts, {name}", _since(began), 5.0))
    print(
        f"commit {_commit()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end=""
    )
    print(f"numpy {np.__version__}\n\n| | seconds | goal |\n|---|---|---|")
    for name, seconds, limit in rows:
        print(f"| {name} | {seconds:.1f} | {'' if limit is None else f'≤ {limit:.0f}'} |")
    if _JSON.value:
        report = {
            "commit": _commit(),
            "cores": os.cpu_count(),
            "rows": [{"name": n, "seconds": s, "goal": g} for n, s, g in rows],
        }
        pathlib.Path(_JSON.value).write_text(json.dumps(report, indent=2, ensure_ascii=False))


def _command(*arguments: str) -> float:
    """Seconds of the whole command, from the start of Python to its end."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "experiments.make_mazes", *arguments],
        check=True,
        cwd=_ROOT,
        stdout=subprocess.DEVNULL,
    )
    return _since(began)


def _policies(data: MazeData) -> dict[str, np.ndarray]:
    """Policies as networks produce them: faultless, faulty, untrained."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, data.mechanism.num_actions, size=data.label.shape, dtype=np.uint8)
    faulty = np.where(rng.random(data.label.shape) < 0.02, noise, data.label)
    return {"optimal policy": data.label, "2 % faults": faulty, "random policy": noise}


def _since(began: float) -> float:
    return time.perf_counter() - began


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    result = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


if __name__ == "__main__":
    app.run(main)
