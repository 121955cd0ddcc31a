"""From views to maps: the model, its batches, and what learns from what."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flips import with_one_bit_flipped

from hvin_jax import Planner, visual_planner
from hvin_jax.models import VIN, PlannerOutput
from hvin_jax.models.perception import (
    Perception,
    VisualModel,
    join_params,
    make_perception,
    part_params,
)
from hvin_jax.tasks.doom.view_data import ViewData
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.objective import Imitation
from hvin_jax.training.view_task import ViewCollator, freeze_perception, view_forward
from hvin_jax.visual_planner import VisualPlanner, load_perception, save_perception

SIZE, ORIENTATIONS = (3, 4), 4


@pytest.fixture(scope="module")
def model():
    planner = VIN(depth=2, latent_actions=3, hidden=4, kernel_size=3)
    return VisualModel(Perception(channels=(4, 6), features=5, hidden=7), planner)


@pytest.fixture(scope="module")
def params(model):
    init = jax.jit(model.init_params, static_argnums=(1, 2))
    params = init(jax.random.key(0), (24, 32, 3), (*SIZE, ORIENTATIONS))
    # Values that are not zero, so that the policy depends on them.
    planner = jax.tree.map(lambda x: x + 0.1, part_params(params, "planner"))
    return join_params(part_params(params, "perception"), planner)


def _batch(seed=0, size=2, room=9):
    rng = np.random.default_rng(seed)
    return {
        "views": jnp.asarray(rng.integers(0, 256, (room, 24, 32, 3), dtype=np.uint8)),
        "view_index": jnp.asarray(rng.integers(0, room, (size, *SIZE, 4)), jnp.int32),
        "goal": jnp.asarray(rng.integers(0, 3, (size, 3)), jnp.int32),
        "maze": jnp.asarray(rng.integers(0, 2, (size, *SIZE)), jnp.uint8),
    }


def _plain_perception(params, views):
    """The map of views `[B, H, W, 4, 24, 32, 3]`, every view by itself, in plain numpy."""
    p = jax.tree.map(np.asarray, params["params"])

    def relu(x):
        return np.maximum(x, 0)

    def conv(x, layer, side):
        rows = []
        for r in range(0, x.shape[0], side):
            row = [x[r : r + side, c : c + side].ravel() for c in range(0, x.shape[1], side)]
            rows.append([relu(patch @ layer["kernel"] + layer["bias"]) for patch in row])
        return np.array(rows)

    def features(view):
        x = conv(view / 127.5 - 1.0, p["view_conv1"], 4)
        x = conv(x, p["view_conv2"], 2)
        return relu(x.ravel() @ p["view_dense"]["kernel"] + p["view_dense"]["bias"])

    def grid(cells, layer):
        out = np.zeros((*cells.shape[:2], layer["bias"].size)) + layer["bias"]
        padded = np.pad(cells, ((1, 1), (1, 1), (0, 0)))
        for r in range(3):
            for c in range(3):
                window = padded[r : r + cells.shape[0], c : c + cells.shape[1]]
                out += window @ layer["kernel"][r, c]
        return out

    maps = []
    for maze in views:
        cells = np.array(
            [[np.concatenate([features(v) for v in cell]) for cell in row] for row in maze]
        )
        maps.append(grid(relu(grid(cells, p["grid_conv1"])), p["grid_conv2"])[..., 0])
    return np.array(maps)


def test_perception_is_what_it_says(model, params):
    batch = _batch()
    part = part_params(params, "perception")
    logits = jax.jit(model.perception.apply)(part, batch["views"], batch["view_index"])
    views = np.asarray(batch["views"]).astype(float)[np.asarray(batch["view_index"])]
    np.testing.assert_allclose(logits, _plain_perception(part, views), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("train", [True, False])
def test_planner_gets_the_predicted_map(model, params, train):
    """In degrees while it learns, and in use as what is likelier."""
    batch = _batch()
    output = view_forward(model)(params, batch, key=jax.random.key(1) if train else None)
    free = jax.nn.sigmoid(output.map_logits)
    free = free if train else jnp.round(free)
    assert 0 < free.mean() < 1
    goal = jnp.zeros((2, *SIZE, 4)).at[jnp.arange(2), *batch["goal"].T].set(1.0)
    alone = model.planner.apply(part_params(params, "planner"), free, goal, train=False)
    np.testing.assert_allclose(output.logits, alone.logits, rtol=1e-5)
    again = join_params(part_params(params, "perception"), part_params(params, "planner"))
    assert jax.tree.all(jax.tree.map(lambda x, y: (x == y).all(), again, params))


def test_true_maps_at_the_beginning(model, params):
    batch = _batch()
    forward = view_forward(model, true_map_steps=10)
    key = jax.random.key(1)
    early, late = (
        forward(params, batch, key=key, step=jnp.asarray(step)).logits for step in (9, 10)
    )
    without = view_forward(model)(params, batch, key=key).logits
    np.testing.assert_allclose(late, without, rtol=1e-5)
    goal = jnp.zeros((2, *SIZE, 4)).at[jnp.arange(2), *batch["goal"].T].set(1.0)
    planner = part_params(params, "planner")
    given = model.planner.apply(planner, batch["maze"], goal, train=False).logits
    np.testing.assert_allclose(early, given, rtol=1e-5)
    assert np.abs(early - late).max() > 1e-3


@pytest.mark.parametrize(
    ("learning", "from_policy", "from_map"),
    [("joint", True, True), ("map", False, True), ("frozen", False, False)],
)
def test_what_perception_learns_from(model, params, learning, from_policy, from_map):
    batch = _batch()
    forward, key = view_forward(model, learning=learning), jax.random.key(1)

    @jax.jit
    def gradients(params):
        def norm(of):
            grads = jax.grad(lambda p: jnp.sum(of(forward(p, batch, key=key)) ** 2))(params)
            return optax.tree.norm(part_params(grads, "perception"))

        return norm(lambda output: output.logits), norm(lambda output: output.map_logits)

    assert tuple(norm > 0 for norm in gradients(params)) == (from_policy, from_map)


@pytest.mark.slow
def test_frozen_perception_stays(params):
    optimizer = freeze_perception(optax.chain(optax.add_decayed_weights(0.5), optax.sgd(0.1)))
    state = optimizer.init(params)
    updates, _ = optimizer.update(jax.tree.map(jnp.ones_like, params), state, params)
    assert optax.tree.norm(part_params(updates, "perception")) == 0
    assert optax.tree.norm(part_params(updates, "planner")) > 0


def test_loss_of_the_map():
    """By hand: two cells, of which one is predicted as free with probability 1/2, one with 3/4."""
    batch = {
        "maze": jnp.array([[[1, 0]]], jnp.uint8),
        "label": jnp.zeros((1, 1, 2, 1), jnp.uint8),
        "optimal": jnp.ones((1, 1, 2, 1), jnp.uint8),
        "spl": jnp.ones((1, 1, 2, 1), jnp.uint16),
    }
    output = PlannerOutput(
        logits=jnp.zeros((1, 1, 2, 1, 2)), map_logits=jnp.array([[[0.0, np.log(3.0)]]])
    )
    policy = 2 * np.log(2)
    on_map = np.log(2) + np.log(4)
    sums = Imitation(map_weight=0.5)(output, batch)
    np.testing.assert_allclose(sums.loss, policy + 0.5 * on_map, rtol=1e-6)
    np.testing.assert_allclose(Imitation()(output, batch).loss, policy, rtol=1e-6)
    with pytest.raises(ValueError, match="map_weight is -1"):
        Imitation(map_weight=-1)


def _data(count=6):
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 256, (50, 24, 3), dtype=np.uint8)
    views = rng.integers(0, 50, (40, 32)).astype(np.uint32)
    index = rng.integers(0, 40, (count, *SIZE, 4)).astype(np.uint32)
    return ViewData(None, columns, views, {"train": index}, [])


def test_batches_hold_each_view_once():
    data = _data(16)
    collate = ViewCollator(data)
    numbers = data.index["train"]
    batch = collate({"view_number": numbers, "goal": np.arange(16)})
    devices = jax.local_device_count()
    assert batch.keys() == {"views", "view_index", "goal"}
    assert batch["view_index"].shape == (devices, 16 // devices, *SIZE, 4)
    assert batch["view_index"].dtype == np.int32
    for share, index, wanted in zip(
        batch["views"], batch["view_index"], np.split(numbers, devices), strict=True
    ):
        np.testing.assert_array_equal(share[index], data.pictures(wanted))
        used = share[: len(np.unique(wanted))]
        assert len({view.tobytes() for view in used}) == len(used) == index.max() + 1


def test_batches_keep_their_shape():
    """Padded to one size; a batch that does not fit gets more room, not an error."""
    data = _data(16)
    rows = data.index["train"]
    few = dataclasses.replace(data, index={"train": np.zeros_like(rows)})
    collate = ViewCollator(few)
    rooms = [collate({"view_number": x})["views"].shape[1] for x in (rows * 0, rows[::-1] * 0)]
    assert rooms == [64, 64]
    many = np.arange(16 * 48, dtype=np.uint32).reshape(rows.shape)
    wide = dataclasses.replace(few, views=np.resize(data.views, (16 * 48, 32)))
    batch = ViewCollator(wide)({"view_number": many})
    assert batch["views"].shape[1] >= 16 * 48 // jax.local_device_count()


def test_save_and_load(model, params, tmp_path):
    settings = {"channels": [4, 6], "features": 5, "hidden": 7}
    part = part_params(params, "perception")
    save_perception(tmp_path / "perception", settings, part, {})
    found, weights = load_perception(tmp_path)
    assert make_perception(found) == model.perception
    assert jax.tree.all(jax.tree.map(lambda x, y: (x == y).all(), weights, part))
    found_again = 0
    for _ in with_one_bit_flipped(list((tmp_path / "perception").iterdir()), 60):
        with contextlib.suppress(ValueError):
            found, weights = load_perception(tmp_path)
            assert found == settings
            assert jax.tree.all(jax.tree.map(lambda x, y: (x == y).all(), weights, part))
            found_again += 1
    assert found_again < 20
    (tmp_path / "perception" / "weights.npz").write_bytes(b"x")
    with pytest.raises(ValueError, match="not a sound perception"):
        load_perception(tmp_path)
    with pytest.raises(ValueError, match="no perception there"):
        load_perception(tmp_path / "perception" / "other")


@pytest.mark.slow
def test_decisions(model, params):
    """What is compiled is what the model says, for any number of views within the same room."""
    settings = {"channels": [4, 6], "features": 5, "hidden": 7}
    fields = {"depth": 2, "latent_actions": 3, "hidden": 4, "kernel_size": 3}
    planner = Planner(
        {"kind": "vin", **fields}, part_params(params, "planner"), get_mechanism("diffdrive")
    )
    trained = VisualPlanner(settings, part_params(params, "perception"), planner)
    assert trained.model == model
    batch = _batch(size=1)
    views, index, goal = (np.asarray(batch[name]) for name in ("views", "view_index", "goal"))
    decision = trained.decide(views, index[0], tuple(goal[0].tolist()))
    output = view_forward(model)(params, batch)
    np.testing.assert_allclose(decision.free, jax.nn.sigmoid(output.map_logits)[0], rtol=1e-5)
    np.testing.assert_array_equal(decision.policy, output.logits[0].argmax(-1))
    assert decision.policy.dtype == np.uint8
    count = visual_planner._see._cache_size()
    trained.decide(np.concatenate([views, views]), index[0], tuple(goal[0].tolist()))
    assert visual_planner._see._cache_size() == count


def test_bad_settings(model):
    with pytest.raises(ValueError, match="no setting 'feature'; did you mean features"):
        make_perception({"feature": 3})
    with pytest.raises(ValueError, match="perception learns 'jointly', expected one of joint"):
        view_forward(model, learning="jointly")
    with pytest.raises(ValueError, match="true_map_steps is -1"):
        view_forward(model, true_map_steps=-1)
    with pytest.raises(ValueError, match="multiples of 8"):
        model.perception.init(
            jax.random.key(0), jnp.zeros((1, 20, 32, 3), jnp.uint8), jnp.zeros((1, 3, 3, 4), int)
        )
