"""Highway value iteration under jit, vmap, grad and pmap."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_mdps import KEY, plan, random_conv, same

import hvin_jax

DEVICES = 8
Q_REWARD, KERNEL, _ = random_conv(12, (DEVICES, 2, 3, 2, 4, 3), np.float32)
INDEX = np.arange(DEVICES) + 10
# Actions of one's own chosen ε-greedily, and shared ones, which are looked up in another way.
EACH_WAY = pytest.mark.parametrize(
    ("epsilon", "share"), [(0.5, False), (1.0, True)], ids=["own", "shared"]
)


@lru_cache
def gradient_function(epsilon, share):
    """The gradient of a loss with respect to the kernel; value and actions, examples first."""

    def loss(kernel, key, q_reward, index):
        mdp = hvin_jax.ConvMDP(q_reward, kernel)
        output = plan(key, mdp, epsilon=epsilon, example_index=index, share_exploration=share)
        return jnp.sum(output.value**2), (output.value, jnp.moveaxis(output.actions, 2, 0))

    return jax.grad(loss, has_aux=True)


@lru_cache
def one_by_one(epsilon, share):
    return jax.jit(gradient_function(epsilon, share))


@EACH_WAY
@pytest.mark.slow
def test_under_vmap(epsilon, share):
    """Over keys and over MDPs: values, actions and gradients are what one call gives."""
    keys = jax.random.split(KEY(0), 2)
    kernels, q_rewards = np.stack([KERNEL, KERNEL[::-1]]), np.stack([Q_REWARD, -Q_REWARD])
    over_mdps = jax.vmap(gradient_function(epsilon, share), in_axes=(0, None, 0, None))
    over_both = jax.jit(jax.vmap(over_mdps, in_axes=(None, 0, None, None)))
    both = over_both(kernels, keys, q_rewards, INDEX)
    for i, j in np.ndindex(2, 2):
        each = one_by_one(epsilon, share)(kernels[j], keys[i], q_rewards[j], INDEX)
        same(jax.tree.map(lambda x, i=i, j=j: x[i, j], both), each, rtol=1e-4, atol=1e-4)
    grads, _ = both
    assert jnp.abs(grads[0, 0] - grads[1, 0]).max() > 1e-3


@EACH_WAY
@pytest.mark.slow
def test_splitting_a_batch_over_devices_changes_nothing(epsilon, share):
    """Values, actions and (summed) gradients, of 8 examples on 1 and on 8 devices."""
    assert jax.device_count() == DEVICES
    whole, expected = one_by_one(epsilon, share)(KERNEL, KEY(0), Q_REWARD, INDEX)

    @partial(jax.pmap, axis_name="device", in_axes=(None, None, 0, 0))
    def on_devices(kernel, key, q_reward, index):
        grads, outputs = gradient_function(epsilon, share)(kernel, key, q_reward, index)
        return jax.lax.psum(grads, "device"), outputs

    grads, outputs = on_devices(KERNEL, KEY(0), Q_REWARD[:, None], INDEX[:, None])
    same(jax.tree.map(lambda x: x[:, 0], outputs), expected)
    same(grads[0], whole, rtol=1e-4, atol=1e-4)
