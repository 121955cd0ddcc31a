r"""What blocks see: 60 layers of a highway VIN in few long or many short blocks, 15×15.

    python -m experiments.sweep --config=experiments/sweeps/blocks.py

The paper names networks by their number of layers, N = N_B · N_b. Here N stays and the blocks
change, with and without exploration, and with temperatures that must stay positive. Our recipe, 40
latent actions; about four minutes a run on one CPU core. Results: results/blocks.
"""

from experiments.configs.base import FAST_RECIPE
from experiments.grids import Sweep

# N_B blocks of N_b layers.
_SHAPES = ((4, 15), (12, 5), (20, 3), (30, 2))
_KINDS: dict[str, dict[str, object]] = {
    "explores": {},
    "positive": {"model.positive_temperatures": True},
    "greedy": {"model.value_exploration": False},
}
_VARIANTS: dict[str, dict[str, object]] = {
    f"{blocks}x{depth}_{kind}": {
        "model.num_blocks": blocks,
        "model.block_depth": depth,
        **changes,
    }
    for kind, changes in _KINDS.items()
    for blocks, depth in _SHAPES
}


def get_config() -> Sweep:
    """Each shape with each kind of block."""
    return Sweep(
        folder="blocks",
        base="experiments/configs/cpu.py:highway_vin-15-60",
        grids=[{"variant": list(_VARIANTS)}],
        settings={
            **FAST_RECIPE,
            "data.train": 8000,
            "data.valid": 500,
            "data.test": 2000,
            "train.symmetries": True,
            "train.num_steps": 1200,
            "eval.every_steps": 300,
            "eval.valid_mazes": 500,
        },
        variants=_VARIANTS,
        seeds=(0, 1),
    )
