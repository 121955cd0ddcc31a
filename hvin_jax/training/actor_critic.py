"""Learning by reward: an actor-critic whose actor is a planner.

A planner plans for all states of a map at once. So each update draws some maps, plans once on each
of them, and lets many agents walk there by that one policy; what they have met with becomes
advantages (GAE), by which the policy is improved a few times with PPO's clipped objective.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from jax import lax

from hvin_jax._memory import check_memory
from hvin_jax.models import init_params
from hvin_jax.models._build import fields_of
from hvin_jax.planner import check_mechanism
from hvin_jax.tasks.environment import MazeEnv
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.run import NotFiniteError
from hvin_jax.training.walks import Walks, advantages, at, of_action, walk

Params = Any
# Of memory for an action, see `Walks`.
_BYTES = 41
# Of log π in an update; beyond it there is no gradient. Only so that ratios can't overflow.
_MOST_CHANGE = 20.0


class Critic(nn.Module):
    """The expected return of all states, from the value map of the planner.

    It reads how far a state is below the best one of its map, which does not depend on how many
    layers values have grown for.

    Attributes:
      hidden: how many units there are between.
    """

    hidden: int = 32

    @nn.compact
    def __call__(self, value: jax.Array) -> jax.Array:
        """Returns `[B, H, W, O]` for a value map `[B, H, W, O]`."""
        # The best has no gradient: the compiler may compute it twice, and where the two round
        # differently, autodiff would divide by the number of states that have it, zero.
        below = value - lax.stop_gradient(value.max((1, 2, 3), keepdims=True))
        hidden = nn.tanh(nn.Dense(self.hidden)(below[..., None]))
        return nn.Dense(1)(hidden)[..., 0]


@dataclasses.dataclass(frozen=True)
class ActorCritic:
    """How to learn by reward.

    Attributes:
      num_maps: maps of an update.
      num_agents: agents on each of them.
      num_steps: actions of each agent.
      discount: γ, what a reward is worth an action earlier.
      trace: λ of the advantages: 0 trusts the critic, 1 what has come out.
      epochs: how often an update goes over what was met with; with 1 it is A2C.
      clip: how far PPO lets the probability of an action change in an update, as a share.
      entropy: the weight of the bonus for a policy that keeps trying.
      critic: the weight of the critic's squared error.
    """

    num_maps: int = 32
    num_agents: int = 16
    num_steps: int = 32
    discount: float = 0.97
    trace: float = 0.9
    epochs: int = 4
    clip: float = 0.2
    entropy: float = 0.02
    critic: float = 0.5

    def __post_init__(self) -> None:
        for name in ("num_maps", "num_agents", "num_steps", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 to 1")
        for name in ("clip", "entropy", "critic"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 0 or more")
        actions = self.num_maps * self.num_agents * self.num_steps
        check_memory(_BYTES * actions, f"an update of {actions:,} actions")


class Learner(NamedTuple):
    """The state of the learning.

    Attributes:
      params: `{"planner": ..., "critic": ...}`.
      opt_state: of the optimiser.
    """

    params: Params
    opt_state: Any


class Report(NamedTuple):
    """How an update went, or the means over some.

    Attributes:
      reward: the mean over actions.
      entropy: of the policy where agents were, in nats, before it was improved.
      loss: then.
    """

    reward: Any
    entropy: Any
    loss: Any


class Progress(NamedTuple):
    """How far the learning has come.

    Attributes:
      updates: how many there have been.
      params: of the planner.
      report: the means over the updates since the last time; None before the first.
    """

    updates: int
    params: Params
    report: Report | None


def make_update(
    model: Any, critic: Critic, optimizer: optax.GradientTransformation, settings: ActorCritic
) -> Callable[[Learner, MazeEnv, jax.Array], tuple[Learner, Report]]:
    """A function that makes one update, pure: for `jit`, `scan`, or `vmap` over learners.

    Args:
      model: a planner of `hvin_jax.models` that returns a value map.
      critic: what makes expected returns of it.
      optimizer: for the parameters of both.
      settings: see there.

    Returns:
      A function of the learner, the environment and a key, which is consumed.
    """

    def look(params: Params, env: MazeEnv, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits `[M, H, W, O, A]` and expected returns `[M, H, W, O]` of maps."""
        costs = {} if env.cost is None or not model.terrain else {"cost": env.cost[:, 0]}
        plan = model.apply(
            params["planner"],
            env.maze[:, 0],
            env.goal[:, 0],
            train=True,
            rngs={"exploration": key},
            **costs,
        )
        values: Any = critic.apply(params["critic"], plan.value)
        return plan.logits, values

    def loss(
        params: Params, env: MazeEnv, key: jax.Array, walks: Walks, gain: jax.Array, aim: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        logits, values = look(params, env, key)
        log_probs = jax.vmap(at)(jax.nn.log_softmax(logits), walks.agent)
        change = of_action(log_probs, walks.action) - walks.log_prob
        ratio = jnp.exp(jnp.clip(change, -_MOST_CHANGE, _MOST_CHANGE))
        clipped = jnp.clip(ratio, 1 - settings.clip, 1 + settings.clip)
        better = jnp.minimum(ratio * gain, clipped * gain).mean()
        error = jnp.square(jax.vmap(at)(values, walks.agent) - aim).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return settings.critic * error - better - settings.entropy * entropy, entropy

    def update(learner: Learner, env: MazeEnv, key: jax.Array) -> tuple[Learner, Report]:
        of_maps, of_walks, of_noise = jax.random.split(key, 3)
        index = jax.random.randint(of_maps, (settings.num_maps,), 0, env.num_mazes)
        maps = jax.vmap(env.only)(index)
        logits, values = look(learner.params, maps, of_noise)

        def walk_there(env: MazeEnv, logits: jax.Array, key: jax.Array) -> Walks:
            counts = {"num_agents": settings.num_agents, "num_steps": settings.num_steps}
            return walk(env, logits, key, **counts)

        keys = jax.random.split(of_walks, settings.num_maps)
        walks = jax.vmap(walk_there)(maps, logits, keys)  # [M, T, K, ...]
        value, next_value = (jax.vmap(at)(values, x) for x in (walks.agent, walks.next_agent))
        gain = jax.vmap(lambda *x: advantages(*x, trace=settings.trace))(
            walks.reward, settings.discount * walks.discount, walks.last, value, next_value
        )
        aim = gain + value
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)

        def improve(learner: Learner, _: None) -> tuple[Learner, tuple[jax.Array, jax.Array]]:
            result, grads = jax.value_and_grad(loss, has_aux=True)(
                learner.params, maps, of_noise, walks, gain, aim
            )
            changes, opt_state = optimizer.update(grads, learner.opt_state, learner.params)
            return Learner(optax.apply_updates(learner.params, changes), opt_state), result

        learner, (losses, entropies) = lax.scan(improve, learner, None, length=settings.epochs)
        return learner, Report(walks.reward.mean(), entropies[0], losses[0])

    return update


