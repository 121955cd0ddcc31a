"""One step: what it minimises, that it learns, that devices and seeds do not change it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, PartitionSpec

from hvin_jax.models import VIN, HighwayVIN, PlannerOutput
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training import batches, devices
from hvin_jax.training.evaluation import (
    evaluate_policy,
    greedy_policy,
    planner_arrays,
    training_arrays,
)
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer, make_schedule
from hvin_jax.training.state import create_state
from hvin_jax.training.step import goal_maps, make_eval_step, make_train_step, maze_forward


@pytest.fixture(scope="module")
def mazes():
    """Eight mazes to train on, and none else."""
    law, mechanism = MazeLaw((7, 7)), get_mechanism("diffdrive")
    return make_mazes(law=law, mechanism=mechanism, train=8, valid=0, test=0, seed=1).train


def _model(**changes):
    return HighwayVIN(num_blocks=3, block_depth=3, latent_actions=8, hidden=8, **changes)


def _state(model, mazes, optimizer, seed=0):
    maps = goal_maps(jnp.asarray(mazes.goal), mazes.size, 4)
    params_key, noise_key = jax.random.split(jax.random.key(seed))
    params = model.init(params_key, jnp.asarray(mazes.maze), maps, train=False)
    # The kernel of the values starts at zero, which would hide the noise from the first step.
    params["params"]["value_kernel"] += 0.01
    return create_state(noise_key, params, optimizer)


def _setup(mazes, axis_name=None, optimizer=None, **changes):
    model = _model(**changes)
    optimizer = optimizer or make_optimizer()
    step = make_train_step(maze_forward(model), Imitation(), optimizer, axis_name=axis_name)
    return step, _state(model, mazes, optimizer), training_arrays(mazes)


def _assert_close(first, second, rtol=1e-4):
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


# The objective.


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


def test_negative_weight_is_refused():
    with pytest.raises(ValueError, match="long_paths is -1"):
        Imitation(long_paths=-1.0)


# Optimisers.


def test_protocol_optimiser_by_hand():
    optimizer = make_optimizer(clip_norm=None)
    gradient, second, param = 3.0, 0.0, 1.0
    state = optimizer.init(jnp.asarray(param))
    for _ in range(3):
        update, state = optimizer.update(jnp.asarray(gradient), state)
        second = 0.99 * second + 0.01 * gradient**2
        np.testing.assert_allclose(update, -1e-3 * gradient / (second**0.5 + 1e-6), rtol=1e-5)


def test_clipping():
    optimizer = make_optimizer("sgd", learning_rate=1.0, clip_norm=40.0)
    gradient = jnp.array([300.0, 400.0])
    update, _ = optimizer.update(gradient, optimizer.init(gradient))
    np.testing.assert_allclose(update, [-24.0, -32.0], rtol=1e-6)


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


# The step.


def test_it_learns_a_tiny_set(mazes):
    step, state, arrays = _setup(mazes, optimizer=make_optimizer(learning_rate=5e-3))
    step = jax.jit(step)
    for _ in range(300):
        state, metrics = step(state, arrays)
    assert float(metrics.loss) < 0.2
    assert float(metrics.accuracy) > 0.95


def test_what_was_learned_finds_the_goal(mazes):
    model = VIN(depth=12, latent_actions=16, hidden=8)
    optimizer = make_optimizer()
    objective = Imitation(any_optimal=True)
    step = jax.jit(make_train_step(maze_forward(model), objective, optimizer))
    state = _state(model, mazes, optimizer)
    for _ in range(300):
        state, _ = step(state, training_arrays(mazes))
    eval_step = devices.pmap_eval_step(make_eval_step(maze_forward(model)))
    policy = greedy_policy(eval_step, state.params, planner_arrays(mazes), batch_size=8)
    evaluation = evaluate_policy(policy, mazes)
    assert evaluation.scores.success_rate > 0.95
    assert evaluation.constant_action is None


@pytest.mark.parametrize("count", [1, 4])
def test_devices_do_not_change_a_step(mazes, count):
    alone, state, arrays = _setup(mazes)
    expected = state
    for _ in range(2):
        expected, expected_metrics = jax.jit(alone)(expected, arrays)
    step, _, _ = _setup(mazes, axis_name=devices.BATCH_AXIS)
    step = devices.pmap_train_step(step, jax.devices()[:count])
    for _ in range(2):
        state, metrics = step(state, devices.split(arrays, count))
    _assert_close(metrics, expected_metrics)
    _assert_close(state.params, expected.params)
    assert int(state.step) == 2


def test_shards_agree_under_shard_map(mazes):
    """`pmap` with `out_axes=None` would hide a forgotten sum over devices; this does not."""
    step, state, arrays = _setup(mazes, axis_name=devices.BATCH_AXIS)
    mesh = jax.make_mesh((4,), (devices.BATCH_AXIS,), axis_types=(AxisType.Auto,))

    def local(state, batch):
        new, metrics = step(state, batch)
        return jax.tree.map(lambda x: x[None], (new.params, metrics))

    sharded = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(devices.BATCH_AXIS)),
        out_specs=PartitionSpec(devices.BATCH_AXIS),
        check_vma=False,
    )
    params, metrics = jax.jit(sharded)(state, {k: jnp.asarray(v) for k, v in arrays.items()})
    alone, _, _ = _setup(mazes)
    expected, expected_metrics = jax.jit(alone)(state, arrays)
    for shard in range(4):
        at = jax.tree.map(lambda x, shard=shard: x[shard], (params, metrics))
        _assert_close(at, (expected.params, expected_metrics))
        first = jax.tree.map(lambda x: x[0], (params, metrics))
        assert jax.tree.all(jax.tree.map(lambda x, y: (x == y).all(), at, first))


def test_noise_depends_on_the_step(mazes):
    step, state, arrays = _setup(mazes)
    later = dataclasses.replace(state, step=state.step + 1)
    losses = [float(jax.jit(step)(x, arrays)[1].loss) for x in (state, state, later)]
    assert losses[0] == losses[1] != losses[2]


def test_several_seeds_at_once(mazes):
    step, _, arrays = _setup(mazes)
    states = [_state(_model(), mazes, make_optimizer(), seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    together, metrics = jax.jit(jax.vmap(step, in_axes=(0, None)))(stacked, arrays)
    for index, state in enumerate(states):
        alone, alone_metrics = jax.jit(step)(state, arrays)
        _assert_close(metrics.loss[index], alone_metrics.loss)
        _assert_close(jax.tree.map(lambda x, i=index: x[i], together.params), alone.params)


def test_not_finite_changes_nothing(mazes):
    step, state, arrays = _setup(mazes)
    broken = jax.tree.map(lambda x: x, state.params)
    broken["params"]["policy"] = broken["params"]["policy"].at[0, 0].set(jnp.nan)
    state = dataclasses.replace(state, params=broken)
    new, metrics = jax.jit(step)(state, arrays)
    assert not metrics.finite
    assert int(new.skipped) == int(new.step) == 1
    for x, y in zip(
        jax.tree.leaves((new.params, new.opt_state)),
        jax.tree.leaves((state.params, state.opt_state)),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)


def test_one_trace(mazes):
    step, state, arrays = _setup(mazes)
    traces = 0

    def counted(state, batch):
        nonlocal traces
        traces += 1
        return step(state, batch)

    jitted = jax.jit(counted)
    for _ in range(3):
        state, _ = jitted(state, arrays)
    assert traces == 1


def test_bfloat16_keeps_float32_parameters(mazes):
    step, state, arrays = _setup(mazes, dtype="bfloat16")
    new, metrics = jax.jit(step)(state, arrays)
    plain, _, _ = _setup(mazes)
    _, expected = jax.jit(plain)(state, arrays)
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(new.params))
    assert float(metrics.loss) == pytest.approx(float(expected.loss), rel=0.02)
    assert float(metrics.loss) != float(expected.loss)


def test_unknown_dtype_is_refused(mazes):
    with pytest.raises(ValueError, match="got 'float8'"):
        _setup(mazes, dtype="float8")


def test_constant_policy_is_noticed(mazes):
    constant = evaluate_policy(np.full(mazes.label.shape, 2, np.uint8), mazes)
    assert constant.constant_action == 2
    assert evaluate_policy(mazes.label, mazes).constant_action is None


# Exported for other devices.


def test_paper_size_step_lowers_for_cuda():
    model = HighwayVIN(num_blocks=30, block_depth=10, latent_actions=100)
    optimizer = make_optimizer()
    step = make_train_step(
        maze_forward(model), Imitation(), optimizer, axis_name=devices.BATCH_AXIS
    )

    def init(key):
        maze, goal = jnp.zeros((1, 25, 25)), jnp.zeros((1, 25, 25, 4))
        return create_state(key, model.init(key, maze, goal, train=False), optimizer)

    state = jax.eval_shape(init, jax.random.key(0))
    batch = {
        "maze": jax.ShapeDtypeStruct((2, 16, 25, 25), jnp.uint8),
        "goal": jax.ShapeDtypeStruct((2, 16, 3), jnp.int32),
        "label": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint8),
        "optimal": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint8),
        "spl": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint16),
    }
    pmapped = devices.pmap_train_step(step, jax.devices()[:2])
    exported = jax.export.export(jax.jit(pmapped), platforms=["cuda"])(state, batch)
    assert exported.platforms == ("cuda",)
    assert exported.nr_devices == 2
    assert "stablehlo.while" in exported.mlir_module()


# Batches.


def test_every_example_once_an_epoch_and_resumable():
    def take(first, count):
        stream = batches.batch_indices(num_examples=10, batch_size=3, seed=5, first_step=first)
        return [next(stream).tolist() for _ in range(count)]

    all_of_them = take(0, 9)
    for epoch in range(3):
        seen = {index for batch in all_of_them[3 * epoch : 3 * epoch + 3] for index in batch}
        assert len(seen) == 9
        assert seen <= set(range(10))
    assert all_of_them[:3] != all_of_them[3:6]
    for first in range(9):
        assert take(first, 9 - first) == all_of_them[first:]


@pytest.mark.parametrize("feed", ["device", "stream"])
def test_feeds_deliver_the_asked_for_rows(feed):
    arrays = {"x": np.arange(40, dtype=np.int32).reshape(20, 2), "y": np.arange(20, dtype=np.uint8)}
    order = [np.arange(16), np.arange(16)[::-1], np.full(16, 19)]
    got = list(batches.FEEDS[feed](arrays, iter(order)))
    assert len(got) == 3
    for batch, index in zip(got, order, strict=True):
        assert batch["x"].shape == (8, 2, 2)
        np.testing.assert_array_equal(np.asarray(batch["x"]).reshape(16, 2), arrays["x"][index])
        np.testing.assert_array_equal(np.asarray(batch["y"]).reshape(16), arrays["y"][index])


def test_bad_batches():
    with pytest.raises(ValueError, match="batch of 12 can't be shared evenly by 8 devices"):
        devices.check_batch_size(12)
    with pytest.raises(ValueError, match="5 training examples do not fill a batch of 8"):
        batches.steps_per_epoch(5, 8)
    with pytest.raises(ValueError, match="unknown way to feed data 'disk'"):
        batches.choose_feed("disk")


def test_evaluation_does_not_depend_on_the_batch(mazes):
    model = VIN(depth=3, latent_actions=4, hidden=4)
    params = _state(model, mazes, optax.sgd(1.0)).params
    eval_step = devices.pmap_eval_step(make_eval_step(maze_forward(model)))
    arrays = planner_arrays(mazes[:5])
    policies = [greedy_policy(eval_step, params, arrays, batch_size=size) for size in (8, 16)]
    np.testing.assert_array_equal(*policies)
    assert policies[0].shape == mazes[:5].label.shape


def test_a_pmapped_step_is_compiled_once(mazes):
    """The placement of its input is that of its output from the first step on."""
    step, state, arrays = _setup(mazes, axis_name=devices.BATCH_AXIS)
    pmapped = devices.pmap_train_step(step)
    state = devices.replicate(state)
    before = jax.tree.map(lambda x: x.sharding, state)
    state, _ = pmapped(state, devices.split(arrays))
    assert jax.tree.map(lambda x: x.sharding, state) == before
