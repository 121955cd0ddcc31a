"""Small latent MDPs with random numbers, and what the layers of a plan in them do."""

from functools import partial

import jax
import numpy as np

import hvin_jax

KEY = jax.random.key


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


def actions_of(key, mdp, **settings):
    settings = {"num_blocks": 2, "block_depth": 3} | settings
    return np.asarray(hvin_jax.highway_vi(key, mdp, return_actions=True, **settings).actions)


def same(x, y):
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), x, y)
