"""The form for GPUs, compiled for the CPU: the same oracles, and plain autodiff in float64."""

import re
from functools import partial

import jax
import numpy as np
import pytest
import test_conv_gradients
import test_conv_mdp
import test_dynamic_mdp
import test_soft_maximum
from small_mdps import SHAPES, plan, small_conv

from hvin_jax.models import HighwayVIN, init_params
from hvin_jax.planning import _platforms, _sums_in_order
from hvin_jax.training import Imitation
from hvin_jax.training.maze_task import maze_forward


@pytest.fixture
def for_gpus(monkeypatch):
    """Whatever is traced takes that form; loops of more layers than are unrolled, too."""
    monkeypatch.setattr(_platforms, "_forced", "gpu")
    monkeypatch.setattr(_platforms, "_UNROLL", 2)
    jax.clear_caches()
    yield
    jax.clear_caches()


def for_a_card(function, *args):
    """The program for a GPU that is not there; newer versions of Pallas ask which."""
    card = jax.sharding.AbstractDevice("NVIDIA A100", num_cores=None, platform="gpu")
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=card)
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


# In jax 0.12, which says so where a kernel is lowered.
triton_is_deprecated = pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated")


@pytest.mark.usefixtures("for_gpus", "x64")
def test_backups():
    test_conv_mdp.test_backups(SHAPES[0])


@pytest.mark.usefixtures("for_gpus", "x64")
def test_kernels_are_a_softmax():
    test_dynamic_mdp.test_kernels_are_a_softmax("state")


@pytest.mark.usefixtures("for_gpus")
def test_ties_go_to_the_first_action():
    test_conv_mdp.test_ties_go_to_the_first_action(5)


@pytest.mark.usefixtures("for_gpus", "x64")
def test_gradients_of_value_iteration():
    test_conv_gradients.test_gradients_of_value_iteration(SHAPES[0])


@pytest.mark.usefixtures("for_gpus", "x64")
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.slow
def test_gradients_of_highway_vi(share):
    test_conv_gradients.test_gradients_of_highway_vi(1.0, 2, True, share)


@pytest.mark.usefixtures("for_gpus", "x64")
@pytest.mark.slow
def test_gradients_with_kernels_of_each_states_own():
    test_dynamic_mdp.test_value_iteration_and_its_gradient((1, 2, 3, 2, 2, 3, "steps"), 3)


@pytest.mark.usefixtures("for_gpus", "x64")
def test_gates():
    test_soft_maximum.jacobians_of_the_soft_maximum.cache_clear()
    test_soft_maximum.test_derivatives_of_the_soft_maximum_are_those_of_its_formula(
        filtered=True, alpha=-2.0
    )
    test_soft_maximum.jacobians_of_the_soft_maximum.cache_clear()


@pytest.mark.usefixtures("for_gpus", "x64")
@pytest.mark.slow
def test_gradients_without_atomic_additions(monkeypatch):
    monkeypatch.setattr(_platforms, "DETERMINISTIC", True)
    test_conv_gradients.test_gradients_of_highway_vi(1.0, 2, True, share=False)


@pytest.mark.parametrize(("actions", "size"), [(3, 3), (130, 9)])
def test_sums_in_order_lose_nothing(monkeypatch, actions, size):
    """Of all 24 binary digits, with several tiles and blocks, the last ones not full."""
    monkeypatch.setattr(_sums_in_order, "_PROGRAMS", 16)
    rng = np.random.default_rng(0)
    maps = rng.uniform(-900, 900, (11, 5, 3, 2)).astype(np.float32)
    taken = rng.integers(0, actions, maps.shape).astype(np.int32)
    amounts = rng.integers(-3, 3, maps.shape).astype(np.float32)
    kernel = np.zeros((size, size, 2, 2, actions))
    found = _sums_in_order.outer_products(maps, taken, amounts, kernel, interpret=True)
    margin = size // 2
    padded = np.pad(maps.astype(float), ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    expected = np.zeros((2, actions, 2 * size**2))
    for (n, y, x, o), action in np.ndenumerate(taken):
        window = padded[n, y : y + size, x : x + size].reshape(-1)
        expected[o, action] += amounts[n, y, x, o] * window
    np.testing.assert_allclose(found, expected.reshape(2 * actions, -1), rtol=1e-6, atol=1e-3)


@triton_is_deprecated
def test_sums_in_order_of_several_maps_at_once():
    maps, taken = np.ones((2, 3, 4, 4, 1), np.float32), np.zeros((2, 3, 4, 4, 1), np.int32)
    kernel = np.zeros((3, 3, 1, 1, 2))
    sums = partial(_sums_in_order.outer_products, kernel=kernel, interpret=False)
    maps, taken = maps[:, :, None], taken[:, :, None]
    assert "triton" in for_a_card(jax.vmap(jax.vmap(sums)), maps, taken, maps)


@triton_is_deprecated
@pytest.mark.parametrize("deterministic", [False, True])
def test_scatters_of_a_training_step(monkeypatch, deterministic):
    """On GPUs a scatter adds by atomic additions, in any order, if two may add to one number."""
    monkeypatch.setattr(_platforms, "DETERMINISTIC", deterministic)
    jax.clear_caches()
    model = HighwayVIN(latent_actions=3, num_blocks=2, block_depth=3)
    states = (2, 4, 4, 4)
    batch = {
        "maze": np.ones(states[:3], np.uint8),
        "goal": np.zeros((2, 3), np.int32),
        "label": np.zeros(states, np.uint8),
        "optimal": np.ones(states, np.uint8),
        "spl": np.ones(states, np.uint16),
    }

    def loss(params):
        return Imitation()(maze_forward(model)(params, batch, key=jax.random.key(0)), batch).loss

    params = jax.eval_shape(lambda: init_params(model, jax.random.key(0)))
    scatters = re.findall(r'"stablehlo.scatter".*', for_a_card(jax.grad(loss), params))
    assert all("unique_indices = true" in x for x in scatters) == deterministic


def test_each_platform_gets_its_form():
    """On GPUs blocks have no loops in them, and nothing is kept apart."""
    traced = jax.jit(lambda key, mdp: plan(key, mdp).value).trace(jax.random.key(0), small_conv())
    cpu, gpu = (traced.lower(lowering_platforms=(name,)).as_text() for name in ("cpu", "cuda"))
    assert cpu.count("stablehlo.while") > 4
    assert gpu.count("stablehlo.while") < cpu.count("stablehlo.while")
    assert "optimization_barrier" in cpu
    assert "optimization_barrier" not in gpu
