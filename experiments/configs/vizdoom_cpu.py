r"""The paper's 3D study at a size that CPUs can train: MODEL-DEPTH.

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:highway_vin-100
    python -m experiments.vizdoom --config=experiments/configs/vizdoom_cpu.py:vin-40

As experiments/configs/vizdoom_paper.py, but with 40 latent actions (GPPN: 50 hidden units), 2,000 /
500 / 1,000 mazes and 2,000 steps of Adam (3e-3, cosine schedule, gradients clipped to a norm of 1).
Every optimal action is right, and states without a path to the goal are left out of the loss. The
planner trains on the real maps for the first 8 epochs (496 steps), while perception learns them.
"""

from ml_collections import ConfigDict

from experiments.configs import vizdoom_paper
from experiments.configs.base import use_fast_recipe


def get_config(cell: str = "") -> ConfigDict:
    """The configuration of one cell of the study."""
    config = vizdoom_paper.get_config(cell)
    config.name = config.name.replace("paper", "cpu")
    if config.model.kind == "gppn":
        config.model.hidden = 50
    else:
        config.model.latent_actions = 40
    config.data.train, config.data.valid, config.data.test = 2000, 500, 1000
    use_fast_recipe(config)
    config.perception.true_map_epochs = 8
    config.train.num_steps = 2000
    config.eval.every_steps = 250
    return config
