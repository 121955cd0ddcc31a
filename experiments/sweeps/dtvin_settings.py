r"""What the DT-VIN paper leaves open, one setting at a time: 15×15, NEWS, 100 layers, three seeds.

    python -m experiments.sweep --config=experiments/sweeps/dtvin_settings.py

A minute or two a run on one CPU core. Results: results/dtvin_settings.
"""

from experiments.grids import Sweep

_CHANGES: dict[str, dict[str, object]] = {
    "default": {},
    "as_sharp_as_trained": {"model.sharpness": 1.0},
    "goal_in_own_cell": {"model.goal_seen": "own"},
    "alike_after_turns": {"model.symmetric": True},
    "softmax_over_states": {"model.normalise": "state"},
    "dense_on_q": {"model.head": "q"},
    "dense_on_q_at_random": {"model.head": "q", "model.head_start": "random"},
    "dense_on_values": {"model.head": "window"},
    "kernels_start_alike": {"model.apart": 0.0},
    "kernels_start_at_random": {"model.kernel_start": "random", "model.apart": 3.0},
    "reward_starts_at_random": {"model.reward_start": "random"},
}
_HIGHWAY: dict[str, object] = {
    "model.kind": "highway_dtvin",
    "model.num_blocks": 20,
    "model.block_depth": 5,
}
_VARIANTS: dict[str, dict[str, object]] = {
    **{name: {"model.depth": 100, **changes} for name, changes in _CHANGES.items()},
    # As many layers in 20 highway blocks: one greedy layer and four that explore in training; the
    # same without exploration; in 50 blocks of one and one.
    "highway": _HIGHWAY,
    "highway_without_exploration": {**_HIGHWAY, "model.value_exploration": False},
    "highway_without_filter_gate": {**_HIGHWAY, "model.filter_gate": False},
    "highway_of_short_blocks": {**_HIGHWAY, "model.num_blocks": 50, "model.block_depth": 2},
}


def get_config() -> Sweep:
    """Each setting by itself."""
    return Sweep(
        folder="dtvin_settings",
        base="experiments/configs/dtvin.py:news-15",
        grids=[{"variant": list(_VARIANTS)}],
        settings={
            "data.train": 4000,
            "data.valid": 200,
            "data.test": 500,
            "model.goal_seen": "around",
            "model.symmetric": False,
            "train.symmetries": True,
            "train.num_steps": 1000,
            "eval.every_steps": 500,
        },
        variants=_VARIANTS,
        seeds=(0, 1, 2),
    )
