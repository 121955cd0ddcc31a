r"""Each row of the paper's 3D table at full size: MODEL-DEPTH.

    python -m experiments.vizdoom --config=experiments/configs/vizdoom_paper.py:highway_vin-100

MODEL is vin, gppn, highway_network or highway_vin; DEPTH 40, 100 or 200, of which the paper reports
the best for each model. Mazes of 15×15, 25,000 / 5,000 / 5,000 of them, and the protocol of
experiments/configs/paper.py; perception learns together with the planner. For GPUs.
"""

from ml_collections import ConfigDict

from experiments.configs.base import base_config, parse_cell, set_depth

DEPTHS = (40, 100, 200)


def get_config(cell: str = "") -> ConfigDict:
    """The configuration of one row."""
    model, size, depth = parse_cell(cell, "vizdoom_paper.py:highway_vin-100", size=15)
    config = base_config(name=f"vizdoom-paper-{model}-{depth}", model=model, size=size)
    set_depth(config, depth)
    del config.train.symmetries  # views can't be mirrored

    config.perception = ConfigDict()
    config.perception.channels = (32, 64)  # of the two convolutions of a view
    config.perception.features = 64  # of a view
    config.perception.hidden = 64  # channels over the grid
    config.perception.learning = "joint"  # from map and policy; or map: from the map; or frozen
    config.perception.true_map_epochs = 0  # so long the planner trains on the real maps
    config.perception.weights = ""  # a run whose perception to start from
    config.loss.map_weight = 1.0
    config.optimizer.warmup_steps = 100  # RMSprop's first steps throw perception far off
    return config
