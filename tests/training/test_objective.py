"""What training minimises and how: losses, optimisers, schedules."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from hvin_jax.models import LayerPolicies, PlannerOutput
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.maze_task import training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer, make_schedule, tree_norm


@pytest.fixture(scope="module")
def mazes():
    """Eight mazes to train on, and none else."""
    law, mechanism = MazeLaw((7, 7)), get_mechanism("diffdrive")
    return make_mazes(law=law, mechanism=mechanism, train=8, valid=0, test=0, seed=1).train


def _oracle_loss(logits, mazes, *, walls, any_optimal, long_paths=0.0):
    total = weight_sum = 0.0
    for index in np.ndindex(mazes.label.shape):
        spl = int(mazes.spl[index])
        if spl == UNREACHABLE and not walls:
            continue
        policy = np.exp(logits[index]) / np.exp(logits[index]).sum()
        chosen = [a for a in range(3) if mazes.optimal[index] >> a & 1]
        likelihood = policy[chosen].sum() if any_optimal else policy[mazes.label[index]]
        weight = 1 + long_paths * (0 if spl == UNREACHABLE else spl) / 14
        total -= weight * np.log(likelihood)
        weight_sum += weight
    return total, weight_sum


@pytest.mark.parametrize("walls", [True, False])
@pytest.mark.parametrize("any_optimal", [True, False])
@pytest.mark.parametrize("long_paths", [0.0, 2.0])
def test_loss_equals_the_oracle(mazes, walls, any_optimal, long_paths):
    part = mazes[:2]
    logits = np.random.default_rng(0).normal(size=(*part.label.shape, 3)).astype(np.float32)
    batch = {name: jnp.asarray(x) for name, x in training_arrays(part).items()}
    options = {"walls": walls, "any_optimal": any_optimal, "long_paths": long_paths}
    sums = Imitation(**options)(PlannerOutput(jnp.asarray(logits)), batch)
    loss, weight = _oracle_loss(logits, part, **options)
    np.testing.assert_allclose(sums.loss, loss, rtol=1e-5)
    np.testing.assert_allclose(sums.weight, weight, rtol=1e-5)


def test_labels_are_all_correct(mazes):
    batch = {name: jnp.asarray(x) for name, x in training_arrays(mazes).items()}
    sums = Imitation()(PlannerOutput(jax.nn.one_hot(batch["label"], 3)), batch)
    assert float(sums.correct) == float(sums.weight) > 0


@pytest.mark.parametrize("number", [1, 3, 13])
def test_adaptive_highway_loss(mazes, number):
    """The policy after n layers counts where the goal is at most n actions away."""
    part, depths = mazes[:2], range(4, 4 + number)
    logits = np.random.default_rng(0).normal(size=(number, *part.label.shape, 3))
    batch = {name: jnp.asarray(x) for name, x in training_arrays(part).items()}
    # Values that are logits already.
    layers = LayerPolicies(
        jnp.asarray(logits, jnp.float32), jnp.array(depths), Partial(lambda x: x)
    )
    output = PlannerOutput(layers.values[-1], layers=layers)
    sums = Imitation(any_optimal=True, policies_every=1)(output, batch)
    expected = np.zeros(2)
    for depth, policy in zip(depths, logits, strict=True):
        spl = np.where(part.spl <= depth, part.spl, UNREACHABLE)
        reached = dataclasses.replace(part, spl=spl)
        expected += _oracle_loss(policy, reached, walls=False, any_optimal=True)
    np.testing.assert_allclose((sums.loss, sums.weight), expected, rtol=1e-5)


@pytest.mark.parametrize("any_optimal", [True, False])
def test_gradient_where_policies_are_sure_and_wrong(mazes, any_optimal):
    """However unlikely what is right, the gradient is the difference of two policies."""
    part = mazes[:2]
    logits = 1e4 * np.random.default_rng(0).normal(size=(*part.label.shape, 3))
    batch = {name: jnp.asarray(x) for name, x in training_arrays(part).items()}
    objective = Imitation(any_optimal=any_optimal)
    grad = jax.grad(lambda logits: objective(PlannerOutput(logits), batch).loss)(
        jnp.asarray(logits, jnp.float32)
    )
    bits = part.optimal if any_optimal else 1 << part.label
    accepted = bits[..., None] >> np.arange(3) & 1 == 1
    best = np.where(accepted, logits, -np.inf).argmax(-1)
    expected = (np.eye(3)[logits.argmax(-1)] - np.eye(3)[best]) * (
        part.spl[..., None] != UNREACHABLE
    )
    assert np.abs(expected).sum() > 100
    np.testing.assert_allclose(grad, expected, atol=1e-6)


def test_impossible_losses_are_refused():
    with pytest.raises(ValueError, match="long_paths is -1"):
        Imitation(long_paths=-1.0)
    with pytest.raises(ValueError, match="policies_every is -1"):
        Imitation(policies_every=-1)
    with pytest.raises(ValueError, match="walls have none"):
        Imitation(walls=True, policies_every=5)


def test_protocol_optimiser_by_hand():
    optimizer = make_optimizer(clip_norm=None)
    gradient, second, param = 3.0, 0.0, 1.0
    state = optimizer.init(jnp.asarray(param))
    for _ in range(3):
        update, state = optimizer.update(jnp.asarray(gradient), state)
        second = 0.99 * second + 0.01 * gradient**2
        np.testing.assert_allclose(update, -1e-3 * gradient / (second**0.5 + 1e-6), rtol=1e-5)


@pytest.mark.parametrize("plain_norm", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e2, 1e25, 1e36])
def test_clipping(size, plain_norm):
    optimizer = make_optimizer("sgd", learning_rate=1.0, clip_norm=40.0, plain_norm=plain_norm)
    gradient = {"a": jnp.array([3.0 * size]), "b": jnp.array([[0.0, 4.0 * size]])}
    update, _ = optimizer.update(gradient, optimizer.init(gradient))
    kept = 0.0 if plain_norm and size > 1e19 else min(size, 8.0)
    np.testing.assert_allclose(update["a"], [-3.0 * kept], rtol=1e-6)
    np.testing.assert_allclose(update["b"], [[0.0, -4.0 * kept]], rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "norm"),
    [([0.0, 0.0], 0.0), ([3e-30, -4e-30], 5e-30), ([3e30, -4e30], 5e30), ([], 0.0)],
)
def test_norm_of_very_small_and_large_gradients(values, norm):
    np.testing.assert_allclose(
        tree_norm({"a": jnp.array(values), "b": jnp.zeros(())}), norm, rtol=1e-6
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_norm_of_what_is_not_finite(value):
    assert not np.isfinite(tree_norm([jnp.array([1.0, value]), jnp.ones(2)]))


def test_schedules():
    linear = make_schedule("linear", 1.0, 10, 110)
    np.testing.assert_allclose([linear(0), linear(5), linear(10), linear(60)], [0, 0.5, 1, 0.5])
    cosine = make_schedule("cosine", 2.0, 0, 100)
    np.testing.assert_allclose([cosine(0), cosine(50), cosine(100)], [2, 1, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "rmspropp"}, "no optimiser 'rmspropp'"),
        ({"name": "chain"}, "no optimiser 'chain'"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"clip_norm": -1.0}, "clip_norm is -1.0"),
        ({"schedule": "cosin"}, "unknown schedule 'cosin'"),
        ({"schedule": "cosine", "num_steps": 5, "warmup_steps": 5}, "more steps than its warm-up"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"options": {"decai": 1}}, "no option decai"),
    ],
)
def test_bad_optimisers(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_optimizer(**arguments)
