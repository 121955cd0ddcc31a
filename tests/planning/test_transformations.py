"""Highway value iteration under jit, vmap, grad and pmap."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_mdps import KEY, random_conv, same

import hvin_jax


def plan_conv(key, q_reward, kernel, example_index=None, epsilon=0.5, share=False):
    return hvin_jax.highway_vi(
        key,
        hvin_jax.ConvMDP(q_reward, kernel),
        num_blocks=2,
        block_depth=3,
        num_policies=2,
        epsilon=epsilon,
        example_index=example_index,
        share_exploration=share,
        return_actions=True,
    )


# Actions of one's own chosen ε-greedily, and shared ones, which are looked up in another way.
EACH_WAY = pytest.mark.parametrize(
    "settings", [{}, {"epsilon": 1.0, "share": True}], ids=["own", "shared"]
)


@EACH_WAY
def test_under_jit_and_vmap(settings):
    """Over keys and over MDPs: each is what one call gives."""
    plan = partial(plan_conv, **settings)
    q_reward, kernel, _ = random_conv(12, (3, 2, 3, 2, 4, 3), np.float32)
    keys = jax.random.split(KEY(0), 2)
    q_rewards, kernels = np.stack([q_reward, -q_reward]), np.stack([kernel, kernel[::-1]])
    over_mdps = jax.vmap(plan, in_axes=(None, 0, 0))
    both = jax.jit(jax.vmap(over_mdps, in_axes=(0, None, None)))(keys, q_rewards, kernels)
    for i, j in np.ndindex(2, 2):
        each = plan(keys[i], q_rewards[j], kernels[j])
        same(jax.tree.map(lambda x, i=i, j=j: x[i, j], both), each)


@EACH_WAY
def test_gradients_under_vmap(settings):
    q_reward, kernel, _ = random_conv(13, (2, 2, 2, 1, 3, 3), np.float32)
    keys = jax.random.split(KEY(0), 3)
    grad = jax.grad(lambda kernel, key: plan_conv(key, q_reward, kernel, **settings).value.sum())
    each = jnp.stack([jax.jit(grad)(kernel, key) for key in keys])
    same(jax.jit(jax.vmap(grad, in_axes=(None, 0)))(kernel, keys), each)
    assert jnp.abs(each[0] - each[1]).max() > 1e-3


@EACH_WAY
def test_splitting_a_batch_over_devices_changes_nothing(settings):
    """Values, actions and (summed) gradients, of 8 examples on 1 and on 8 devices."""
    devices = 8
    assert jax.device_count() == devices
    q_reward, kernel, _ = random_conv(14, (devices, 2, 3, 2, 4, 3), np.float32)
    index = np.arange(devices) + 10

    def loss(kernel, q_reward, index):
        output = plan_conv(KEY(0), q_reward, kernel, index, **settings)
        return jnp.sum(output.value**2), (output.value, jnp.moveaxis(output.actions, 2, 0))

    grad = jax.grad(loss, has_aux=True)
    whole, expected = jax.jit(grad)(kernel, q_reward, index)

    def on_device(kernel, q_reward, index):
        grads, outputs = grad(kernel, q_reward, index)
        return jax.lax.psum(grads, "device"), outputs

    grads, outputs = jax.pmap(on_device, axis_name="device", in_axes=(None, 0, 0))(
        kernel, q_reward[:, None], index[:, None]
    )
    same(jax.tree.map(lambda x: x[:, 0], outputs), expected)
    np.testing.assert_allclose(grads[0], whole, rtol=1e-4, atol=1e-4)
