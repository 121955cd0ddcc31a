"""Values of DT-VINs can't run away: whatever the map, whatever the depth."""

import functools
import pathlib

import jax
import numpy as np
import pytest

from hvin_jax import Planner, load_planner, shipped_planners
from hvin_jax.models import DTVIN, init_params, settings_of
from hvin_jax.tasks import FAMILIES, MapLaw, draw_mazes, get_mechanism
from hvin_jax.tasks.maze_data import goal_maps

LAYERS = 5000
ROOT = pathlib.Path(__file__).parents[2]
TRAINED = sorted(x.parent.name for x in (ROOT / "results/dtvin").glob("*/planner"))
SHIPPED = [x for x in shipped_planners() if load_planner(x).settings["kind"] == "dtvin"]


def _fresh(name):
    motion = get_mechanism(name.removeprefix("fresh "))
    model = DTVIN(motion.num_orientations, motion.num_actions, apart=8.0, moves=motion.moves)
    return Planner(settings_of(model), init_params(model, jax.random.key(1)), motion)


@functools.cache
def _maps(orientations):
    """A map of every family."""
    rng = np.random.default_rng(2)
    drawn = [
        draw_mazes(1, law=MapLaw((9, 11), name), num_orientations=orientations, rng=rng)
        for name in FAMILIES
    ]
    maze, goal = (np.concatenate(x) for x in zip(*drawn, strict=True))
    goals = goal_maps(goal, size=maze.shape[1:], num_orientations=orientations)
    return maze.astype(np.float32), np.asarray(goals)


@functools.partial(jax.jit, static_argnums=0)
def _value(model, params, maze, goal):
    return model.apply(params, maze, goal, train=False, layers=LAYERS).value


@pytest.mark.parametrize("name", ["fresh news", "fresh diffdrive", *TRAINED, *SHIPPED])
def test_values_stay_within_layers_times_reward(name):
    if name in TRAINED:
        planner = load_planner(ROOT / "results/dtvin" / name)
    else:
        planner = load_planner(name) if name in SHIPPED else _fresh(name)
    maze, goal = _maps(planner.mechanism.num_orientations)
    weights = {k: np.asarray(x) for k, x in planner.params["params"].items()}
    observed = np.concatenate([maze[..., None], goal], -1)
    reward = observed @ weights["reward"] + weights["reward_bias"]
    # How many layers a model was trained with does not count here: all share what is compiled.
    value = np.asarray(_value(planner.model.clone(depth=1), planner.params, maze, goal))
    most = np.abs(reward).max(axis=(1, 2, 3))
    assert np.isfinite(value).all()
    assert (np.abs(value).max(axis=(1, 2, 3)) <= LAYERS * most * (1 + 1e-3)).all()
    assert np.abs(value).max() > 100  # they do grow, and slowly
