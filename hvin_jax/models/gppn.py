"""The gated path planning network (Lee et al., 2018), a recurrent baseline."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax

from hvin_jax.models._layers import PlannerOutput, observation, uniform_fan_in
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._products import matmul, precision
from hvin_jax.planning._windows import unwindows

State = tuple[jax.Array, jax.Array]


class GPPN(nn.Module):
    """An LSTM at every cell, fed with a convolution of its neighbours' states.

    The states start from a 3×3 convolution of the observation; then `depth - 1` times a kernel
    gathers the hidden states around each cell into one number, which is the LSTM's input. The
    backward pass keeps the states of √depth moments and recomputes those between.

    Attributes:
      num_orientations: `O`, orientations of the agent (1 if it has none).
      num_actions: actions of the task.
      kernel_size: `F`, the side of the gathering kernel, odd.
      hidden: units of the LSTM.
      depth: `N`.
    """

    num_orientations: int = 4
    num_actions: int = 3
    kernel_size: int = 5
    hidden: int = 150
    depth: int = 20

    @property
    def num_layers(self) -> int:
        """`N`."""
        return self.depth

    @nn.compact
    def __call__(
        self,
        maze: jax.Array,
        goal: jax.Array,
        *,
        train: bool,
        inside: jax.Array | None = None,
        example_index: jax.Array | None = None,
        diagnostics: bool = False,
        policies_every: int = 0,
        layers: int | str | None = None,
    ) -> PlannerOutput:
        """Plans on every map of a batch; see `LatentPlanner.__call__`. There is no noise."""
        del train, example_index, diagnostics
        if layers is not None:
            raise ValueError("GPPN is recurrent and has the depth it was trained with: no layers.")
        if policies_every:
            raise ValueError("GPPN has no values between its layers: policies_every must be 0.")
        for name in ("num_orientations", "num_actions", "hidden", "depth"):
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_odd("kernel_size", self.kernel_size)
        observed = observation(maze, goal, self.num_orientations, inside)

        def bounded(x: jax.Array) -> jax.Array:
            return x if inside is None else jnp.where(inside[..., None], x, 0)

        features = bounded(self._conv3x3("features", observed))
        state = (bounded(self._conv3x3("hidden", features)), self._conv3x3("cell", features))
        params = in_two_products(self._lstm_params())

        def step(state: State) -> State:
            hidden, cell = lstm_step(params, self.kernel_size, state)
            return bounded(hidden), cell

        hidden, _ = repeat_with_checkpoints(step, state, self.depth - 1)
        policy = self.param(
            "policy",
            uniform_fan_in(self.hidden),
            (self.hidden, self.num_orientations * self.num_actions),
        )
        shape = (*goal.shape, self.num_actions)
        return PlannerOutput(logits=matmul(hidden, policy).reshape(shape))

    def _conv3x3(self, name: str, x: jax.Array) -> jax.Array:
        init = uniform_fan_in(3 * 3 * x.shape[-1])
        return nn.Conv(
            self.hidden,
            (3, 3),
            kernel_init=init,
            bias_init=init,
            precision=precision(),
            name=name,
        )(x)

    def _lstm_params(self) -> dict[str, jax.Array]:
        fan_in, units = self.kernel_size**2 * self.hidden, self.hidden
        gather, recur = uniform_fan_in(fan_in), uniform_fan_in(units)
        return {
            "gather_kernel": self.param("gather_kernel", gather, (units, self.kernel_size**2)),
            "gather_bias": self.param("gather_bias", gather, ()),
            "input_kernel": self.param("input_kernel", recur, (4 * units,)),
            "input_bias": self.param("input_bias", recur, (4 * units,)),
            "recurrent_kernel": self.param("recurrent_kernel", recur, (units, 4 * units)),
            "recurrent_bias": self.param("recurrent_bias", recur, (4 * units,)),
        }


def in_two_products(params: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """The parameters as `lstm_step` multiplies with them; made once, not in every step.

    Args:
      params: `gather_kernel` `[U, F·F]` (the weight of the neighbour at each place of the window),
        `gather_bias` `[]`, `input_kernel` `[4U]`, `recurrent_kernel` `[U, 4U]`, two biases `[4U]`.

    Returns:
      `give` `[U, F·F]`, `gather_bias` `[]`, `gates` `[U + 2, 4U]`.
    """
    # A convolution to one channel: project first, then sum over the window. `unwindows` collects
    # what each neighbour gives, so the kernel is read backwards.
    give = params["gather_kernel"][:, ::-1]
    # All that enters the gates in one product, so that every gradient is a product, too.
    bias = params["input_bias"] + params["recurrent_bias"]
    gates = jnp.concatenate([params["recurrent_kernel"], params["input_kernel"][None], bias[None]])
    return {"give": give, "gather_bias": params["gather_bias"], "gates": gates}


def lstm_step(
    params: dict[str, jax.Array], kernel_size: int, state: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """One step of all cells' LSTMs; the gates come in the order input, forget, cell, output.

    Args:
      params: see `in_two_products`.
      kernel_size: `F`.
      state: hidden and cell state, `[B, H, W, U]` each.

    Returns:
      The next state.
    """
    hidden, cell = state
    gathered = unwindows(matmul(hidden, params["give"]), kernel_size) + params["gather_bias"]
    inputs = jnp.concatenate([hidden, gathered, jnp.ones_like(gathered)], axis=-1)
    gates = matmul(inputs, params["gates"])
    enter, forget, new, leave = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(cell), cell


def repeat_with_checkpoints(step: Callable[[State], State], state: State, times: int) -> State:
    """Applies `step` `times` times, keeping about 2√times states for the backward pass."""
    step = jax.checkpoint(step, prevent_cse=False)

    def repeat(state: State, times: int) -> State:
        return lax.scan(lambda state, _: (step(state), None), state, None, length=times)[0]

    segment = max(1, math.isqrt(times))
    repeat_segment = jax.checkpoint(partial(repeat, times=segment), prevent_cse=False)
    state, _ = lax.scan(
        lambda state, _: (repeat_segment(state), None), state, None, length=times // segment
    )
    return repeat(state, times % segment)
