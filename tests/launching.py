"""Runs the commands of `experiments` in processes of their own, on a tiny configuration."""

import contextlib
import functools
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
from absl import flags
from warm_start import WarmStarter

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
    "--config.train.symmetries=True",
    "--config.eval.every_steps=15",
    "--config.eval.batch_size=16",
    "--cpu_devices=2",
    "--nopictures",
)


# What may differ between two runs of one configuration.
CLOCK = {"wall_seconds", "sittings"}


_starter = functools.cache(WarmStarter)


def start(command, *arguments, folder, prefix=(), package="experiments", log=None, **environment):
    """Starts `python -m PACKAGE.COMMAND` in a folder.

    Args:
      command: which.
      *arguments: of the command.
      folder: where.
      prefix: is put before the command, for instance to be in another network.
      package: of the command.
      log: a file for what it prints, instead of pipes; then it is started by itself, not by a fork.
      **environment: variables to set.
    """
    module = f"{package}.{command}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment}
    if log is None:
        starter = _starter(tuple(prefix))
        return starter.start(module, arguments, folder=folder, environment=environment)
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", module, *arguments],
        cwd=folder,
        env=environment,
        stdout=log,
        stderr=log,
    )


def run(command, *arguments, folder, **environment):
    """Runs it to its end: (exit code, stdout, stderr)."""
    process = start(command, *arguments, folder=folder, **environment)
    out, err = process.communicate()
    return process.returncode, out, err


@contextlib.contextmanager
def loaded(command):
    """The module of a command, for this process; its flags are there for as long as this lasts."""
    name = f"experiments.{command}"
    module = importlib.import_module(name)
    flags.FLAGS.mark_as_parsed()
    yield module
    for flag in [*flags.FLAGS.flags_by_module_dict()[name]]:  # the list shrinks meanwhile
        delattr(flags.FLAGS, flag.name)
    del sys.modules[name]


# In place of experiments/configs/cpu.py: whatever the cell, a VIN that is trained in a moment.
_TINY_CELLS = """
from experiments.configs.base import base_config

def get_config(cell):
    config = base_config(name=cell, model="vin", size=7)
    config.data.update(train=64, valid=16, test=16)
    config.model.update(depth=2, latent_actions=4, hidden=4)
    config.train.update(batch_size=8, num_steps=60)
    config.eval.update(every_steps=15, batch_size=16)
    return config
"""


def copy_commands(folder):
    """Copies the commands into a folder, where the cells of the cpu size are tiny."""
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    for package in ("hvin_jax", "benchmarks"):
        (folder / package).symlink_to(ROOT / package)
    (folder / "experiments/configs/cpu.py").write_text(_TINY_CELLS)


def wait_for(condition, process, seconds=120):
    """Waits until something has happened, the process has ended or the time is up."""
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def _outcome(folder, but):
    result = json.loads((folder / "result.json").read_text())
    with np.load(folder / "planner" / "weights.npz") as weights:
        arrays = {name: weights[name] for name in weights.files}
    kept = {name: value for name, value in result.items() if name not in but}
    return kept, (folder / "metrics.jsonl").read_text(), arrays


def assert_same_outcome(folder, reference, but=frozenset()):
    """Two finished runs agree to the last bit; `but` names what else may differ in the result."""
    result, metrics, arrays = _outcome(folder, CLOCK | but)
    expected_result, expected_metrics, expected_arrays = _outcome(reference, CLOCK | but)
    assert result == expected_result
    assert metrics == expected_metrics
    assert arrays.keys() == expected_arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected_arrays[name])
