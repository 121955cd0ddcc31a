"""Models that plan with more layers than they were trained with, or as many as a map needs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from hvin_jax.models import (
    GPPN,
    VIN,
    HighwayDTVIN,
    HighwayNetwork,
    HighwayVIN,
    init_params,
)
from hvin_jax.models.dynamic_kernels import _read_q, _read_window
from hvin_jax.planning import DynamicConvMDP, places_around

SMALL = {"latent_actions": 4, "hidden": 5}
BLOCKS = {"num_blocks": 3, "block_depth": 2}
MODELS = [
    VIN(depth=6, **SMALL),
    HighwayNetwork(**BLOCKS, **SMALL),
    HighwayVIN(**BLOCKS, **SMALL, num_policies=2, learned_policy=True, learned_gate=True),
    HighwayDTVIN(**BLOCKS),
]


def _maps():
    rng = np.random.default_rng(0)
    maze = np.zeros((2, 6, 7), np.float32)
    maze[:, 1:-1, 1:-1] = rng.random((2, 4, 5)) < 0.8
    goal = np.zeros((2, 6, 7, 4), np.float32)
    goal[:, 2, 3, 1] = maze[:, 2, 3] = 1
    return maze, goal


def _params(model):
    """Random ones, so that blocks differ from each other."""
    shapes, rng = init_params(model, jax.random.key(0)), np.random.default_rng(1)
    return jax.tree.map(lambda x: jnp.asarray(0.3 * rng.normal(size=x.shape), x.dtype), shapes)


def _plan(model, params, **options):
    return jax.jit(lambda: model.apply(params, *_maps(), train=False, **options))()


def _with_last_block_repeated(params, more):
    """Those of a model with so many blocks more; what has another size does not count blocks."""

    def longer(x):
        blocks = BLOCKS["num_blocks"]
        return x[jnp.minimum(jnp.arange(blocks + more), blocks - 1)] if len(x) == blocks else x

    return {"params": {name: longer(x) for name, x in params["params"].items()}}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_beyond_its_own_number_the_last_block_is_repeated(model):
    assert model.num_layers == 6
    params = _params(model)
    deeper = model.clone(**({"depth": 10} if hasattr(model, "depth") else {"num_blocks": 5}))
    expected = _plan(deeper, _with_last_block_repeated(params, 2))
    output = _plan(model, params, layers=10)
    np.testing.assert_allclose(output.value, expected.value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(output.logits, expected.logits, rtol=1e-4, atol=1e-4)
    assert output.depth.tolist() == [10] * 2
    assert expected.depth is None


@pytest.mark.parametrize("head", ["q", "window"])
def test_at_any_depth_what_all_actions_share_does_not_count(head):
    """Values grow with every layer, and a trained head has columns of unequal sums."""
    rng = np.random.default_rng(0)
    reward, logits = rng.normal(size=(1, 4, 5, 5)), rng.normal(size=(9 + 3, 3, 1, 4, 5, 5))
    mdp = DynamicConvMDP.from_logits(
        *(np.float32(x) for x in (reward, logits)), places_around(3, 4, "steps")
    )
    channels, value = (12 if head == "q" else 36), np.float32(rng.normal(size=(1, 4, 5, 5)))
    weights = jnp.asarray(rng.normal(size=(channels, 12)), jnp.float32)
    read = {
        "q": Partial(_read_q, mdp, weights),
        "window": Partial(partial(_read_window, 3), weights),
    }[head]
    inner, far = (slice(None), slice(1, -1), slice(1, -1)), np.float32(1000)
    np.testing.assert_allclose(read(value + far)[inner], read(value)[inner], atol=0.02)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_at_stops_it_is_as_if_planning_ended_there(model):
    params, per_block = _params(model), model.block_layers
    output = _plan(model, params, stops=jnp.array([1, 3, 4, 4]))
    layers = output.layers
    assert layers.depths.tolist() == [per_block * stop for stop in (1, 3, 4, 4)]
    for index, stop in ((0, 1), (2, 4)):
        expected = _plan(model, params, layers=per_block * stop)
        value, logits = model.as_map(layers.values[index]), layers.read(layers.values[index])
        np.testing.assert_allclose(value, expected.value, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(logits, expected.logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(output.value, model.as_map(layers.values[-1]))
    assert output.depth.tolist() == [4 * per_block] * 2
    assert (layers.passed is None) == isinstance(model, VIN | HighwayNetwork)
    if layers.passed is not None:
        assert layers.passed.shape == (4, 2, 6, 7, 4)
        np.testing.assert_array_equal(layers.passed[2], layers.passed[3])


def test_stops_of_a_recurrent_model():
    model = GPPN(depth=4, hidden=3)
    params = _params(model)
    layers = _plan(model, params, stops=jnp.array([1, 3, 4])).layers
    for index, stop in enumerate((1, 3, 4)):
        expected = _plan(model.clone(depth=stop), params).logits
        np.testing.assert_allclose(
            layers.read(layers.values[index]), expected, rtol=1e-4, atol=1e-5
        )


def test_what_has_no_other_depth():
    maze, goal = _maps()
    for model, layers, message in (
        (GPPN(depth=3, hidden=2), "auto", "GPPN is recurrent and has the depth"),
        (MODELS[2], 7, "layers is 7, expected .* from 1 to .*, a multiple of 2"),
        (MODELS[0], 0, "layers is 0, expected .* a number: a whole one from 1"),
        (MODELS[0], 10**12, "layers is 1000000000000, expected .* from 1 to 2,147,483,647"),
        (MODELS[0], 5.0, "layers is 5.0, expected"),
        (MODELS[0], True, "layers is True, expected"),
        (MODELS[0], "deep", "layers is 'deep', expected"),
    ):
        with pytest.raises(ValueError, match=message):
            _trace(model, maze, goal, train=False, layers=layers)
    with pytest.raises(ValueError, match="layers is for evaluation"):
        _trace(MODELS[0], maze, goal, train=True, layers=3)


def _trace(model, *maps, **options):
    return jax.eval_shape(lambda: model.init(jax.random.key(0), *maps, **options))
