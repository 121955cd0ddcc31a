r"""DT-VIN with our recipe, on growing mazes: MECHANISM-SIZE.

    python -m experiments.maze --config=experiments/configs/dtvin.py:news-15 --workdir=runs/15
    python -m experiments.maze --config=experiments/configs/dtvin.py:news-25 --workdir=runs/25 \
        --config.train.weights=runs/15

Kernels for every state from a 3×3 convolution, which see goals in their own cell only and mean the
same after turns and reflections; adaptive highway loss, every optimal action accepted. What mazes
of 15×15 have taught in a minute or two holds for larger ones: there a few steps are enough to see
that nothing changes. Results: results/dtvin; other settings: experiments/sweeps/dtvin_settings.py.
"""

from ml_collections import ConfigDict

from experiments.configs.base import base_config, use_fast_recipe

# Layers (as in the DT-VIN paper, where it has the size), policies in the loss after each so many of
# them, steps, learning rate.
_BY_SIZE = {
    15: (160, 10, 500, 2e-2),
    25: (300, 20, 100, 5e-3),
    35: (600, 40, 50, 5e-3),
    100: (5000, 250, 2, 1e-3),
}


def get_config(cell: str = "") -> ConfigDict:
    """The configuration for a mechanism and a size."""
    mechanism, _, size = cell.partition("-")
    if not size.isdigit() or int(size) not in _BY_SIZE:
        raise ValueError(
            f"expected MECHANISM-SIZE after a colon, such as dtvin.py:news-15, with a size of "
            f"{', '.join(map(str, _BY_SIZE))}; got {cell!r}"
        )
    config = base_config(name=f"dtvin-{cell}", model="dtvin", size=int(size))
    use_fast_recipe(config)
    config.data.mechanism = mechanism
    config.data.train, config.data.test = 5000, 1000
    config.data.valid = 500 if int(size) == 15 else 200
    if int(size) == 100:  # whose two steps are minutes
        config.data.train, config.data.valid = 64, 32
        config.train.batch_size = config.eval.batch_size = 8
    config.model.depth, config.loss.policies_every, steps, rate = _BY_SIZE[int(size)]
    config.optimizer.learning_rate = rate
    config.train.num_steps = steps
    config.model.goal_seen, config.model.symmetric = "own", True
    config.eval.every_steps = max(steps // 4, 1)
    return config
