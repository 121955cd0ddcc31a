"""MDPs are frozen pytrees with a short representation; checks are made by constructors alone."""

import copy
import dataclasses
import pickle

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_mdps import small_conv

import hvin_jax

TABULAR = hvin_jax.TabularMDP(np.full((3, 2, 3), 1 / 3), np.zeros((3, 2, 3)), 0.9)
CONV = small_conv()
MDPS = {"tabular": TABULAR, "conv": CONV, "shared": CONV.sharing_actions()}
each_mdp = pytest.mark.parametrize("mdp", MDPS.values(), ids=MDPS.keys())


@pytest.mark.parametrize(
    ("mdp", "expected"),
    [
        (
            TABULAR,
            "TabularMDP(transition=float32[3,2,3], reward=float32[3,2], discount=float32[])",
        ),
        (CONV, "ConvMDP(q_reward=float32[4,2,3,2,5], kernel=float32[3,3,2,2,5])"),
        (
            CONV.sharing_actions(),
            "SharedConvMDP(q_reward=float32[2,3,2,5,4], rows=float32[3,10,6])",
        ),
    ],
    ids=MDPS.keys(),
)
def test_representation(mdp, expected):
    assert repr(mdp) == expected
    traced = []
    jax.eval_shape(lambda mdp: traced.append(repr(mdp)), mdp)
    assert traced == [expected]
    assert repr(jax.tree.map(lambda _: None, mdp)).count("=None") == len(jax.tree.leaves(mdp))


@each_mdp
def test_equality_is_identity(mdp):
    twin = copy.copy(mdp)
    assert mdp == mdp
    assert mdp != twin
    assert len({mdp, twin}) == 2


@each_mdp
def test_frozen(mdp):
    name = dataclasses.fields(mdp)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mdp, name, 0)


@each_mdp
def test_copies(mdp):
    for twin in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp)), dataclasses.replace(mdp)):
        assert type(twin) is type(mdp)
        chex.assert_trees_all_equal(twin, mdp)


@each_mdp
def test_anything_may_stand_in_the_place_of_arrays(mdp):
    """As in JAX's own transformations: axes, shapes, batches, marks."""
    for mark in (None, object(), "x", 0):
        assert jax.tree.structure(mdp).unflatten([mark] * len(jax.tree.leaves(mdp)))
    axes = jax.tree.map(lambda _: 0, mdp)
    stacked = jax.tree.map(lambda x: jnp.stack([x, x]), mdp)
    chex.assert_trees_all_equal(jax.vmap(lambda mdp: mdp, in_axes=(axes,))(stacked), stacked)
    assert jax.tree.structure(jax.eval_shape(lambda mdp: mdp, mdp)) == jax.tree.structure(mdp)


def test_constructors_under_transformations():
    tables = [np.stack([x, x]) for x in (TABULAR.transition, TABULAR.reward, TABULAR.discount)]
    chex.assert_trees_all_equal(
        jax.jit(jax.vmap(hvin_jax.TabularMDP))(*tables),
        jax.tree.map(lambda x: jnp.stack([x, x]), TABULAR),
    )
    arrays = CONV.q_reward, CONV.kernel
    chex.assert_trees_all_equal(jax.jit(hvin_jax.ConvMDP)(*arrays), CONV)
    shapes = jax.eval_shape(hvin_jax.ConvMDP, *arrays)
    assert (shapes.q_reward.shape, shapes.kernel.shape) == tuple(x.shape for x in arrays)


def test_integer_rewards_take_the_type_of_the_kernel():
    reward = np.arange(8).reshape(1, 2, 4, 1)
    kernel = np.ones((3, 3, 1, 1, 2), np.float32)
    whole = hvin_jax.ConvMDP.from_reward(reward, kernel)
    assert whole.q_reward.dtype == jnp.float32
    chex.assert_trees_all_equal(
        whole, hvin_jax.ConvMDP.from_reward(reward.astype(np.float32), kernel)
    )
