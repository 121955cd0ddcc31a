"""A highway VIN that plans where cells have costs, in minutes on 2 CPU cores.

    python -m experiments.maze --config=experiments/configs/terrain.py

15×15 mazes of all densities, four moves; entering a cell costs a number from 1 to 9. Latent actions
start as the agent's moves, and the label of the goal is left out. What came out: docs/costs.md.
"""

from ml_collections import ConfigDict

from experiments.configs.base import base_config, use_fast_recipe


def get_config() -> ConfigDict:
    """60 blocks of two layers."""
    config = base_config(name="terrain", model="highway_vin", size=15)
    config.data.mechanism = "news"
    config.data.costs = "1:9"
    config.data.seed = 2
    config.data.train, config.data.valid, config.data.test = 8000, 500, 1000
    config.model.latent_actions, config.model.kernel_size = 10, 3
    config.model.num_blocks, config.model.block_depth = 60, 2
    config.model.start_as_moves = True
    use_fast_recipe(config)
    config.loss.leave_out_goals = True
    config.optimizer.learning_rate = 1e-3
    config.train.num_steps = 1500
    config.train.symmetries = True
    config.eval.every_steps = 250
    config.eval.batch_size = 64
    return config
