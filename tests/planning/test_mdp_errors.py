"""An object that is no MDP is refused by a sentence that names what is wrong with it."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hvin_jax

REWARD = np.zeros(3, np.float32)
ABSENT = object()


def q(mdp, value):
    return jnp.stack([mdp.reward + value, mdp.reward - value], axis=-1)


GOOD = {
    "num_actions": 2,
    "value_shape": (3,),
    "batched": False,
    "q": q,
    "q_of": lambda mdp, value, action: mdp.reward + jnp.where(action == 0, value, -value),
    "greedy": lambda mdp, value: (q(mdp, value).max(-1), q(mdp, value).argmax(-1)),
}


def mdp(reward=REWARD, **changes):
    """An MDP with a member changed, added or taken away."""
    members = {name: x for name, x in (GOOD | changes).items() if x is not ABSENT}
    kind = type("Mine", (), members | {"__annotations__": {"reward": jax.Array}})
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(kind))(reward)


class NotRegistered:
    num_actions, value_shape, batched = 2, (3,), False
    q = q_of = greedy = lambda *_: None


class Fails(NotRegistered):
    @property
    def value_shape(self):
        return self.nothing.shape


def anything(*_):
    return None


# What is wrong with it, and what the message must contain.
BAD_MDPS = {
    "no MDP": (lambda: np.zeros(3), "mdp must be an MDP such as.*ndarray"),
    "nothing": (lambda: None, "mdp must be an MDP such as.*NoneType"),
    "a class": (lambda: hvin_jax.TabularMDP, "got the class TabularMDP itself"),
    "no q": (lambda: mdp(q=ABSENT), "Mine has no member q, which hvin_jax.planning.MDP requires"),
    "Q for q": (lambda: mdp(q=ABSENT, Q=q), "no member q,.*It has Q"),
    "a misspelt member": (lambda: mdp(batched=ABSENT, bached=False), "no member batched.* bached"),
    "no method": (lambda: mdp(greedy=3), "greedy of Mine must be a method, got 3"),
    "a float for an int": (lambda: mdp(num_actions=2.0), "num_actions of Mine.*2.0"),
    "an array for an int": (lambda: mdp(num_actions=jnp.array(2)), "num_actions of Mine.*array"),
    "no action": (lambda: mdp(num_actions=0), "num_actions of Mine.*at least 1, got 0"),
    "a list for a tuple": (lambda: mdp(value_shape=[3]), r"value_shape of Mine.*tuple.*\[3\]"),
    "a shape of floats": (lambda: mdp(value_shape=(3.0,)), r"value_shape of Mine.*\(3.0,\)"),
    "a number for a boolean": (lambda: mdp(batched=1), "batched of Mine must be True or False"),
    "a batch without an axis": (lambda: mdp(batched=True, value_shape=()), "Mine is batched"),
    "a float for an array": (lambda: mdp(1.5), "Mine.reward must be an array, got 1.5 .*float"),
    "a string for an array": (lambda: mdp("one"), "Mine.reward must be an array, got 'one'"),
    "only integers": (lambda: mdp(np.arange(3)), "Mine must have an array of a floating-point"),
    "no array": (lambda: mdp(None), "Mine must have an array of a floating.*no array at all"),
    "not registered": (NotRegistered, "NotRegistered is no JAX pytree.*register_dataclass"),
    "its own failure": (Fails, "no attribute 'nothing'"),
    "half of the fast members": (lambda: mdp(follow=anything), "Mine has follow but no follow_vjp"),
    "the other half": (lambda: mdp(follow_vjp=anything), "Mine has follow_vjp but no follow:"),
    "folow": (lambda: mdp(folow=anything), "Mine has a member folow.*did you mean follow?"),
    "follow_vpj": (
        lambda: mdp(follow=anything, follow_vpj=anything),
        "Mine has a member follow_vpj.*did you mean follow_vjp?",
    ),
    "share_actions": (
        lambda: mdp(share_actions=anything),
        "Mine has a member share_actions.*did you mean sharing_actions?",
    ),
}
# As users call them; what they get besides the MDP is good.
CALLS = {
    "value_iteration": partial(hvin_jax.value_iteration, num_iterations=2),
    "highway_vi": partial(hvin_jax.highway_vi, None, num_blocks=2, block_depth=2),
    "bellman_optimality": lambda mdp: hvin_jax.bellman_optimality(mdp, REWARD),
    "bellman_expectation": lambda mdp: hvin_jax.bellman_expectation(
        mdp, REWARD, np.full((3, 2), 0.5, np.float32)
    ),
    "highway_operator": lambda mdp: hvin_jax.highway_operator(
        mdp, REWARD, np.full((1, 3, 2), 0.5, np.float32), (1, 2), alpha=1.0, alpha_tilde=1.0
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_MDPS.values(), ids=BAD_MDPS.keys())
def test_bad_mdps(make, message):
    for call in CALLS.values():
        with pytest.raises((TypeError, ValueError, AttributeError), match=message):
            call(make())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_good_one_is_not_refused_nor_are_names_of_its_own(call):
    good = mdp(flow=anything, followers=3, actions=anything)
    assert jax.tree.leaves(jax.eval_shape(call, good))


# What only shows when a planner calls its methods.
BAD_METHODS = {
    "greedy without actions": ({"greedy": q}, "greedy must return a value and an action map"),
    "shape of greedy": (
        {"greedy": lambda mdp, value: (value[:2], jnp.zeros(2, int))},
        r"value of greedy must have the shape of.*\(3,\), got \(2,\)",
    ),
    "type of greedy": (
        {"greedy": lambda mdp, value: (value.astype(jnp.bfloat16), jnp.zeros(3, int))},
        "value of greedy must be float32.*bfloat16",
    ),
    "actions of greedy": (
        {"greedy": lambda mdp, value: (value, value)},
        "action map of greedy must hold integers, got float32",
    ),
    "shape of q_of": (
        {"q_of": lambda mdp, value, action: q(mdp, value)},
        r"output of q_of must have the shape of.*\(3,\), got \(3, 2\)",
    ),
}


@pytest.mark.parametrize(("changes", "message"), BAD_METHODS.values(), ids=BAD_METHODS.keys())
def test_bad_methods(changes, message):
    key = jax.random.key(0)
    with pytest.raises((TypeError, ValueError), match=message):
        hvin_jax.highway_vi(key, mdp(**changes), num_blocks=2, block_depth=2)


def test_bad_q_of_all_actions():
    with pytest.raises(ValueError, match=r"output of q must have shape.*\(3, 2\), got \(2, 3\)"):
        hvin_jax.highway_vi(
            None,
            mdp(q=lambda mdp, value: jnp.zeros((2, 3))),
            num_blocks=1,
            block_depth=2,
            policy=lambda q, **_: q,
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"follow": ABSENT}, "Mine, which sharing_actions of Mine returned, has no.* follow,"),
        ({"batched": True}, "must have batched = False"),
        ({"value_shape": (1, 3)}, r"value_shape = \(3,\).*\(1, 3\)"),
    ],
    ids=["no follow", "batched", "shape"],
)
def test_bad_forms_for_shared_actions(changes, message):
    shared = mdp(**({"follow": anything, "follow_vjp": anything} | changes))
    batch = mdp(
        np.zeros((2, 3), np.float32),
        batched=True,
        value_shape=(2, 3),
        sharing_actions=lambda _: shared,
    )
    with pytest.raises((TypeError, ValueError), match=message):
        hvin_jax.highway_vi(
            jax.random.key(0), batch, num_blocks=1, block_depth=2, share_exploration=True
        )
