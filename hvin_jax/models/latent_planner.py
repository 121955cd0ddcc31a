"""The frame of VIN, highway network and highway VIN: observation → latent MDP → value → policy."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from hvin_jax.models._layers import PlannerOutput, observation, uniform_fan_in
from hvin_jax.planning import ConvMDP, PlanOutput
from hvin_jax.planning import _checks as checks
from hvin_jax.planning._conv_backup import kernel_matrix
from hvin_jax.planning._windows import windows


@dataclasses.dataclass(frozen=True)
class PlannerCall:
    """What a call of a model carries besides the latent MDP made of it.

    Attributes:
      observed: `[B, H, W, 1 + O]`, map and goal.
      train: whether to explore.
      example_index: `[B]`, global indices of the examples, or None.
      diagnostics: whether to return the value maps and latent actions of all layers.
    """

    observed: jax.Array
    train: bool
    example_index: jax.Array | None
    diagnostics: bool


class LatentPlanner(nn.Module):
    """A model that plans in a latent MDP made from the observation; subclasses say how.

    The reward map R comes from the observation by a 3×3 convolution to `hidden` channels and a 1×1
    convolution to `O`, with no non-linearity between; Q from R and V by a kernel each; the logits
    from the last Q by a dense layer over all `O·A` channels.

    Parameters, for whoever brings weights along: `hidden_kernel` `[3·3·(1 + O), hidden]` with rows
    over (row, column, channel of the observation), `hidden_bias`, `reward` `[hidden, O]`,
    `reward_kernel` and `value_kernel` `[F, F, O, O, A]` as in `ConvMDP`, `policy`
    `[O·A, O·num_actions]`, both axes with the orientation outside.

    Attributes:
      num_orientations: `O`, orientations of the agent (1 if it has none).
      num_actions: actions of the task.
      latent_actions: `A`, latent actions per orientation.
      kernel_size: `F`, the side of the kernels, odd.
      hidden: channels between the observation and R.
      tie_kernels: whether R and V share one kernel, as the paper writes it. By default they have
        one each, and that of V starts at zero: a shared random one multiplies values in every
        layer, and a VIN of 100 layers did not train with it (RESULTS.md).
      dtype: the type that is planned in: "float32" (that of the parameters), or "bfloat16", with
        parameters, observation and logits in float32. None of it depends on `jax_enable_x64`.
    """

    num_orientations: int = 4
    num_actions: int = 3
    latent_actions: int = 100
    kernel_size: int = 5
    hidden: int = 150
    tie_kernels: bool = False
    dtype: str = "float32"

    # What subclasses count besides, each at least 1.
    sizes: ClassVar[tuple[str, ...]] = ()

    def plan(self, mdp: ConvMDP, call: PlannerCall) -> PlanOutput:
        """Plans in the latent MDP; what every subclass defines."""
        raise TypeError(f"{type(self).__name__} must define how to plan.")

    @nn.compact
    def __call__(
        self,
        maze: jax.Array,
        goal: jax.Array,
        *,
        train: bool,
        example_index: jax.Array | None = None,
        diagnostics: bool = False,
    ) -> PlannerOutput:
        """Plans on every map of a batch.

        Args:
          maze: `[B, H, W]`, 1 = free, of any type; maps need not be square.
          goal: `[B, H, W, O]`, 1 at the goal, of any type.
          train: whether to explore, with noise from the rng stream "exploration".
          example_index: `[B]`, global indices of the examples, from which their noise is made.
          diagnostics: whether to return the value maps and latent actions of all layers.

        Returns:
          A `PlannerOutput`.
        """
        sizes = ("num_orientations", "num_actions", "latent_actions", "hidden", *self.sizes)
        for name in sizes:
            checks.check_at_least(name, getattr(self, name), 1)
        checks.check_odd("kernel_size", self.kernel_size)
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype must be float32 or bfloat16, got {self.dtype!r}.")
        observed = observation(maze, goal, self.num_orientations)
        reward = self._reward(observed)
        reward_kernel, value_kernel = self._kernels()
        mdp = ConvMDP.from_reward(*map(self._narrow, (reward, value_kernel, reward_kernel)))
        plan = self.plan(mdp, PlannerCall(observed, train, example_index, diagnostics))
        value = plan.value.astype(reward.dtype)
        # The last Q and the policy layer are linear, so they are multiplied first: the large Q
        # itself is never formed.
        head = self._head()

        def last_q(maps: jax.Array, kernel: jax.Array) -> jax.Array:
            return windows(maps, self.kernel_size) @ (kernel_matrix(kernel) @ head)

        logits = last_q(reward, reward_kernel) + last_q(value, value_kernel)
        logits = logits.reshape(*value.shape, self.num_actions)
        return PlannerOutput(logits, value, plan.values, plan.actions)

    def _narrow(self, x: jax.Array) -> jax.Array:
        return x.astype(jnp.bfloat16) if self.dtype == "bfloat16" else x

    def _reward(self, observed: jax.Array) -> jax.Array:
        fan_in = 3 * 3 * observed.shape[-1]
        init = uniform_fan_in(fan_in)
        kernel = self.param("hidden_kernel", init, (fan_in, self.hidden))
        bias = self.param("hidden_bias", init, (self.hidden,))
        reward = self.param(
            "reward", uniform_fan_in(self.hidden), (self.hidden, self.num_orientations)
        )
        # Two linear layers in a row are one.
        return windows(observed, 3) @ (kernel @ reward) + (bias @ reward)[None, None, None]

    def _kernels(self) -> tuple[jax.Array, jax.Array]:
        size, orientations = self.kernel_size, self.num_orientations
        shape = (size, size, orientations, orientations, self.latent_actions)
        init = uniform_fan_in(size * size * orientations)
        if self.tie_kernels:
            kernel = self.param("kernel", init, shape)
            return kernel, kernel
        return (
            self.param("reward_kernel", init, shape),
            self.param("value_kernel", nn.initializers.zeros, shape, jnp.float32),
        )

    def _head(self) -> jax.Array:
        channels = self.num_orientations * self.latent_actions
        shape = (channels, self.num_orientations * self.num_actions)
        return self.param("policy", uniform_fan_in(channels), shape)
