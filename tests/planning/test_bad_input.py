"""Bad input is refused at once, by an error that names the value; bad shapes also under `jit`."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hvin_jax
from hvin_jax.models import GPPN, VIN, HighwayNetwork, HighwayVIN

KEY = jax.random.key(0)
S, A = 3, 2
TRANSITION = np.full((S, A, S), 1 / 3, np.float32)
REWARD = np.zeros((S, A), np.float32)
VALUE = np.zeros(S, np.float32)
POLICY = np.full((S, A), 0.5, np.float32)
Q_REWARD = np.zeros((2, 4, 3, 2, 5), np.float32)
KERNEL = np.zeros((3, 3, 2, 2, 5), np.float32)
REWARD_MAP = np.zeros((2, 4, 3, 2), np.float32)
MAZE, GOAL = np.ones((2, 4, 3)), np.zeros((2, 4, 3, 4))

tabular = hvin_jax.TabularMDP
conv = hvin_jax.ConvMDP


def mdp():
    return tabular(TRANSITION, REWARD, 0.9)


def batched_mdp():
    return conv(Q_REWARD, KERNEL)


def plan(key=None, which=mdp, **settings):
    return hvin_jax.highway_vi(key, which(), **({"num_blocks": 2, "block_depth": 2} | settings))


def operate(policies=POLICY[None], depths=(1, 2), value=VALUE, alpha=1.0, alpha_tilde=1.0):
    return hvin_jax.highway_operator(
        mdp(), value, policies, depths, alpha=alpha, alpha_tilde=alpha_tilde
    )


def shifted(x, amount):
    x = x.copy()
    x.flat[0] += amount
    return x


def init(model, maze=MAZE, goal=GOAL, **settings):
    rngs = {"params": KEY, "exploration": KEY}
    return model.init(rngs, maze, goal, train=True, **settings)


def stacked():
    """Two MDPs in one, as `jax.vmap` makes them and takes them apart."""
    return jax.vmap(lambda reward: tabular(TRANSITION, reward, 0.9))(jnp.stack([REWARD, REWARD]))


BAD_VALUES = {
    "several MDPs in one": (
        lambda: hvin_jax.value_iteration(stacked(), num_iterations=3),
        "of several MDPs in one, made by jax.vmap",
    ),
    "a temperature that is no number": (lambda: plan(KEY, alpha=jnp.nan), "alpha must be a number"),
    "probabilities above one": (lambda: tabular(TRANSITION * 1.1, REWARD, 0.9), "1.1"),
    "one bad distribution": (lambda: tabular(shifted(TRANSITION, 0.2), REWARD, 0.9), "1.2"),
    "negative probability": (
        lambda: tabular(shifted(TRANSITION, -0.75), REWARD, 0.9),
        "minimum of -0.4166",
    ),
    "probability not a number": (lambda: tabular(TRANSITION * np.nan, REWARD, 0.9), "nan"),
    "discount above one": (lambda: tabular(TRANSITION, REWARD, 1.01), "discount.*1.01"),
    "discount below zero": (lambda: tabular(TRANSITION, REWARD, -0.25), "discount.*-0.25"),
    "discount not a number": (lambda: tabular(TRANSITION, REWARD, np.nan), "discount.*nan"),
    "policy": (
        lambda: hvin_jax.bellman_expectation(mdp(), VALUE, POLICY * 0.5),
        "policy must sum to one.*0.5",
    ),
    "policies": (lambda: operate(policies=POLICY[None] * 3), "policies must sum to one.*3.0"),
    "no depth": (lambda: operate(depths=()), "depths.*none"),
    "depth zero": (lambda: operate(depths=(2, 0)), "depths.*at least 1, got 0"),
    "depth a float": (lambda: operate(depths=(2.5,)), "depths.*int.*2.5"),
    "no iteration": (
        lambda: hvin_jax.value_iteration(mdp(), num_iterations=0),
        "num_iterations.*at least 1, got 0",
    ),
    "half an iteration": (
        lambda: hvin_jax.value_iteration(mdp(), num_iterations=0.5),
        "num_iterations.*int.*0.5",
    ),
    "epsilon above one": (lambda: plan(KEY, epsilon=1.5), "epsilon.*1.5"),
    "epsilon below zero": (lambda: plan(KEY, epsilon=-0.1), "epsilon.*-0.1"),
    "epsilon not a number": (lambda: plan(KEY, epsilon=np.nan), "epsilon.*nan"),
    "epsilon array": (lambda: plan(KEY, epsilon=jnp.float32(2.0)), "epsilon.*2.0"),
    "epsilon in evaluation": (lambda: plan(None, epsilon=7.0), "epsilon.*7.0"),
    "no block": (lambda: plan(num_blocks=0), "num_blocks.*at least 1, got 0"),
    "negative depth": (lambda: plan(block_depth=-3), "block_depth.*at least 1, got -3"),
    "no policy": (lambda: plan(num_policies=0), "num_policies.*at least 1, got 0"),
    "depth of a block a float": (lambda: plan(block_depth=2.0), "block_depth.*int.*2.0"),
    "blocks a boolean": (lambda: plan(num_blocks=True), "num_blocks.*int.*True"),
    "blocks an array": (lambda: plan(num_blocks=jnp.array(3)), "num_blocks.*int.*3"),
    "old-style key": (lambda: plan(jax.random.PRNGKey(0)), "typed key.*uint32"),
    "a seed for a key": (lambda: plan(17), "key.*17"),
    "examples of a tabular MDP": (lambda: plan(KEY, example_index=np.arange(S)), "example_index"),
    "indices that are no integers": (
        lambda: plan(KEY, batched_mdp, example_index=np.array([0.5, 1.5], np.float32)),
        "example_index.*float32",
    ),
    "types of q_reward and kernel": (
        lambda: conv(Q_REWARD.astype(np.float16), KERNEL),
        "q_reward and kernel.*float16 and float32",
    ),
    "no state": (
        lambda: tabular(np.zeros((0, A, 0)), np.zeros((0, A)), 0.9),
        r"transition must not be empty.*\(0, 2, 0\)",
    ),
    "no example": (lambda: conv(Q_REWARD[:0], KERNEL), r"q_reward must not be empty.*\(0, 4, 3"),
    "integer rewards": (
        lambda: conv(Q_REWARD.astype(np.int32), KERNEL.astype(np.int32)),
        "q_reward.*int32",
    ),
    "even value kernel": (
        lambda: conv.from_reward(REWARD_MAP, np.zeros((2, 2, 2, 2, 5), np.float32)),
        "value_kernel must be odd.*2",
    ),
    "type of v0": (lambda: plan(v0=np.zeros(S, np.int32)), "v0.*int32"),
    "epsilon of a model": (lambda: init(HighwayVIN(epsilon=1.25)), "epsilon.*1.25"),
    "even kernel of a model": (lambda: init(VIN(kernel_size=4)), "kernel_size must be odd.*4"),
    "even kernel of GPPN": (lambda: init(GPPN(kernel_size=2)), "kernel_size must be odd.*2"),
    "kernel of side zero": (lambda: init(VIN(kernel_size=0)), "kernel_size.*0"),
    "no latent action": (lambda: init(VIN(latent_actions=0)), "latent_actions.*0"),
    "no orientation": (lambda: init(VIN(num_orientations=0)), "num_orientations.*0"),
    "no action": (lambda: init(GPPN(num_actions=0)), "num_actions.*0"),
    "no hidden channel": (lambda: init(GPPN(hidden=-1)), "hidden.*-1"),
    "depth of VIN": (lambda: init(VIN(depth=0)), r"\bdepth.*at least 1, got 0"),
    "depth of GPPN": (lambda: init(GPPN(depth=0)), r"\bdepth.*at least 1, got 0"),
    "blocks of a network": (lambda: init(HighwayNetwork(num_blocks=0)), "num_blocks.*0"),
    "blocks of a model": (lambda: init(HighwayVIN(num_blocks=0)), "num_blocks.*0"),
    "block depth of a model": (lambda: init(HighwayVIN(block_depth=0)), "block_depth.*0"),
    "block depth with a learned policy": (
        lambda: init(HighwayVIN(block_depth=0, learned_policy=True)),
        "block_depth.*0",
    ),
    "policies of a model": (lambda: init(HighwayVIN(num_policies=0)), "num_policies.*0"),
}


@pytest.mark.parametrize(("call", "message"), BAD_VALUES.values(), ids=BAD_VALUES.keys())
def test_bad_values(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


# What is called, with which arrays, and the shape that the message must show.
BAD_SHAPES = {
    "transition of rank 2": (lambda x: tabular(x, REWARD, 0.9), TRANSITION[0], "transition"),
    "transition of rank 0": (lambda x: tabular(x, REWARD, 0.9), np.float32(1), "transition"),
    "transition not square": (
        lambda x: tabular(x, REWARD, 0.9),
        np.full((S, A, 4), 0.25),
        "transition",
    ),
    "reward of rank 1": (lambda x: tabular(TRANSITION, x, 0.9), REWARD[0], "reward"),
    "reward of other actions": (lambda x: tabular(TRANSITION, x, 0.9), REWARD[:, :1], "reward"),
    "reward of other states": (
        lambda x: tabular(TRANSITION, x, 0.9),
        np.zeros((S, A, S + 1)),
        "reward",
    ),
    "discount of rank 1": (lambda x: tabular(TRANSITION, REWARD, x), np.ones(S), "discount"),
    "value": (lambda x: hvin_jax.bellman_optimality(mdp(), x), np.zeros(S + 1), "value"),
    "value of an expectation": (
        lambda x: hvin_jax.bellman_expectation(mdp(), x, POLICY),
        np.zeros((1, S)),
        "value",
    ),
    "policy": (
        lambda x: hvin_jax.bellman_expectation(mdp(), VALUE, x),
        POLICY[None],
        "policy",
    ),
    "policies without their axis": (lambda x: operate(policies=x), POLICY, "policies"),
    "no policies": (lambda x: operate(policies=x), POLICY[None][:0], "policies"),
    "a policy that is a number": (lambda x: operate(policies=x), np.float32(1), "policies"),
    "alpha of the operator": (lambda x: operate(alpha=x), np.ones(2, np.float32), "alpha"),
    "v0 of value iteration": (
        lambda x: hvin_jax.value_iteration(mdp(), num_iterations=2, v0=x),
        np.zeros(1),
        "v0",
    ),
    "v0": (lambda x: plan(v0=x), VALUE[None], "v0"),
    "v0 of the latent MDP": (lambda x: plan(which=batched_mdp, v0=x), REWARD_MAP[0], "v0"),
    "epsilon": (lambda x: plan(KEY, epsilon=x), np.ones(2, np.float32), "epsilon"),
    "alpha": (lambda x: plan(alpha=x), np.ones(3), "alpha"),
    "alpha of rank 2": (lambda x: plan(alpha=x), np.ones((2, 1)), "alpha"),
    "alpha_tilde": (lambda x: plan(alpha_tilde=x), np.ones(1), "alpha_tilde"),
    "example_index": (
        lambda x: plan(KEY, batched_mdp, example_index=x),
        np.arange(3),
        "example_index",
    ),
    "example_index of rank 0": (
        lambda x: plan(KEY, batched_mdp, example_index=x),
        np.int32(0),
        "example_index",
    ),
    "example_index in shared exploration": (
        lambda x: plan(KEY, batched_mdp, example_index=x, share_exploration=True),
        np.arange(3),
        "example_index",
    ),
    "policy's output": (
        lambda x: plan(policy=lambda q, **_: x),
        np.ones((A, S), np.float32),
        "policy",
    ),
    "gate's output": (
        lambda x: plan(depth_gate=lambda values, **_: x),
        np.ones((S,), np.float32),
        "gate",
    ),
    "q_reward": (lambda x: conv(x, KERNEL), Q_REWARD[0], "q_reward"),
    "kernel of rank 4": (lambda x: conv(Q_REWARD, x), KERNEL[0], "kernel"),
    "kernel not square": (lambda x: conv(Q_REWARD, x), KERNEL[:1], "kernel"),
    "kernel of other orientations": (lambda x: conv(Q_REWARD, x), KERNEL[:, :, :1], "kernel"),
    "kernel of other actions": (lambda x: conv(Q_REWARD, x), KERNEL[..., :4], "kernel"),
    "reward map": (lambda x: conv.from_reward(x, KERNEL), REWARD_MAP[0], "reward"),
    "tied kernel": (lambda x: conv.from_reward(REWARD_MAP, x), KERNEL[0], "kernel"),
    "tied kernel a number": (lambda x: conv.from_reward(REWARD_MAP, x), np.float32(1), "kernel"),
    "reward kernel": (
        lambda x: conv.from_reward(REWARD_MAP, KERNEL, x),
        KERNEL[:, :, 0],
        "reward_kernel",
    ),
    "value kernel": (
        lambda x: conv.from_reward(REWARD_MAP, x, KERNEL),
        KERNEL[..., :2],
        "kernel",
    ),
    "maze": (lambda x: init(VIN(), maze=x), MAZE[0], "maze"),
    "maze of GPPN": (lambda x: init(GPPN(), maze=x), MAZE[..., None], "maze"),
    "goal": (lambda x: init(HighwayVIN(), goal=x), GOAL[:, :3], "goal"),
    "goal without orientations": (lambda x: init(GPPN(), goal=x), GOAL[..., 0], "goal"),
    "goal of other orientations": (
        lambda x: init(HighwayNetwork(), goal=x),
        GOAL[..., :1],
        "goal",
    ),
    "example_index of a model": (
        lambda x: init(HighwayVIN(), example_index=x),
        np.arange(4),
        "example_index",
    ),
}


@pytest.mark.parametrize(
    "transform", [lambda f: f, partial(partial, jax.eval_shape)], ids=["eager", "traced"]
)
@pytest.mark.parametrize(("call", "array", "name"), BAD_SHAPES.values(), ids=BAD_SHAPES.keys())
def test_bad_shapes(transform, call, array, name):
    array = jnp.asarray(array)
    message = rf"{name}\b.*{re.escape(str(array.shape))}"
    with pytest.raises((ValueError, TypeError), match=message):
        transform(call)(array)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: conv(Q_REWARD, x),
        lambda x: conv.from_reward(REWARD_MAP, x),
        lambda x: conv.from_reward(REWARD_MAP, KERNEL, x),
    ],
    ids=["kernel", "tied kernel", "reward kernel"],
)
@pytest.mark.parametrize("size", [2, 4])
def test_even_kernels(call, size):
    kernel = jnp.zeros((size, size, 2, 2, 5))
    for transform in (lambda f: f, partial(partial, jax.eval_shape)):
        with pytest.raises(ValueError, match=f"kernel must be odd.*{size}"):
            transform(call)(kernel)


def test_values_are_not_looked_at_while_tracing():
    """What cannot be known while tracing must not stand in the way either."""

    @jax.jit
    def trace(transition, discount, epsilon, policy):
        mdp = tabular(transition, REWARD, discount)
        value = hvin_jax.bellman_expectation(mdp, VALUE, policy)
        return hvin_jax.highway_vi(
            KEY, mdp, num_blocks=1, block_depth=2, v0=value, epsilon=epsilon
        ).value

    assert trace(TRANSITION, 0.9, 0.5, POLICY).shape == (S,)
