"""What cannot be differentiated says so: forward mode, and gradients of gradients."""

import jax
import numpy as np
import pytest
from small_mdps import KEY, random_conv

import hvin_jax

Q_REWARD, KERNEL, _ = random_conv(0, (1, 2, 2, 1, 2, 3), np.float32)
settings = {"num_blocks": 2, "block_depth": 3}
PLANNERS = {
    "value_iteration": lambda mdp: hvin_jax.value_iteration(mdp, num_iterations=3),
    "evaluation": lambda mdp: hvin_jax.highway_vi(None, mdp, **settings),
    "exploration": lambda mdp: hvin_jax.highway_vi(KEY(0), mdp, **settings),
    "shared": lambda mdp: hvin_jax.highway_vi(KEY(0), mdp, share_exploration=True, **settings),
}


@pytest.mark.parametrize("plan", PLANNERS.values(), ids=PLANNERS.keys())
@pytest.mark.slow
def test_derivatives_that_are_not_available(plan):
    def total(kernel):
        return plan(hvin_jax.ConvMDP(Q_REWARD, kernel)).value.sum()

    for forward in (jax.jacfwd(total), jax.hessian(total)):
        with pytest.raises(TypeError, match="forward-mode"):
            jax.eval_shape(forward, KERNEL)
    # Without this error a part of the second derivative would be missing.
    with pytest.raises(NotImplementedError, match="second derivatives of value_iteration and"):
        jax.eval_shape(jax.jacrev(jax.grad(total)), KERNEL)
    assert jax.eval_shape(jax.jacrev(total), KERNEL).shape == KERNEL.shape
