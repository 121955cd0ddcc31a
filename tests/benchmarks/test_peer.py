"""The highway VIN in PyTorch makes the step that ours makes."""

import io
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.exchange import for_torch, largest_difference, outcome_of, torch_step, torch_version
from benchmarks.steps import make_batch, make_params
from hvin_jax.models import HighwayVIN


def test_the_step_in_torch_is_ours(monkeypatch, tmp_path, capsys):
    pytest.importorskip("torch")
    from benchmarks import highway_torch

    model = HighwayVIN(latent_actions=4, kernel_size=3, hidden=5, num_blocks=2, block_depth=3)
    data = make_batch(2, 5)
    params = make_params(model, data)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        params = jax.tree.map(lambda x: x.astype(jnp.float64), params)
        ours = outcome_of(model, params, data)
        np.savez(tmp_path / "exchange.npz", **for_torch(model, params, data, ours))
    monkeypatch.setattr(sys, "argv", ["highway_torch.py", str(tmp_path / "exchange.npz")])
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n\n"))
    highway_torch.main()
    assert capsys.readouterr().out == "\n\n"
    theirs = np.load(tmp_path / "exchange-torch.npz")
    assert {*theirs} == {*ours} - {"actions", "alpha_tilde"}
    assert not np.any(ours["alpha_tilde"])
    assert largest_difference(ours, theirs) < 1e-12


def test_the_largest_difference_counts():
    theirs = {"value": np.array([1.0, -4.0]), "loss": np.array(2.0)}
    ours = {"value": np.array([1.5, -4.0]), "loss": np.array(2.1), "actions": np.zeros(3)}
    assert largest_difference(ours, theirs) == pytest.approx(0.125)
    assert np.isnan(largest_difference(ours | {"loss": np.array(np.nan)}, theirs))


@pytest.mark.parametrize("python", ["no/such/python", shutil.which("false")])
def test_a_python_without_torch_is_refused(python):
    with pytest.raises(SystemExit, match=f"'{python}' is no Python with torch and numpy"):
        torch_version(python)


def test_a_process_that_ends_before_its_step_is_an_error():
    with (
        pytest.raises(SystemExit, match="PyTorch did not finish its step"),
        torch_step(shutil.which("false"), {}) as (step, _),
    ):
        step()
