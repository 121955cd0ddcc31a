"""Models that nobody could run are refused where their settings are read."""

import dataclasses
from typing import Any

from hvin_jax._memory import check_memory
from hvin_jax.planning import _checks as checks

# The deepest networks that anybody has planned with have thousands.
MOST_LAYERS = 100_000


def check_size(model: Any) -> None:
    """Raises if a planner has too many layers, or parameters beyond the memory of this machine."""
    numbers = {
        field.name: getattr(model, field.name)
        for field in dataclasses.fields(model)
        if type(field.default) is int
    }
    for name, value in numbers.items():
        checks.check_at_least(name, value, 0 if name == "latent_actions" else 1)
    layers = 1
    for name in ("depth", "num_blocks", "block_depth", "num_policies"):
        layers *= numbers.get(name, 1)
    if layers > MOST_LAYERS:
        raise ValueError(f"the model has {layers:,} layers, expected {MOST_LAYERS:,} at most")
    window, hidden = numbers["kernel_size"] ** 2, numbers.get("hidden", 1)
    if "latent_actions" in numbers:
        actions = numbers["latent_actions"] or numbers["num_actions"]
        entries = window * numbers["num_orientations"] ** 2 * actions + hidden
    else:
        entries = window * hidden + 4 * hidden**2
    check_memory(4 * entries, "the parameters of the model")
