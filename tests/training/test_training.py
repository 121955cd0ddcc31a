"""One step: what it minimises, that it learns, that devices and seeds do not change it."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, PartitionSpec

from hvin_jax.models import VIN, HighwayVIN, init_params
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training import devices
from hvin_jax.training.evaluation import decisions, evaluate_policy
from hvin_jax.training.maze_task import maze_forward, planner_arrays, training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.optimizers import make_optimizer
from hvin_jax.training.step import create_state, make_eval_step, make_train_step


@pytest.fixture(scope="module")
def mazes():
    """Eight mazes to train on, and none else."""
    law, mechanism = MazeLaw((7, 7)), get_mechanism("diffdrive")
    return make_mazes(law=law, mechanism=mechanism, train=8, valid=0, test=0, seed=1).train


def _model(**changes):
    return HighwayVIN(num_blocks=3, block_depth=3, latent_actions=8, hidden=8, **changes)


def _state(model, mazes, optimizer, seed=0, nudge=0.01):
    params_key, noise_key = jax.random.split(jax.random.key(seed))
    params = init_params(model, params_key, mazes.size)
    # The kernel of the values starts at zero, which would hide the noise from the first step.
    params["params"]["value_kernel"] += nudge
    return create_state(noise_key, params, optimizer)


def _setup(mazes, axis_name=None, optimizer=None, **changes):
    model = _model(**changes)
    optimizer = optimizer or make_optimizer()
    step = make_train_step(maze_forward(model), Imitation(), optimizer, axis_name=axis_name)
    return step, _state(model, mazes, optimizer), training_arrays(mazes)


def _assert_close(first, second, rtol=1e-4):
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


@pytest.mark.slow
def test_it_learns_a_tiny_set(mazes):
    step, state, arrays = _setup(mazes, optimizer=make_optimizer(learning_rate=1e-2))
    step = jax.jit(step)
    for _ in range(230):
        state, metrics = step(state, arrays)
    assert float(metrics.loss) < 0.3
    assert float(metrics.accuracy) > 0.95


@pytest.mark.slow
def test_what_was_learned_finds_the_goal(mazes):
    model = VIN(depth=12, latent_actions=16, hidden=8)
    optimizer = make_optimizer()
    objective = Imitation(any_optimal=True)
    step = jax.jit(make_train_step(maze_forward(model), objective, optimizer))
    state = _state(model, mazes, optimizer, nudge=0.0)
    for _ in range(250):
        state, _ = step(state, training_arrays(mazes))
    eval_step = devices.split_eval_step(make_eval_step(maze_forward(model)))
    made = decisions(eval_step, state.params, planner_arrays(mazes), batch_size=8)
    evaluation = evaluate_policy(made.policy, mazes)
    assert evaluation.scores.success_rate > 0.95
    assert evaluation.constant_action is None


@pytest.fixture(scope="module")
def alone(mazes):
    """What `_setup` returns, the step compiled for one device: traced once for all tests."""
    step, state, arrays = _setup(mazes)
    return jax.jit(step), state, arrays


@pytest.fixture(scope="module")
def curve(alone):
    """Metrics of some steps on one device, and the state after them."""
    step, state, arrays = alone
    metrics = []
    for _ in range(5):
        state, of_step = step(state, arrays)
        metrics.append(of_step)
    return metrics, state


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.slow
def test_devices_do_not_change_the_curve(mazes, curve, count):
    expected_metrics, expected = curve
    step, state, arrays = _setup(mazes, axis_name=devices.BATCH_AXIS)
    step = devices.split_train_step(step, jax.devices()[:count])
    for expected_step in expected_metrics:
        state, metrics = step(state, devices.split(arrays, count))
        _assert_close(metrics, expected_step)
    _assert_close(state.params, expected.params)
    assert int(state.step) == len(expected_metrics)


@pytest.mark.slow
def test_shards_agree_under_shard_map(mazes, alone):
    """`pmap` with `out_axes=None` would hide a forgotten all-reduce; this does not."""
    count = 8
    step, state, arrays = _setup(mazes, axis_name=devices.BATCH_AXIS)
    mesh = jax.make_mesh((count,), (devices.BATCH_AXIS,), axis_types=(AxisType.Auto,))

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
    shards = jax.jit(sharded)(state, {k: jnp.asarray(v) for k, v in arrays.items()})
    # In numpy: on a busy machine many small programs of eight devices wait for each other for ever.
    shards = jax.device_get(shards)
    expected, expected_metrics = alone[0](state, arrays)
    first = jax.tree.map(lambda x: x[0], shards)
    _assert_close(first, (expected.params, expected_metrics))
    for shard in range(1, count):
        chex.assert_trees_all_equal(jax.tree.map(lambda x, shard=shard: x[shard], shards), first)


def test_noise_depends_on_the_step(alone):
    step, state, arrays = alone
    later = dataclasses.replace(state, step=state.step + 1)
    losses = [float(step(x, arrays)[1].loss) for x in (state, state, later)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.slow
def test_several_seeds_at_once(mazes, alone):
    step, _, arrays = alone
    states = [_state(_model(), mazes, make_optimizer(), seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    together, metrics = jax.jit(jax.vmap(step, in_axes=(0, None)))(stacked, arrays)
    for index, state in enumerate(states):
        expected, expected_metrics = step(state, arrays)
        _assert_close(metrics.loss[index], expected_metrics.loss)
        _assert_close(jax.tree.map(lambda x, i=index: x[i], together.params), expected.params)


def test_not_finite_changes_nothing(alone):
    step, state, arrays = alone
    broken = jax.tree.map(lambda x: x, state.params)
    broken["params"]["policy"] = broken["params"]["policy"].at[0, 0].set(jnp.nan)
    state = dataclasses.replace(state, params=broken)
    new, metrics = step(state, arrays)
    assert not metrics.finite
    assert int(new.skipped) == int(new.step) == 1
    for x, y in zip(
        jax.tree.leaves((new.params, new.opt_state)),
        jax.tree.leaves((state.params, state.opt_state)),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("size", [1e25, 1e36])
def test_huge_gradients_are_clipped_not_skipped(alone, size):
    step, state, arrays = alone
    huge = jax.tree.map(lambda x: x, state.params)
    huge["params"]["policy"] = huge["params"]["policy"] * size
    state = dataclasses.replace(state, params=huge)
    new, metrics = step(state, arrays)
    assert metrics.finite
    assert metrics.grad_norm > 1e20
    changes = jax.tree.map(lambda x, y: jnp.abs(x - y).max(), new.params, state.params)
    assert 0 < max(jax.tree.leaves(changes)) < 1


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


@pytest.mark.slow
def test_bfloat16_keeps_float32_parameters(mazes, alone):
    step, state, arrays = _setup(mazes, dtype="bfloat16")
    new, metrics = jax.jit(step)(state, arrays)
    _, expected = alone[0](state, arrays)
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
        return create_state(key, init_params(model, key), optimizer)

    state = jax.eval_shape(init, jax.random.key(0))
    batch = {
        "maze": jax.ShapeDtypeStruct((2, 16, 25, 25), jnp.uint8),
        "goal": jax.ShapeDtypeStruct((2, 16, 3), jnp.int32),
        "label": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint8),
        "optimal": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint8),
        "spl": jax.ShapeDtypeStruct((2, 16, 25, 25, 4), jnp.uint16),
    }
    pmapped = devices.split_train_step(step, jax.devices()[:2])
    exported = jax.export.export(jax.jit(pmapped), platforms=["cuda"])(state, batch)
    assert exported.platforms == ("cuda",)
    assert exported.nr_devices == 2
    assert "stablehlo.while" in exported.mlir_module()


def test_evaluation_does_not_depend_on_the_batch(mazes):
    model = VIN(depth=3, latent_actions=4, hidden=4)
    params = _state(model, mazes, optax.sgd(1.0)).params
    eval_step = devices.split_eval_step(make_eval_step(maze_forward(model)))
    arrays = planner_arrays(mazes[:5])
    policies = [decisions(eval_step, params, arrays, batch_size=size).policy for size in (8, 16)]
    np.testing.assert_array_equal(*policies)
    assert policies[0].shape == mazes[:5].label.shape


def test_a_pmapped_step_is_compiled_once(mazes):
    """The placement of its input is that of its output from the first step on."""
    step, state, arrays = _setup(mazes, axis_name=devices.BATCH_AXIS)
    pmapped = devices.split_train_step(step)
    state = devices.replicate(state)
    before = jax.tree.map(lambda x: x.sharding, state)
    state, _ = pmapped(state, devices.split(arrays))
    assert jax.tree.map(lambda x: x.sharding, state) == before
