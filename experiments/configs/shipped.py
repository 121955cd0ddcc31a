r"""Planners for all maps: MECHANISM, one recipe for the three that are shipped.

    python -m experiments.maze --config=experiments/configs/shipped.py:news --workdir=runs/news

Maps of 15×15, of families with short ways around walls and with long ones, so that kernels meet
with every arrangement of walls around a cell; other families are left to the test
(`experiments.generality`). All else is that of experiments/configs/dtvin.py.
"""

from ml_collections import ConfigDict

from experiments.configs.dtvin import get_config as dtvin_config

_FAMILIES = "protocol:4,obstacles:8,perfect:2,bordered:2,caves:1,rooms:1,thick_walls:1"


def get_config(mechanism: str = "") -> ConfigDict:
    """The configuration for a mechanism."""
    config = dtvin_config(f"{mechanism}-15")
    config.name = mechanism
    config.data.families = _FAMILIES
    config.data.seed = 300
    config.data.train = 10_000
    config.model.sharpness = 16.0
    return config
