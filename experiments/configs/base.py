"""Every setting there is, with the protocol's value: the configurations beside it change some.

Not a recipe itself. Settings are changed on the command line too, for instance
`--config.model.block_depth=10`.
"""

from typing import Any

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from hvin_jax.models import MODELS, default_settings

# What the task decides, not the configuration.
_OF_THE_TASK = ("num_orientations", "num_actions", "moves", "terrain")
# The settings of each kind of model, with their defaults.
MODEL_SETTINGS: dict[str, dict[str, Any]] = {
    kind: {k: x for k, x in default_settings(kind).items() if k not in _OF_THE_TASK}
    for kind in MODELS
}
# Highway blocks of the paper for each maze size.
NUM_BLOCKS = {15: 20, 25: 30}


def base_config(*, name: str, model: str, size: int) -> ConfigDict:
    """The protocol of the paper for a model and a maze size.

    Args:
      name: of the configuration.
      model: one of `MODEL_SETTINGS`.
      size: side of the mazes.
    """
    if model not in MODEL_SETTINGS:
        raise ValueError(
            f"unknown model {model!r}: expected one of {', '.join(sorted(MODEL_SETTINGS))}"
        )
    config = ConfigDict()
    config.name = name
    config.seed = 0  # of parameters, noise and the order of the data

    config.data = ConfigDict()
    # A file of mazes, which also says how the agent moves; without one they are made from what
    # follows.
    config.data.file = ""
    config.data.mechanism = "diffdrive"
    config.data.size = size
    config.data.train = 25000
    config.data.valid = 5000
    config.data.test = 5000
    config.data.seed = 0
    config.data.min_decimation = 0.0
    config.data.max_decimation = 1.0
    config.data.families = ""  # such as "caves:2,rooms:1", in place of the protocol's mazes
    config.data.costs = ""  # such as "1:9": entering a cell costs a number between these
    config.data.more_goals = 0  # besides the one that each maze has; any of them counts
    config.data.any_orientation = False  # whether it matters not how the agent faces at a goal

    # All settings of all models are there, so that --config.model.kind may change the kind; those
    # of other kinds are None, and are left alone.
    config.model = ConfigDict({"kind": model})
    for of_kind in MODEL_SETTINGS.values():
        for name, default in of_kind.items():
            config.model[name] = MODEL_SETTINGS[model].get(name, placeholder(type(default)))
    if config.model.num_blocks:
        config.model.num_blocks = NUM_BLOCKS.get(size, 20)

    config.loss = ConfigDict()
    config.loss.walls = True  # count wall cells too, whose labels are noise
    config.loss.any_optimal = False  # accept every optimal action, not only the label
    config.loss.long_paths = 0.0  # how much more states far from the goal count
    config.loss.leave_out_goals = False  # whether the goal's own label does not count
    config.loss.policies_every = 0  # adaptive highway loss: also after each so many layers

    config.optimizer = ConfigDict()
    config.optimizer.name = "rmsprop"  # any optimiser of optax
    config.optimizer.learning_rate = 1e-3
    config.optimizer.clip_norm = 40.0  # 0 does not clip
    config.optimizer.plain_norm = False  # let norms overflow; clipped gradients are then zero
    config.optimizer.schedule = "constant"  # or cosine, linear
    config.optimizer.warmup_steps = 0

    config.train = ConfigDict()
    config.train.batch_size = 32  # over all devices
    config.train.num_epochs = 30
    config.train.num_steps = 0  # if not 0, instead of epochs
    config.train.weights = ""  # begin with those of a planner: its folder or name; "": at random
    config.train.symmetries = False  # turn and mirror mazes at random
    config.train.feed = "auto"  # data live on the device, or are streamed: device, stream
    config.train.skip_not_finite = False  # skip and count steps that are not finite, or stop
    config.train.stop_after_collapses = 0  # give up after so many constant policies in a row

    config.eval = ConfigDict()
    config.eval.batch_size = 0  # 0: that of training
    config.eval.every_steps = 0  # 0: validate after each epoch
    config.eval.valid_mazes = 0  # validate on so many of the mazes; 0: on all
    config.eval.select = "optimality"  # the best model by optimality or success rate
    return config


# A recipe that learns faster than the protocol's: what it changes.
FAST_RECIPE: dict[str, Any] = {
    "loss.walls": False,
    "loss.any_optimal": True,
    "optimizer.name": "adam",
    "optimizer.learning_rate": 3e-3,
    "optimizer.schedule": "cosine",
    "optimizer.clip_norm": 1.0,
}


def use_fast_recipe(config: ConfigDict) -> None:
    """Trains by `FAST_RECIPE` instead of the protocol."""
    config.update_from_flattened_dict(FAST_RECIPE)


def set_depth(config: ConfigDict, depth: int) -> None:
    """Makes a model `depth` layers deep; blocks keep their number and change their depth.

    The values of deep VINs and highway networks may grow beyond what a float holds; that is part of
    what is studied, so such steps are skipped and counted instead of ending the run.
    """
    if config.model.kind in ("vin", "highway_network") and depth > 40:
        config.train.skip_not_finite = True
    if not config.model.num_blocks:
        config.model.depth = depth
        return
    blocks = config.model.num_blocks
    if depth < blocks or depth % blocks:
        raise ValueError(
            f"{depth} layers do not fill {blocks} blocks: the depth must be a multiple of {blocks}"
        )
    config.model.block_depth = depth // blocks


def parse_cell(text: str, example: str, size: int | None = None) -> tuple[str, int, int]:
    """Reads MODEL-SIZE-DEPTH, as in `--config=experiments/configs/paper.py:vin-15-20`.

    Args:
      text: what stands after the colon.
      example: of such a text.
      size: if there is only one, which may then be left out.

    Returns:
      Model, size and depth.
    """
    model, *numbers = text.split("-")
    if size is not None and len(numbers) == 1:
        numbers = [str(size), *numbers]
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        wanted = "MODEL-SIZE-DEPTH" if size is None else "MODEL-DEPTH"
        raise ValueError(f"expected {wanted} after a colon, such as {example}; got {text!r}")
    if size is not None and int(numbers[0]) != size:
        raise ValueError(f"{text}: here mazes have size {size}")
    return model, int(numbers[0]), int(numbers[1])
