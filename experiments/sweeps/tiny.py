r"""Four runs of some seconds each, to see how a sweep goes.

    python -m experiments.sweep --config=experiments/sweeps/tiny.py

The quickstart's highway VIN on 9×9 mazes, with 8 and 16 layers and two seeds each: 300 steps, of
which one cannot expect much. Each trial gets one CPU core.
"""

from experiments.grids import Sweep


def get_config() -> Sweep:
    """Two depths, two seeds."""
    return Sweep(
        folder="tiny",
        base="experiments/configs/quickstart.py",
        grids=[{"model.block_depth": [2, 4]}],
        settings={
            "data.size": 9,
            "data.train": 2000,
            "data.valid": 100,
            "data.test": 200,
            "model.num_blocks": 4,
            "train.num_steps": 300,
            "eval.every_steps": 100,
        },
        seeds=(0, 1),
    )
