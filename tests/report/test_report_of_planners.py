"""Reports for which planners are put to work: entropy (counted by hand, too) and pictures."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from launching import run
from PIL import Image

from hvin_jax import Planner, save_planner
from hvin_jax.models import make_model
from hvin_jax.report.entropy import latent_action_entropy
from hvin_jax.report.runs import mean_and_std
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism

SPLITS = {"train": 0, "valid": 0, "test": 5, "seed": 0}


@functools.cache
def _planner(kind, seed=0):
    """A planner whose values are drawn at random, not zero as those of a new one."""
    settings = {"kind": kind, "num_orientations": 4, "num_actions": 3, "latent_actions": 6}
    settings |= {"depth": 4} if kind == "vin" else {"num_blocks": 2, "block_depth": 3}
    model = make_model(**settings)
    maze, goal = jnp.ones((1, 7, 7)), jnp.zeros((1, 7, 7, 4))
    params = jax.jit(lambda: model.init(jax.random.key(seed), maze, goal, train=False))()
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
    noise = [0.3 * jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    params = jax.tree.map(jnp.add, params, jax.tree.unflatten(tree, noise))
    return Planner(settings, params, get_mechanism("diffdrive"))


@pytest.fixture(scope="module")
def mazes():
    law = MazeLaw((7, 7), decimation=(0.0, 1.0))
    return make_mazes(law=law, mechanism=get_mechanism("diffdrive"), **SPLITS).test


@pytest.mark.parametrize("kind", ["vin", "highway_vin"])
@pytest.mark.slow
def test_as_counted_by_hand(mazes, kind):
    planner = _planner(kind)
    explore = functools.partial(planner.model.apply, train=True, diagnostics=True)
    rngs = {"exploration": jax.random.split(jax.random.key(3), 1)[0]}
    output = jax.jit(explore)(planner.params, mazes.maze, mazes.goal_maps(), rngs=rngs)
    actions = np.asarray(output.actions).reshape(len(output.actions), -1)
    entropies = []
    for chosen in actions.T:
        shares = np.bincount(chosen)[np.unique(chosen)] / len(chosen)
        entropies.append(-np.sum(shares * np.log(shares)))
    entropy = latent_action_entropy(planner, mazes, seed=3)
    assert 0 < entropy < np.log(6)
    assert entropy == pytest.approx(np.mean(entropies), rel=1e-5)


def test_a_part_of_a_batch_counts_as_its_share(mazes):
    planner = _planner("vin")  # which does not explore, so the batches do not matter
    whole, parts = (latent_action_entropy(planner, mazes, batch_size=size) for size in (5, 2))
    assert parts == pytest.approx(whole, rel=1e-5)


@pytest.fixture
def stored(tmp_path):
    """A folder of finished runs with their planners: two cells of two seeds, one of a single."""
    law = {"size": 15, "mechanism": "diffdrive", "min_decimation": 0.0, "max_decimation": 1.0}
    data = {"file": "", **law, **SPLITS}
    runs = [(f"vin-15-{depth}-seed{seed}", seed) for depth in (20, 40) for seed in (0, 1)]
    for name, seed in [*runs, ("highway_vin-15-100-seed0", 0)]:
        kind, _, depth, _ = name.split("-")
        model = {"kind": kind, "depth": int(depth), "latent_actions": 6, "hidden": 0}
        folder = tmp_path / "results/cpu" / name
        folder.mkdir(parents=True)
        save_planner(folder / "planner", _planner(kind, seed))
        result = {
            "config": {"data": data, "model": model},
            "sittings": [],
            **dict.fromkeys(("steps", "skipped_steps", "best_step", "wall_seconds"), 1),
            "collapsed": False,
            "test": {"ranges": [], "starts_by_spl": [], "successes_by_spl": []},
        }
        (folder / "result.json").write_text(json.dumps(result))
    return tmp_path


@pytest.mark.processes
@pytest.mark.slow
def test_reports(stored):
    command = ("report", "--name=entropy,value_maps,examples", "--results=results")
    code, _, err = run(*command, folder=stored)
    assert code == 0, err
    report = stored / "results/cpu/report"
    # Entropy is a figure over all seeds.
    mechanism = get_mechanism("diffdrive")
    mazes = make_mazes(law=MazeLaw((15, 15)), mechanism=mechanism, **SPLITS).test
    entropies = [latent_action_entropy(_planner("vin", seed), mazes) for seed in (0, 1)]
    mean, std = mean_and_std(entropies)
    text = (report / "entropy.md").read_text()
    assert f"| VIN | 15×15 | 40 | 6 | 2 | {mean:.2f} ± {std:.2f} | 0.51 |" in text
    assert "(../vin-15-40-seed1)" in text
    # Pictures are of the first.
    for name in ("value_maps-15", "examples-mazes"):
        with Image.open(report / f"{name}.png") as image:
            assert np.asarray(image.convert("L")).std() > 5
        text = (report / f"{name.split('-')[0]}.md").read_text()
        assert "(../vin-15-20-seed0)" in text
        assert "(../highway_vin-15-100-seed0)" in text
        assert "seed1" not in text
    # Without the one that succeeds there is nothing to show.
    (stored / "results/cpu/highway_vin-15-100-seed0/result.json").unlink()
    code, _, err = run("report", "--name=examples", "--results=results", folder=stored)
    assert code == 0, err
    text = (report / "examples.md").read_text()
    assert "These are successes of a highway VIN, and none has finished." in text
    assert "examples-mazes" not in text
