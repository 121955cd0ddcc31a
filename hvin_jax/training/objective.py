"""What training minimises: the cross-entropy to optimal actions at every state.

Losses are returned as sums with the weight they were summed over, so that a batch can be split over
any number of devices: sums add up, means do not.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from hvin_jax.models import LayerPolicies, PlannerOutput
from hvin_jax.planning._platforms import one_of
from hvin_jax.tasks.maze_data import UNREACHABLE, action_sets

# Arrays of a batch of mazes by name, as in `MazeData`: maze, goal, label, optimal, spl, and if they
# are there cost and inside.
Batch = Mapping[str, jax.Array]
# So many policies of layers are looked at at a time.
_GROUP = 10


class LossSums(NamedTuple):
    """Sums over the states of some examples, all scalars.

    Attributes:
      loss: the weighted sum of the loss.
      weight: the sum of the weights.
      correct: the weighted number of states at which the likeliest action is an optimal one.
    """

    loss: jax.Array
    weight: jax.Array
    correct: jax.Array


@dataclasses.dataclass(frozen=True)
class Imitation:
    """Imitation of optimal actions.

    Attributes:
      walls: whether states without a path to the goal count, wall cells above all. Their labels
        are noise in differential drive; the baseline code trains on them, and leaving them out
        learns faster.
      any_optimal: whether every optimal action is accepted, -log Σ_(a optimal) π(a), instead of
        the one drawn as the label, -log π(label).
      long_paths: λ ≥ 0; a state counts 1 + λ · SPL / (H + W). Zero is the plain mean.
      policies_every: J; if not 0, the adaptive highway loss of DT-VIN: the policy is read off after
        each J layers, and counts in every state that so many layers can reach, SPL ≤ n. States
        without a path never count. The mean is over all these terms.
      leave_out_goals: whether the goal itself does not count. Labels there are to stay, which where
        walls block means to run into one: a model for which walls are bad can't learn both.
      map_weight: for models that predict the map, how much its cross-entropy counts: that of a cell
        as much as so many times the loss of the cell's O states.
    """

    walls: bool = False
    any_optimal: bool = False
    long_paths: float = 0.0
    policies_every: int = 0
    leave_out_goals: bool = False
    map_weight: float = 0.0

    def __post_init__(self) -> None:
        for name in ("long_paths", "policies_every", "map_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a number from 0 on")
        if self.walls and self.policies_every:
            raise ValueError(
                "policies_every counts states by their path; walls have none: walls=False"
            )

    def __call__(self, output: PlannerOutput, batch: Batch) -> LossSums:
        """The sums of a batch.

        Args:
          output: of a model, with logits `[B, H, W, O, A]`.
          batch: with label, optimal and spl `[B, H, W, O]`, and maze `[B, H, W]`; with inside
            `[B, H, W]`, nothing beyond the border of a map counts.

        Returns:
          The sums over all states.
        """
        num_actions = output.logits.shape[-1]
        optimal = accepted = _by_action(action_sets(batch["optimal"], num_actions=num_actions))
        if not self.any_optimal:
            accepted = _by_action(one_of(batch["label"].astype(jnp.int32), num_actions))
        weight = self._weight(batch["spl"])
        if "inside" in batch:
            weight = jnp.where(batch["inside"][..., None], weight, 0)
        if output.layers is None:
            logits = _by_action(output.logits.astype(jnp.float32))[:, None]
            sums = _sums(logits, optimal, accepted, weight.reshape(1, -1))
        else:
            sums = _sums_of_layers(output.layers, optimal, accepted, batch["spl"], weight)
        if self.map_weight and output.map_logits is not None:
            free = batch["maze"].astype(jnp.float32)
            map_loss = jnp.sum(optax.sigmoid_binary_cross_entropy(output.map_logits, free))
            weighted = self.map_weight * output.logits.shape[-2] * map_loss
            sums = sums._replace(loss=sums.loss + weighted)
        return sums

    def _weight(self, spl: jax.Array) -> jax.Array:
        reachable = spl != jnp.asarray(UNREACHABLE, spl.dtype)
        weight = jnp.ones(spl.shape, jnp.float32)
        if self.long_paths:
            steps = jnp.where(reachable, spl, 0).astype(jnp.float32)
            weight += self.long_paths / (spl.shape[1] + spl.shape[2]) * steps
        if self.leave_out_goals:
            weight = jnp.where(spl == 0, 0.0, weight)
        return weight if self.walls else jnp.where(reachable, weight, 0.0)


def _by_action(maps: jax.Array) -> jax.Array:
    """`[..., A]` to `[A, S]`: compilers vectorise loops over all states, not over few actions."""
    return jnp.moveaxis(maps, -1, 0).reshape(maps.shape[-1], -1)


def _sums(
    logits: jax.Array, optimal: jax.Array, accepted: jax.Array, weight: jax.Array
) -> LossSums:
    """The sums over states: logits `[A, M, S]`, sets of actions `[A, S]`, weights `[M, S]`."""
    log_likelihood = _log_sum_exp(jnp.where(accepted[:, None], logits, -jnp.inf))
    log_likelihood -= _log_sum_exp(logits)
    best, correct = logits[0], optimal[0][None]
    for q, is_optimal in zip(logits[1:], optimal[1:], strict=True):
        correct = jnp.where(q > best, is_optimal[None], correct)
        best = jnp.maximum(best, q)
    return LossSums(
        loss=-jnp.sum(weight * log_likelihood),
        weight=jnp.sum(weight),
        correct=jnp.sum(weight * correct.astype(jnp.float32)),
    )


def _log_sum_exp(logits: jax.Array) -> jax.Array:
    """Over the first axis, which is short."""
    best = lax.stop_gradient(functools.reduce(jnp.maximum, logits))
    return best + jnp.log(functools.reduce(operator.add, jnp.exp(logits - best[None])))


def _sums_of_layers(
    layers: LayerPolicies,
    optimal: jax.Array,
    accepted: jax.Array,
    spl: jax.Array,
    weight: jax.Array,
) -> LossSums:
    """Over the policies after some layers, a few at a time: all their logits are never there."""
    steps, weight = spl.reshape(1, -1).astype(jnp.int32), weight.reshape(1, -1)

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def group(total: LossSums, x: tuple[jax.Array, jax.Array]) -> tuple[LossSums, None]:
        values, depths = x
        # In a loop, since what is not stored is made again for everything that uses it.
        logits = lax.map(lambda value: _by_action(layers.read(value).astype(jnp.float32)), values)
        reached = jnp.where(steps <= depths[:, None], weight, 0)
        sums = _sums(jnp.moveaxis(logits, 1, 0), optimal, accepted, reached)
        return jax.tree.map(jnp.add, total, sums), None

    # Groups of one size: the last is filled up with layers that reach nothing.
    number = len(layers.depths)
    size = -(-number // -(-number // _GROUP))
    missing = -number % size
    values = jnp.pad(layers.values, [(0, missing)] + [(0, 0)] * (layers.values.ndim - 1))
    depths = jnp.pad(layers.depths, (0, missing), constant_values=-1)
    groups = (values.reshape(-1, size, *values.shape[1:]), depths.reshape(-1, size))
    zero = LossSums(*(jnp.zeros((), jnp.float32) for _ in LossSums._fields))
    return lax.scan(group, zero, groups)[0]
