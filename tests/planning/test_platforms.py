"""The form for GPUs, compiled for the CPU: the same oracles, and plain autodiff in float64."""

import jax
import numpy as np
import pytest
import test_conv_gradients
import test_conv_mdp
import test_dynamic_mdp
import test_soft_maximum
from small_mdps import SHAPES, plan, small_conv

from hvin_jax.models import HighwayVIN, init_params
from hvin_jax.planning import _platforms
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


@pytest.mark.usefixtures("for_gpus", "x64")
def test_backups():
    test_conv_mdp.test_backups(SHAPES[0])


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


@pytest.mark.parametrize("deterministic", [False, True])
def test_scatters_of_a_training_step(monkeypatch, deterministic):
    """On GPUs a scatter adds by atomic additions, in any order."""
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
    program = jax.jit(jax.grad(loss)).trace(params).lower(lowering_platforms=("cuda",)).as_text()
    assert ("stablehlo.scatter" in program) == (not deterministic)


def test_each_platform_gets_its_form():
    """On GPUs blocks have no loops in them, and nothing is kept apart."""
    traced = jax.jit(lambda key, mdp: plan(key, mdp).value).trace(jax.random.key(0), small_conv())
    cpu, gpu = (traced.lower(lowering_platforms=(name,)).as_text() for name in ("cpu", "cuda"))
    assert cpu.count("stablehlo.while") > 4
    assert gpu.count("stablehlo.while") < cpu.count("stablehlo.while")
    assert "optimization_barrier" in cpu
    assert "optimization_barrier" not in gpu
