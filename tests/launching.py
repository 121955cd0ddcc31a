"""Runs the commands of `experiments` in processes of their own, on a tiny configuration."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
TINY = (
    f"--config={ROOT}/experiments/configs/quickstart.py",
    "--config.data.size=7",
    "--config.data.train=64",
    "--config.data.valid=16",
    "--config.data.test=16",
    "--config.model.num_blocks=2",
    "--config.model.block_depth=2",
    "--config.model.latent_actions=4",
    "--config.model.hidden=4",
    "--config.train.batch_size=8",
    "--config.train.num_steps=60",
    "--config.eval.every_steps=15",
    "--config.eval.batch_size=16",
    "--cpu_devices=2",
)


def start(command, *arguments, folder, **environment):
    """Starts `python -m experiments.COMMAND` in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", f"experiments.{command}", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(command, *arguments, folder, **environment):
    """Runs it to its end: (exit code, stdout, stderr)."""
    process = start(command, *arguments, folder=folder, **environment)
    out, err = process.communicate()
    return process.returncode, out, err
