r"""The paper's 2D study at a size that CPUs can train: MODEL-SIZE-DEPTH.

    python -m experiments.maze --config=experiments/configs/cpu.py:highway_vin-15-100

As experiments/configs/paper.py, but with 40 latent actions (GPPN: 50 hidden units), 4,000 steps
instead of 23,430, validation on 1,000 mazes every 500 steps, and states without a path to the goal
(walls above all) left out of the loss, which learns faster. VINs and highway networks of more than
40 layers are given up when their policy was constant in four validations in a row, or when the 50
steps before one were not finite.

On 2 CPU cores with nothing else to do, highway_vin-15-100 makes about 6 steps a second. Results:
RESULTS.md.
"""

from ml_collections import ConfigDict

from experiments.configs.base import base_config, parse_cell, set_depth


def get_config(cell: str = "") -> ConfigDict:
    """The configuration of one cell of the study."""
    model, size, depth = parse_cell(cell, "cpu.py:highway_vin-15-100")
    config = base_config(name=f"cpu-{cell}", model=model, size=size)
    set_depth(config, depth)
    if model == "gppn":
        config.model.hidden = 50
    else:
        config.model.latent_actions = 40
    config.loss.walls = False
    config.train.num_steps = 4000
    if model in ("vin", "highway_network") and depth > 40:
        config.train.stop_after_collapses = 4
    config.eval.every_steps = 500
    config.eval.valid_mazes = 1000
    return config
