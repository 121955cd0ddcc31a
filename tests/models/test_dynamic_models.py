"""DT-VIN and highway DT-VIN: what they are made of, policies between layers, learning."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hvin_jax.models import DTVIN, GPPN, VIN, HighwayDTVIN, HighwayVIN, init_params, make_model
from hvin_jax.planning import DynamicConvMDP, places_around, value_iteration
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.tasks.symmetries import symmetries
from hvin_jax.training.maze_task import maze_forward, training_arrays
from hvin_jax.training.objective import Imitation
from hvin_jax.training.step import create_state, make_train_step

NEWS = {"num_orientations": 1, "num_actions": 4}


def inputs(orientations, seed=0):
    maze = np.random.default_rng(seed).integers(0, 2, (2, 5, 6)).astype(np.float32)
    goal = np.zeros((2, 5, 6, orientations), np.float32)
    goal[:, 3, 4, 0] = 1
    return maze, goal


def test_how_many_parameters():
    for head, expected in (("actions", 687), ("q", 703), ("window", 723)):
        params = init_params(DTVIN(**NEWS, head=head), jax.random.key(0))
        assert sum(x.size for x in jax.tree.leaves(params)) == expected


@pytest.mark.parametrize(
    ("orientations", "actions", "window", "goal_seen"),
    [(1, 4, "all", "around"), (2, 3, "all", "own"), (4, 3, "steps", "around")],
)
@pytest.mark.parametrize("head", ["actions", "q", "window"])
def test_what_it_computes(orientations, actions, window, goal_seen, head):
    """The parts by hand: 1×1 and 3×3 convolutions, softmax, value iteration, a dense layer."""
    settings = {"window": window, "head": head, "kernel_start": "random", "apart": 2.0}
    settings["goal_seen"] = goal_seen
    model = DTVIN(orientations, actions, depth=6, sharpness=1.5, **settings)
    maze, goal = inputs(orientations)
    params = init_params(model, jax.random.key(0))["params"]
    output = jax.jit(partial(model.apply, train=False))({"params": params}, maze, goal)
    observed = np.concatenate([maze[..., None], goal], -1)
    reward = observed @ np.asarray(params["reward"]) + np.asarray(params["reward_bias"])
    around = np.pad(observed, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows = [around[:, i : i + 5, j : j + 6] for i in range(3) for j in range(3)]
    seen = np.concatenate(rows, -1)
    if goal_seen == "own":
        seen = np.concatenate([*(row[..., :1] for row in rows), goal], -1)
    logits = np.einsum("bhwc,cko->kbohw", seen, params["transition"])
    logits = logits + np.asarray(params["transition_bias"])[:, None, :, None, None]
    places = places_around(3, orientations, window)
    logits = 1.5 * jnp.asarray(logits.reshape(len(places), actions, 2, orientations, 5, 6))
    mdp = DynamicConvMDP.from_logits(jnp.asarray(np.moveaxis(reward, -1, 1)), logits, places)
    value = value_iteration(mdp, num_iterations=6).value
    chex.assert_trees_all_close(output.value, jnp.moveaxis(value, 1, -1), rtol=1e-4, atol=1e-5)
    q = np.moveaxis(np.asarray(mdp.q(value)), 1, -2)
    if head == "q":
        flat = q.reshape(2, 5, 6, -1)
        q = (flat - flat.max(-1, keepdims=True)) @ np.asarray(params["policy"])
    if head != "window":
        expected = q.reshape(2, 5, 6, orientations, actions)
        np.testing.assert_allclose(output.logits, expected, rtol=1e-4, atol=1e-4)


def test_kernels_are_sharper_in_use_than_in_training():
    maze, goal = inputs(1)
    model = DTVIN(**NEWS, depth=3, sharpness=2.0)
    params = init_params(model, jax.random.key(0))
    apply = jax.jit(DTVIN.apply, static_argnums=0, static_argnames="train")
    plain = apply(model.clone(sharpness=1.0), params, maze, goal, train=False).logits
    np.testing.assert_array_equal(apply(model, params, maze, goal, train=True).logits, plain)
    weights = {name: params["params"][name] for name in ("transition", "transition_bias")}
    doubled = {"params": {**params["params"], **jax.tree.map(lambda x: 2 * x, weights)}}
    sharper = apply(model, params, maze, goal, train=False).logits
    np.testing.assert_allclose(
        apply(model.clone(sharpness=1.0), doubled, maze, goal, train=False).logits, sharper, 1e-5
    )
    assert np.abs(sharper - plain).max() > 1e-2
    own = apply(model.clone(sharpness=0.0), params, maze, goal, train=False).logits
    same = apply(model.clone(sharpness=16.0), params, maze, goal, train=False).logits
    np.testing.assert_array_equal(own, same)


def test_actions_start_as_steps_to_neighbours():
    """North, east, west, south; to the other orientations of a cell first where it has some."""
    news = init_params(DTVIN(**NEWS), jax.random.key(0))["params"]["transition_bias"]
    places = np.asarray(news).reshape(9, 4).argmax(0)
    assert [divmod(int(place), 3) for place in places] == [(0, 1), (1, 2), (1, 0), (2, 1)]
    drive = init_params(DTVIN(4, 3, latent_actions=7, window="all", head="q"), jax.random.key(0))[
        "params"
    ]
    own = np.asarray(drive["transition_bias"]).reshape(3, 3, 4, 7, 4)[..., 2]
    assert (own[1, 1, [1, 2, 3], [0, 1, 2]] > 0).all()
    assert own[0, 1, 0, 3] > 0
    assert (own > 0).sum() == 7


def test_actions_start_as_the_moves_of_the_agent():
    moves = get_mechanism("diffdrive").moves
    model = DTVIN(moves=moves)
    bias = init_params(model, jax.random.key(0))["params"]["transition_bias"]
    of_west = np.asarray(bias).reshape(12, 3, 4)[..., 2].argmax(0)
    places = places_around(3, 4, "steps")
    # Forward, to the north (the first orientation), to the south (the last).
    assert [places[k] for k in of_west] == [(0, -1, 0), (0, 0, 2), (0, 0, 1)]
    with pytest.raises(ValueError, match=r"moves must have shape \(4, 3, 3\), .* got \(1, 3, 3\)"):
        init_params(model.clone(moves=moves[:1]), jax.random.key(0))
    far = [[(2, 0, 0)] * 3] * 4
    with pytest.raises(ValueError, match=r"a move of \(2, 0, 0\), .* is beyond the kernels"):
        init_params(make_model("dtvin", moves=far), jax.random.key(0))


@pytest.mark.parametrize(
    "model",
    [
        VIN(depth=6, latent_actions=4, hidden=5),
        HighwayVIN(num_blocks=3, block_depth=2, latent_actions=4, hidden=5),
        DTVIN(depth=6),
        HighwayDTVIN(num_blocks=3, block_depth=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_policies_between_layers(model):
    """They are those of the same model with fewer layers."""
    maze, goal = inputs(4)
    params = init_params(model, jax.random.key(0))
    output = model.apply(params, maze, goal, train=False, policies_every=2)
    np.testing.assert_array_equal(output.layers.depths, [2, 4, 6])
    if isinstance(model, HighwayVIN | HighwayDTVIN):
        first = {k: x[:1] if k.startswith("alpha") else x for k, x in params["params"].items()}
        shorter = model.clone(num_blocks=1).apply({"params": first}, maze, goal, train=False)
    else:
        shorter = model.clone(depth=2).apply(params, maze, goal, train=False)
    read = output.layers.read
    chex.assert_trees_all_close(read(output.layers.values[0]), shorter.logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(read(output.layers.values[-1]), output.logits)


@pytest.mark.parametrize(
    ("model", "every", "message"),
    [
        (DTVIN(depth=6), 4, "6 layers do not end with a policy after each 4"),
        (HighwayVIN(), 7, "blocks of 5 layers, 100 in all, do not end with a policy after each 7"),
        (GPPN(), 5, "GPPN has no values between its layers"),
        (DTVIN(head="value"), 0, "head must be one of actions, q, window, got 'value'"),
        (DTVIN(latent_actions=7), 0, "head='actions' takes latent actions for those of the task"),
        (DTVIN(sharpness=-1.0), 0, "sharpness must be 0 or more, got -1.0"),
        (DTVIN(apart=-1.0), 0, "apart must be 0 or more, got -1.0"),
        (DTVIN(kernel_size=17), 0, "kernel_size must be at most 15, got 17"),
        (DTVIN(kernel_size=2), 0, "kernel_size must be odd"),
        (DTVIN(normalise="all"), 0, "normalise must be one of action, state, got 'all'"),
        (HighwayDTVIN(learned_gate=True), 0, "learned_policy and learned_gate need shared kernels"),
    ],
)
def test_mistakes(model, every, message):
    maze, goal = inputs(4)
    with pytest.raises(ValueError, match=message):
        model.init(jax.random.key(0), maze, goal, train=False, policies_every=every)


@pytest.mark.slow
def test_it_learns():
    """From 0 to nearly all of tiny mazes in some steps, with the adaptive highway loss."""
    law = MazeLaw((7, 7))
    mazes = make_mazes(
        law=law, mechanism=get_mechanism("news"), train=64, valid=0, test=0, seed=0
    ).train
    model = DTVIN(**NEWS, depth=20)
    optimizer = optax.rmsprop(1e-2, 0.99)
    objective = Imitation(any_optimal=True, policies_every=5)
    step = jax.jit(make_train_step(maze_forward(model), objective, optimizer))
    params = init_params(model, jax.random.key(0))
    state = create_state(jax.random.key(0), params, optimizer)
    accuracy = []
    for _ in range(120):
        state, metrics = step(state, training_arrays(mazes))
        accuracy.append(float(metrics.accuracy))
    assert accuracy[0] < 0.9
    assert accuracy[-1] > 0.96, accuracy[::10]


@pytest.mark.parametrize(("mechanism", "goal_seen"), [("moore", "around"), ("diffdrive", "own")])
def test_symmetric_kernels_plan_alike_on_turned_maps(mechanism, goal_seen):
    motion = get_mechanism(mechanism)
    mazes = make_mazes(
        law=MazeLaw((5, 5), (0.5, 1.0)), mechanism=motion, train=1, valid=1, test=1, seed=3
    ).train
    model = DTVIN(
        motion.num_orientations, motion.num_actions, depth=3, moves=motion.moves,
        kernel_start="random", apart=2.0, reward_start="random", goal_seen=goal_seen,
    )  # fmt: skip
    group = symmetries(motion, mazes.size)
    which = jnp.arange(group.order)
    batch = {
        name: jnp.repeat(jnp.asarray(x), group.order, axis=0) for name, x in mazes.arrays().items()
    }
    turned = group.transform(batch, which)
    params = init_params(model, jax.random.key(0))
    for symmetric in (False, True):
        forward = maze_forward(model.clone(symmetric=symmetric))
        output = jax.jit(forward)(params, turned)
        # Back again: the state that came to each place, and the old names of actions.
        back = np.zeros((group.order, 25 * motion.num_orientations, motion.num_actions))
        logits = np.asarray(output.logits).reshape(back.shape)
        for g in range(group.order):
            back[g, group.state[g]] = logits[g][:, group.action[g]]
        alike = np.abs(back - back[:1]).max() < 1e-4
        assert alike == symmetric


def test_symmetric_kernels_need_moves():
    with pytest.raises(ValueError, match="symmetric=True needs moves"):
        init_params(DTVIN(**NEWS, symmetric=True), jax.random.key(0))
