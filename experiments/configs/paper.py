r"""Each row of the paper's 2D tables at full size: MODEL-SIZE-DEPTH.

    python -m experiments.maze --config=experiments/configs/paper.py:highway_vin-15-100
    python -m experiments.maze --config=experiments/configs/paper.py:highway_vin-25-300

MODEL is vin, gppn, highway_network or highway_vin; SIZE 15 or 25; DEPTH what the tables have, for
15: 20 40 60 80 100 120 160 200, for 25: 30 60 90 120 150 180 240 300 (highway models from the
second on). 25,000 / 5,000 / 5,000 mazes, RMSprop 1e-3, batch 32, 30 epochs = 23,430 steps; the
highway models have 20 blocks (15×15) or 30 (25×25). Three seeds: `--config.seed=0`, 1, 2.

For GPUs. On 2 CPU cores a step takes seconds at the deepest sizes (benchmarks/README.md), so a run
takes days; experiments/configs/cpu.py has the same study at a size for CPUs. The number of latent
actions, 100, is the one that the paper's entropy and memory figures fit (it does not name it); the
baseline code has 600: `--config.model.latent_actions=600`.
"""

from ml_collections import ConfigDict

from experiments.configs.base import base_config, parse_cell, set_depth


def get_config(cell: str = "") -> ConfigDict:
    """The configuration of one row."""
    model, size, depth = parse_cell(cell, "paper.py:highway_vin-15-100")
    config = base_config(name=f"paper-{cell}", model=model, size=size)
    set_depth(config, depth)
    return config
