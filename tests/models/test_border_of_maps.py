"""Maps of several sizes in one array: each is planned on as if it were alone."""

from functools import partial

import jax
import numpy as np
import pytest

from hvin_jax.models import DTVIN, GPPN, VIN, HighwayDTVIN, HighwayNetwork, HighwayVIN

SMALL = {"latent_actions": 4, "kernel_size": 5, "hidden": 5}
MODELS = {
    "vin": VIN(depth=5, **SMALL),
    "bfloat16": VIN(depth=5, dtype="bfloat16", **SMALL),
    "gppn": GPPN(depth=5, kernel_size=3, hidden=5),
    "highway network": HighwayNetwork(num_blocks=2, block_depth=3, **SMALL),
    "highway vin": HighwayVIN(num_blocks=2, block_depth=3, num_policies=2, **SMALL),
    "learned parts": HighwayVIN(
        num_blocks=2, block_depth=3, learned_policy=True, learned_gate=True, **SMALL
    ),
    "dt-vin": DTVIN(depth=9),
    "dt-vin window": DTVIN(depth=9, head="window", normalise="state"),
    "highway dt-vin": HighwayDTVIN(num_blocks=2, block_depth=3),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_padding_changes_nothing(model):
    rng = np.random.default_rng(0)
    maze = rng.integers(0, 2, (2, 5, 7)).astype(np.float32)
    goal = np.zeros((2, 5, 7, 4), np.float32)
    goal[:, 3, 6, 1] = 1
    shapes = jax.eval_shape(partial(model.init, train=False), jax.random.key(0), maze, goal)
    params = jax.tree.map(lambda x: rng.uniform(-0.5, 0.5, x.shape).astype(np.float32), shapes)
    apply = jax.jit(partial(model.apply, train=False))
    alone = apply(params, maze, goal)
    # What is beyond the border may be anything.
    larger = np.ones((2, 8, 9), np.float32)
    goals, inside = np.ones((2, 8, 9, 4), np.float32), np.zeros((2, 8, 9), bool)
    larger[:, :5, :7], goals[:, :5, :7], inside[:, :5, :7] = maze, goal, True
    within = apply(params, larger, goals, inside=inside)
    _assert_close(within.logits[:, :5, :7], alone.logits)
    if alone.value is not None:
        _assert_close(within.value[:, :5, :7], alone.value)
        assert not np.asarray(within.value)[~inside].any()


def _assert_close(actual, expected):
    """Up to the rounding of the largest number: sums are made in another order."""
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
