"""Steps of a GPPN: their gradients, written by hand, are those of autodiff in float64."""

import chex
import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hvin_jax.models import _lstm_steps
from hvin_jax.planning import _platforms


def plain_steps(times, params, state, inside):
    """The steps, from the equations, for JAX to differentiate."""
    size = round(params["give"].shape[1] ** 0.5)
    kernel = params["give"][:, ::-1].T.reshape(size, size, -1, 1)
    recurrent, of_input, bias = params["gates"][:-2], params["gates"][-2], params["gates"][-1]
    hidden, cell = state
    for _ in range(times):
        gathered = lax.conv_general_dilated(
            *(hidden, kernel, (1, 1), "SAME"), dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        gathered = gathered[..., 0] + params["gather_bias"]
        gates = hidden @ recurrent + jnp.tensordot(gathered, of_input, 0)
        gates += jnp.broadcast_to(bias, gates.shape)
        enter, forget, new, leave = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        if inside is not None:
            hidden = jnp.where(inside[..., None], hidden, 0)
    return hidden, cell


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("times", "size", "bounded"), [(0, 3, False), (1, 1, False), (3, 3, True), (7, 5, False)]
)
def test_states_and_gradients(monkeypatch, platform, times, size, bounded):
    monkeypatch.setattr(_platforms, "_forced", platform)
    monkeypatch.setattr(_platforms, "_UNROLL", 2)
    keys = jax.random.split(jax.random.key(0), 7)
    shape, units = (2, 4, 3), 3
    params = {
        "give": 0.5 * jax.random.normal(keys[0], (units, size**2)),
        "gather_bias": jax.random.normal(keys[1], ()),
        "gates": jax.random.normal(keys[2], (units + 2, 4 * units)),
    }
    state = tuple(jax.random.normal(key, (*shape, units)) for key in keys[3:5])
    inside = jax.random.bernoulli(keys[5], 0.6, shape) if bounded else None
    weights = jax.random.normal(keys[6], (2, *shape, units))

    def outcome(steps):
        def loss(params, state):
            last = steps(times, params, state, inside)
            return sum(jnp.vdot(w, x) for w, x in zip(weights, last, strict=True)), last

        return jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(params, state)

    chex.assert_trees_all_close(
        outcome(_lstm_steps.lstm_steps), outcome(plain_steps), rtol=1e-10, atol=1e-12
    )
