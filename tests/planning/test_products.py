"""The precision of matrix products: float32, or what JAX's own setting says, in all of them."""

import re

import jax
import jax.numpy as jnp
import pytest

from hvin_jax.models import DTVIN, GPPN, HighwayVIN, Perception, init_params


def program_for_gpus(model):
    """The text of a model's gradient."""

    def loss(params, maze, goal):
        key = jax.random.key(0)
        return model.apply(params, maze, goal, train=True, rngs={"exploration": key}).logits.sum()

    params = jax.eval_shape(lambda: init_params(model, jax.random.key(0)))
    maze = jax.ShapeDtypeStruct((2, 5, 5), jnp.float32)
    goal = jax.ShapeDtypeStruct((2, 5, 5, model.num_orientations), jnp.float32)
    traced = jax.jit(jax.grad(loss)).trace(params, maze, goal)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


MODELS = [
    HighwayVIN(latent_actions=3, num_blocks=2, block_depth=2),
    HighwayVIN(latent_actions=3, num_blocks=2, block_depth=2, share_exploration=True),
    HighwayVIN(latent_actions=3, num_blocks=2, learned_policy=True, learned_gate=True),
    DTVIN(num_orientations=1, num_actions=4, depth=2),
    GPPN(depth=2, hidden=3),
]


def precisions_of(text):
    products = [x for x in text.splitlines() if re.search(r"dot_general|convolution\(", x)]
    assert products
    return {name for x in products for name in re.findall(r"HIGHEST|HIGH|DEFAULT", x) or ["none"]}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_all_products_are_in_one_precision(model):
    assert precisions_of(program_for_gpus(model)) == {"HIGHEST"}


def test_one_setting_chooses_it():
    with jax.default_matmul_precision("tensorfloat32"):
        assert precisions_of(program_for_gpus(MODELS[0])) == {"HIGH"}


def test_perception_too():
    model = Perception()
    views = jax.ShapeDtypeStruct((3, 8, 8, 3), jnp.uint8)
    index = jax.ShapeDtypeStruct((1, 2, 2, 4), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), views, index)
    traced = jax.jit(model.apply).trace(params, views, index)
    assert precisions_of(traced.lower(lowering_platforms=("cuda",)).as_text()) == {"HIGHEST"}
