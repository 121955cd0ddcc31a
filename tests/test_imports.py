"""What importing the package brings along, and that what it exports is there."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# What only drawing, training, experiments and the Doom engine need.
HEAVY = ["matplotlib", "PIL", "orbax", "tqdm", "ml_collections", "tensorboardX", "vizdoom"]


@pytest.mark.processes
def test_importing_is_light():
    script = f"""
import json, sys
import hvin_jax, hvin_jax.tasks, hvin_jax.tasks.doom, hvin_jax.cli, hvin_jax.visual_planner
print(json.dumps([name for name in {HEAVY} if name in sys.modules]))
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(result.stdout) == []


@pytest.mark.parametrize(
    "name", ["hvin_jax", "hvin_jax.models", "hvin_jax.tasks", "hvin_jax.tasks.doom", "hvin_jax.cli"]
)
def test_exports_are_there(name):
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    for export in module.__all__:
        assert getattr(module, export) is not None


@pytest.mark.parametrize("name", ["hvin_jax.tasks.drawing", "hvin_jax.report.walks"])
def test_missing_packages_are_named(monkeypatch, name):
    for module in ("matplotlib", "PIL"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in (name, "hvin_jax.tasks._panels"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=r"needs \w+: pip install 'hvin_jax\[draw\]'$"):
        importlib.import_module(name)
