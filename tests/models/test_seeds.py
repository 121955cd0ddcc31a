"""A seed keeps its meaning: the same parameters from one version to the next."""

import jax
import numpy as np
import pytest

from hvin_jax.models import init_params, make_model

SMALL = {"hidden": 4, "latent_actions": 2}


@pytest.mark.parametrize(
    ("kind", "settings", "sums"),
    [
        ("vin", SMALL, {"hidden_kernel": -0.8769, "reward_kernel": 2.3887, "policy": -2.7881}),
        ("gppn", {"hidden": 4}, {"gather_kernel": 0.1116, "policy": 3.9376}),
        ("highway_network", SMALL, {"hidden_kernel": -0.8769, "policy": 2.6758}),
        ("highway_vin", SMALL, {"hidden_kernel": -0.8769, "policy": -1.9552}),
        (
            "highway_vin",
            {**SMALL, "learned_policy": True, "learned_gate": True},
            {"gate_observation": 13.8503, "policy_observation": 0.858, "policy": -2.4122},
        ),
    ],
)
def test_first_parameters(kind, settings, sums):
    """As version 0.1.0 drew them; they depend on the order in which a model makes them."""
    params = init_params(make_model(kind, **settings), jax.random.key(7))["params"]
    for name, expected in sums.items():
        np.testing.assert_allclose(params[name].sum(), expected, atol=2e-4)
