"""Runs that train together: each as if it were alone, whatever the others do."""

import json
import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from launching import TINY, run, start

from experiments.seeds import parse_seeds
from hvin_jax.training import devices
from hvin_jax.training.together import train_together
from hvin_jax.training.workdir import read_metrics

# One number for each device.
BATCH = {"x": np.arange(8, dtype=np.float32).reshape(8, 1)}


def _step(state, batch):
    """A step that compiles fast, with a sum over devices and a key."""
    total = lax.psum(batch["x"].sum(), devices.BATCH_AXIS)
    noise = jax.random.normal(jax.random.fold_in(state["key"], state["step"]))
    value = jnp.tanh(state["value"] + noise) * total
    return {"key": state["key"], "step": state["step"] + 1, "value": value}, value


def _state(seed):
    state = {"key": jax.random.key(seed), "step": jnp.zeros((), jnp.int32), "value": jnp.zeros(())}
    return devices.replicate(state)


def test_each_as_if_alone():
    """Runs of different lengths, of which one fails on the way."""
    lengths = {0: 2, 1: 4, 2: 3}

    def trainer(seed):
        def train(place):
            assert place.num_runs == 3
            train_step, state = place.train_step(_step), _state(seed)
            for number in range(lengths[seed]):
                if (seed, number) == (2, 1):
                    raise FloatingPointError("lost")
                state, _ = jax.block_until_ready(train_step(state, BATCH))
            return state

        return train

    *trained, error = train_together([trainer(seed) for seed in lengths])
    assert isinstance(error, FloatingPointError)
    alone = devices.pmap_train_step(_step)
    for seed, state in enumerate(trained):
        expected = _state(seed)
        for _ in range(lengths[seed]):
            expected, _ = jax.block_until_ready(alone(expected, BATCH))
        assert state["step"] == expected["step"]
        np.testing.assert_allclose(state["value"], expected["value"], rtol=1e-6)


def test_one_at_a_time_and_all_stop_at_the_same_step():
    busy, wishes = threading.Lock(), iter([False, False, True])

    def train(place):
        assert busy.acquire(blocking=False)
        train_step, state = place.train_step(_step), _state(0)
        while not place.asked_to_stop():
            busy.release()
            state, _ = jax.block_until_ready(train_step(state, BATCH))
            assert busy.acquire(blocking=False)
            time.sleep(0.01)
        busy.release()
        return int(state["step"])

    assert train_together([train, train], lambda: next(wishes)) == [3, 3]


def test_batches_of_different_shapes():
    def trainer(columns):
        def train(place):
            batch = {"x": np.ones((8, columns), np.float32)}
            return float(place.train_step(_step)(_state(0), batch)[1])

        return train

    one, two, three = train_together([trainer(columns) for columns in (1, 2, 1)])
    assert one == three == pytest.approx(two / 2)


def test_a_step_that_can_not_be_made_fails_for_all():
    def bad_step(state, batch):
        raise TypeError("no such step")

    def train(place):
        return place.train_step(bad_step)(_state(0), BATCH)

    first, second = train_together([train, train])
    assert isinstance(first, TypeError)
    assert isinstance(second, TypeError)


def test_seeds_of_the_command(tmp_path):
    """Stopped on the way and continued, each run ends as it would have alone."""
    where = {"folder": tmp_path}
    together = ("maze", *TINY, "--seeds=0,1", "--workdir=runs/x")
    process = start(*together, **where)
    while process.poll() is None and not (tmp_path / "runs/x-seed0/checkpoints/15").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert out.count("the same command goes on from there") == 2
    code, out, err = run(*together, **where)
    assert code == 0, err
    assert "seed 1: resuming after step" in out
    code, _, err = run("maze", *TINY, "--config.seed=1", "--workdir=runs/y-seed1", **where)
    assert code == 0, err
    folders = [tmp_path / f"runs/{name}-seed1" for name in "xy"]
    ours, alone = (json.loads((folder / "result.json").read_text()) for folder in folders)
    assert [sitting["together"] for sitting in ours["sittings"]] == [2, 2]
    assert (ours["config"], ours["steps"]) == (alone["config"], alone["steps"])
    lines = [[x["loss"] for x in read_metrics(folder) if "loss" in x] for folder in folders]
    np.testing.assert_allclose(lines[0], lines[1], rtol=1e-4)
    for name in ("success_rate", "optimality_rate"):
        assert ours["test"][name] == pytest.approx(alone["test"][name], abs=0.01)
    # What is there is kept, whoever made it.
    code, out, err = run("maze", *TINY, "--seeds=1", "--workdir=runs/y", **where)
    assert (code, out) == (0, "runs/y-seed1 is complete\n"), err


@pytest.mark.parametrize("seeds", [["0", "one"], ["1", "1"]])
def test_seeds_that_are_none(seeds):
    with pytest.raises(ValueError, match=r"not a list of whole numbers|names a seed twice"):
        parse_seeds(seeds)


def test_start_from_is_for_one_seed(tmp_path):
    code, _, err = run("maze", *TINY, "--seeds=0,1", "--start_from=x", folder=tmp_path)
    assert (code, err) == (1, "maze: --start_from is for a single seed\n")
