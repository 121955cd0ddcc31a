"""Small latent MDPs with random numbers, and what the layers of a plan in them do."""

from functools import partial

import chex
import jax
import numpy as np

import hvin_jax

KEY = jax.random.key
same = partial(chex.assert_trees_all_close, rtol=1e-5, atol=1e-6)
# Most tests plan with these, so that the compiled planner is often one of an earlier test.
SETTINGS = {
    "num_blocks": 2,
    "block_depth": 3,
    "num_policies": 2,
    "return_values": True,
    "return_actions": True,
}


# (B, H, W, O, A, F): not square, one orientation, one example, one action, kernel beyond the map.
SHAPES = [
    (2, 3, 5, 4, 3, 3),
    (1, 4, 2, 1, 6, 5),
    (3, 1, 4, 2, 1, 3),
    (2, 2, 2, 3, 4, 5),
    (2, 3, 3, 2, 5, 1),
    (1, 1, 1, 1, 1, 1),
]


def random_conv(seed, shape=(2, 3, 4, 2, 3, 3), dtype=np.float64):
    """Arrays of a `ConvMDP` and a value; `shape` is B, H, W, O, A, F."""
    b, h, w, o, a, f = shape
    rng = np.random.default_rng(seed)
    q_reward = rng.normal(size=(b, h, w, o, a))
    kernel = rng.normal(size=(f, f, o, o, a)) * 0.8 / (f * np.sqrt(o))
    return tuple(x.astype(dtype) for x in (q_reward, kernel, rng.normal(size=(b, h, w, o))))


def small_conv(seed=0, batch=4, actions=5):
    q_reward, kernel, _ = random_conv(seed, (batch, 2, 3, 2, actions, 3), np.float32)
    return hvin_jax.ConvMDP(q_reward, kernel)


def plan(key, mdp, **settings):
    return hvin_jax.highway_vi(key, mdp, **(SETTINGS | settings))


def actions_of(key, mdp, **settings):
    return np.asarray(plan(key, mdp, **settings).actions)
