"""The gated path planning network (Lee et al., 2018), a recurrent baseline."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax
from jax.tree_util import Partial

from hvin_jax.models._layers import LayerPolicies, PlannerOutput, observation, uniform_fan_in
from hvin_jax.models._lstm_steps import State, in_two_products, lstm_steps
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._products import matmul, precision


class GPPN(nn.Module):
    """An LSTM at every cell, fed with a convolution of its neighbours' states.

    The states start from a 3×3 convolution of the observation; then `depth - 1` times a kernel
    gathers the hidden states around each cell into one number, which is the LSTM's input. The
    backward pass keeps the states of √depth moments and recomputes those between.

    Attributes:
      num_orientations: `O`, orientations of the agent (1 if it has none).
      num_actions: actions of the task.
      terrain: whether it knows what cells cost.
      kernel_size: `F`, the side of the gathering kernel, odd.
      hidden: units of the LSTM.
      depth: `N`.
    """

    num_orientations: int = 4
    num_actions: int = 3
    terrain: bool = False
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
        cost: jax.Array | None = None,
        stops: jax.Array | None = None,
    ) -> PlannerOutput:
        """Plans on every map of a batch; see `LatentPlanner.__call__`. There is no noise.

        At `stops` the hidden state stands for the value.
        """
        del train, example_index, diagnostics
        if layers is not None:
            raise ValueError("GPPN is recurrent and has the depth it was trained with: no layers.")
        if policies_every:
            raise ValueError("GPPN has no values between its layers: policies_every must be 0.")
        for name in ("num_orientations", "num_actions", "hidden", "depth"):
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_odd("kernel_size", self.kernel_size)
        observed = observation(
            maze, goal, self.num_orientations, inside, terrain=self.terrain, cost=cost
        )

        def bounded(x: jax.Array) -> jax.Array:
            return x if inside is None else jnp.where(inside[..., None], x, 0)

        features = bounded(self._conv3x3("features", observed))
        state = (bounded(self._conv3x3("hidden", features)), self._conv3x3("cell", features))
        params = in_two_products(self._lstm_params())
        policy = self.param(
            "policy",
            uniform_fan_in(self.hidden),
            (self.hidden, self.num_orientations * self.num_actions),
        )
        if stops is None:
            hidden, _ = lstm_steps(self.depth - 1, params, state, inside)
            return PlannerOutput(logits=_read(self.num_actions, policy, hidden))

        def step(_: jax.Array, state: State) -> State:
            return lstm_steps(1, params, state, inside)

        def stop(carry: tuple[State, jax.Array], end: jax.Array) -> tuple[Any, jax.Array]:
            state, begin = carry
            state = lax.fori_loop(begin, end, step, state)
            return (state, end), state[0]

        # The first layer is the state that there is from the beginning.
        _, hidden = lax.scan(stop, (state, jnp.ones((), stops.dtype)), stops)
        read = Partial(partial(_read, self.num_actions), policy)
        depth = jnp.broadcast_to(stops[-1], maze.shape[:1])
        looks = LayerPolicies(hidden, stops, read)
        return PlannerOutput(read(hidden[-1]), layers=looks, depth=depth)

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


def _read(num_actions: int, policy: jax.Array, hidden: jax.Array) -> jax.Array:
    """Logits `[B, H, W, O, num_actions]` of hidden states `[B, H, W, U]`."""
    return matmul(hidden, policy).reshape(*hidden.shape[:3], -1, num_actions)