def learn(
    key: jax.Array,
    model: Any,
    env: MazeEnv,
    settings: ActorCritic,
    *,
    num_updates: int,
    every: int,
    learning_rate: float = 3e-3,
) -> Iterator[Progress]:
    """Trains a planner by reward, with Adam and a learning rate that falls to zero by a cosine.

    for progress in learn(key, model, env, ActorCritic(), num_updates=600, every=50):
        ...  # progress.params are those of the planner

    Args:
      key: a typed PRNG key, which is consumed.
      model: a planner of `hvin_jax.models` that returns a value map, for agents that move so.
      env: where to learn, with `auto_reset`.
      settings: how.
      num_updates: how many updates to make.
      every: after how many updates to yield.
      learning_rate: at first.

    Yields:
      How far it has come, for the first time before any update.
    """
    if num_updates < 1 or every < 1:
        raise ValueError(f"num_updates is {num_updates}, every {every}: expected 1 or more")
    if not env.auto_reset:
        raise ValueError("the environment has auto_reset=False, but agents are to go on")
    if not hasattr(model, "latent"):
        raise ValueError(f"a {type(model).__name__} has no value map, which the critic reads")
    check_mechanism(fields_of(model), env.mechanism)
    critic = Critic()
    optimizer = make_optimizer(
        "adam",
        learning_rate=learning_rate,
        clip_norm=1.0,
        schedule="cosine",
        num_steps=num_updates * settings.epochs,
    )
    update = make_update(model, critic, optimizer, settings)

    @jax.jit
    def updates(learner: Learner, env: MazeEnv, keys: jax.Array) -> tuple[Learner, Report]:
        learner, reports = lax.scan(lambda x, key: update(x, env, key), learner, keys)
        return learner, jax.tree.map(jnp.mean, reports)

    @jax.jit
    def first_learner(of_planner: jax.Array, of_critic: jax.Array) -> Learner:
        value = jnp.zeros((1, 4, 4, model.num_orientations))
        critic_params = critic.init(of_critic, value)
        params = {"planner": init_params(model, of_planner), "critic": critic_params}
        return Learner(params, optimizer.init(params))

    of_planner, of_critic, of_updates = jax.random.split(key, 3)
    learner = first_learner(of_planner, of_critic)
    yield Progress(0, learner.params["planner"], None)
    for first in range(0, num_updates, every):
        numbers = jnp.arange(first, min(first + every, num_updates))
        keys = jax.vmap(jax.random.fold_in, (None, 0))(of_updates, numbers)
        learner, report = updates(learner, env, keys)
        report = Report(*map(float, report))
        if not math.isfinite(report.loss):
            raise NotFiniteError(
                f"the loss is {report.loss} within the first {first + len(numbers)} updates: try a "
                f"lower learning_rate than {learning_rate}"
            )
        yield Progress(first + len(numbers), learner.params["planner"], report)
