"""What does not fit into memory, or into any machine, is refused at once."""

import numpy as np
import pytest

from hvin_jax import load_planner
from hvin_jax._applied import check_room
from hvin_jax._memory import check_memory, memory_of_machine
from hvin_jax.models import make_model
from hvin_jax.tasks.datasets import check_request
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism


def test_the_sentence():
    check_memory(memory_of_machine(), "all of it")
    with pytest.raises(ValueError, match=r"^a whale would take 5 PB of memory at least, this mach"):
        check_memory(5e15, "a whale")


def test_data_sets(monkeypatch):
    monkeypatch.setattr("hvin_jax._memory.memory_of_machine", lambda: 16e9)

    def check(side, total, workers=1):
        counts = {"train": total, "valid": 0, "test": 0}
        law, mechanism = MazeLaw((side, side)), get_mechanism("diffdrive")
        check_request(law=law, mechanism=mechanism, counts=counts, seed=0, workers=workers)

    check(25, 35_000)
    check(101, 35_000)
    with pytest.raises(ValueError, match=r"35,000 mazes of 1000×1000 would take 1,190 GB of mem"):
        check(1000, 35_000)
    with pytest.raises(ValueError, match=r"35,000 mazes of 15×15 and 9,999 workers would take 500"):
        check(15, 35_000, workers=9_999)
    for size in ((100_000, 100_000), (4, 100_000)):
        with pytest.raises(ValueError, match="too many for 16 bits: both sides together must be"):
            MazeLaw(size)


def test_planning(monkeypatch):
    """With 5,000 layers on 101×101 maps, and on 512×512 maps; but not with both and more."""
    monkeypatch.setattr("hvin_jax._memory.memory_of_machine", lambda: 16e9)
    shipped = load_planner("diffdrive-25")
    deep = make_model(**{**shipped.settings, "num_blocks": 1, "block_depth": 5_000})
    check_room(deep, (4, 101, 101, 4))
    check_room(shipped.model, (4, 512, 512, 4))
    with pytest.raises(
        ValueError, match=r"planning on a map of 512×512 would take 86 GB of memory"
    ):
        check_room(deep, (4, 512, 512, 4))
    # With a wall around.
    with pytest.raises(ValueError, match=r"planning on a map of 5002×5002 would take"):
        shipped.policy(np.broadcast_to(np.float32(1), (1, 5000, 5000)), [(1, 1, 0)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "highway_vin", "block_depth": 10**6}, "20,000,000 layers, expected 100,000"),
        ({"kind": "vin", "depth": 10**9}, "1,000,000,000 layers"),
        ({"kind": "vin", "latent_actions": 10**12}, "the parameters of the model would take"),
        ({"kind": "gppn", "hidden": 10**8}, "the parameters of the model would take 160 PB"),
        ({"kind": "vin", "kernel_size": 10**6 + 1}, "the parameters of the model would take"),
        ({"kind": "vin", "depth": 2.5}, "depth must be a Python int, got 2.5"),
        ({"kind": ["vin"]}, "unknown model"),
    ],
)
def test_models(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_model(**settings)
