"""On a GPU, a release of JAX whose gradients are slow is named once."""

import warnings

import jax
import pytest

from hvin_jax.training import devices


@pytest.fixture(autouse=True)
def not_yet_warned():
    devices._warn_of_slow_gradients.cache_clear()
    yield
    devices._warn_of_slow_gradients.cache_clear()


def test_a_warning_once(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "__version__", "0.10.2")
    with pytest.warns(UserWarning, match=r"jax 0\.10\.2 makes gradients slow on GPUs: install"):
        devices.split_train_step(lambda state, batch: state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        devices.split_train_step(lambda state, batch: state)


@pytest.mark.parametrize(("platform", "version"), [("cpu", "0.10.2"), ("gpu", "0.12.0.1")])
def test_none_elsewhere(monkeypatch, platform, version):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setattr(jax, "__version__", version)
    devices.split_train_step(lambda state, batch: state)
