"""The four models: forward passes against the oracle, parameters, switches, depth."""

from functools import lru_cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest

from hvin_jax.models import GPPN, VIN, HighwayNetwork, HighwayVIN, init_params
from hvin_jax.models._layers import observation
from hvin_jax.models.highway import learned_temperatures, typed_key
from hvin_jax.tasks import evaluate, get_mechanism, label_mazes

KEY = jax.random.key
assert_close = partial(np.testing.assert_allclose, rtol=2e-4, atol=2e-5)
SMALL = {"latent_actions": 4, "kernel_size": 3, "hidden": 5}
MODELS = {
    "vin": VIN(depth=4, **SMALL),
    "gppn": GPPN(depth=4, kernel_size=3, hidden=5),
    "highway network": HighwayNetwork(num_blocks=2, block_depth=3, **SMALL),
    "highway vin": HighwayVIN(num_blocks=2, block_depth=3, num_policies=2, **SMALL),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def inputs(model, batch=2, height=3, width=4, seed=0):
    rng = np.random.default_rng(seed)
    maze = rng.integers(0, 2, (batch, height, width))
    goal = np.zeros((batch, height * width, model.num_orientations), int)
    goal[np.arange(batch), rng.integers(0, height * width, batch)] = 1
    return maze, goal.reshape(batch, height, width, -1)


def random_params(model, maze, goal, seed=0):
    """Parameters of the right shapes, none of them zero or special; values grow moderately."""
    shapes = jax.eval_shape(partial(model.init, train=False), KEY(0), maze, goal)["params"]
    leaves, tree = jax.tree.flatten(shapes)
    rng = np.random.default_rng(seed)
    return tree.unflatten([rng.uniform(-0.5, 0.5, x.shape).astype(np.float32) for x in leaves])


def initial_params(model, maze, goal):
    return jax.jit(partial(model.init, train=False))(KEY(0), maze, goal)["params"]


@lru_cache
def compiled(model, train, diagnostics):
    @jax.jit
    def apply(params, maze, goal, rngs, example_index):
        settings = {"train": train, "diagnostics": diagnostics, "example_index": example_index}
        return model.apply({"params": params}, maze, goal, rngs=rngs, **settings)

    return apply


def run(model, params, maze, goal, *, train=False, key=None, diagnostics=False, example_index=None):
    rngs = None if key is None else {"exploration": key}
    return compiled(model, train, diagnostics)(params, maze, goal, rngs, example_index)


def double(params):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), params)


# Forward passes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("orientations", "actions", "tied"),
    [(4, 3, False), (4, 3, True), (1, 4, False), (1, 8, True)],
)
def test_vin_against_the_oracle(orientations, actions, tied):
    """Differential drive, NEWS and Moore; maps that are not square."""
    model = MODELS["vin"].clone(
        num_orientations=orientations, num_actions=actions, tie_kernels=tied
    )
    data = inputs(model)
    params = random_params(model, *data)
    output = run(model, params, *data, diagnostics=True)
    logits, values = oracle.vin(double(params), *data, model.depth)
    assert output.logits.shape == (*data[1].shape, actions)
    assert_close(output.logits, logits)
    assert_close(output.values, values)
    assert_close(output.value, values[-1])
    assert output.actions.shape == output.values.shape == (model.depth, *data[1].shape)


@pytest.mark.parametrize(("orientations", "actions"), [(4, 3), (1, 8)])
def test_highway_network_against_the_oracle(orientations, actions):
    model = MODELS["highway network"].clone(num_orientations=orientations, num_actions=actions)
    data = inputs(model)
    params = random_params(model, *data)
    output = run(model, params, *data, diagnostics=True)
    logits, values = oracle.highway_model(
        double(params), *data, num_blocks=2, block_depth=3, filter_gate=False
    )
    assert output.logits.shape == (*data[1].shape, actions)
    assert_close(output.logits, logits)
    assert_close(output.values, values)
    assert output.actions.shape == (6, *data[1].shape)


@pytest.mark.parametrize(
    ("train", "switches"),
    [
        (True, {}),
        (True, {"num_orientations": 1, "num_actions": 4, "num_policies": 1}),
        (True, {"epsilon": 0.5, "filter_gate": False, "tie_kernels": True}),
        (True, {"value_exploration": False}),
        (True, {"share_exploration": True, "learned_gate": True}),
        (True, {"learned_policy": True}),
        (True, {"learn_temperatures": False, "initial_temperature": -0.7}),
        (True, {"positive_temperatures": True}),
        (False, {}),
        (False, {"epsilon": 0.5, "filter_gate": False, "tie_kernels": True}),
        (False, {"num_orientations": 1, "num_actions": 4, "learned_gate": True}),
        (
            False,
            {"learned_policy": True, "learned_gate": True, "filter_gate": False, "num_policies": 3},
        ),
    ],
    ids=str,
)
@pytest.mark.slow
def test_highway_vin_against_the_oracle(train, switches):
    model = MODELS["highway vin"].clone(**switches)
    data = inputs(model)
    params = random_params(model, *data)
    output = run(model, params, *data, train=train, key=KEY(1), diagnostics=True)
    layers = 1 + model.num_policies * 2
    assert output.logits.shape == (*data[1].shape, model.num_actions)
    assert output.values.shape == (2, *data[1].shape)
    assert output.actions.shape == (2 * layers, *data[1].shape)
    settings = {} if model.learn_temperatures else {"alpha": -0.7, "alpha_tilde": -0.7}
    if model.positive_temperatures:
        params = params | {x: np.logaddexp(0, params[x]) for x in ("alpha", "alpha_tilde")}
    if train and model.value_exploration:
        settings["actions"] = np.asarray(output.actions).reshape(2, layers, *data[1].shape)
    logits, values = oracle.highway_model(
        double(params),
        *data,
        num_blocks=2,
        block_depth=3,
        num_policies=model.num_policies,
        filter_gate=model.filter_gate,
        **settings,
    )
    assert_close(output.values, values)
    assert_close(output.value, values[-1])
    assert_close(output.logits, logits)


def test_positive_temperatures_start_where_they_are_told_to():
    model = MODELS["highway vin"].clone(positive_temperatures=True, initial_temperature=0.3)
    data = inputs(model)
    alpha = init_params(model, KEY(0))["params"]["alpha"]
    np.testing.assert_allclose(jax.nn.softplus(alpha), 0.3, rtol=1e-6)
    with pytest.raises(ValueError, match=r"initial_temperature is -1\.0, expected .* 0 and 80"):
        run(model.clone(initial_temperature=-1.0), random_params(model, *data), *data)


def test_learned_temperatures():
    """Those that gates use: none that are not learned, of one chain no outer one."""
    model = MODELS["highway vin"]
    learned = {"alpha": jnp.array([0.5, -2.0]), "alpha_tilde": jnp.array([1.25, 3.0])}
    params = {"params": learned}
    both = {"alpha": [0.5, -2.0], "alpha_tilde": [1.25, 3.0]}
    assert learned_temperatures(model, params) == both
    assert learned_temperatures(model.clone(num_policies=1), params) == {"alpha": both["alpha"]}
    assert learned_temperatures(HighwayNetwork(), params) == {"alpha": both["alpha"]}
    (alpha, _) = learned_temperatures(model.clone(positive_temperatures=True), params).values()
    np.testing.assert_allclose(alpha, jax.nn.softplus(learned["alpha"]), atol=1e-4)
    fixed = model.clone(learn_temperatures=False)
    assert learned_temperatures(fixed, init_params(fixed, KEY(0))) == {}
    assert learned_temperatures(VIN(), init_params(VIN(), KEY(0))) == {}


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize(("orientations", "actions", "depth"), [(4, 3, 4), (1, 8, 1)])
def test_gppn_against_the_oracle(size, orientations, actions, depth):
    model = GPPN(
        num_orientations=orientations,
        num_actions=actions,
        kernel_size=size,
        hidden=4,
        depth=depth,
    )
    data = inputs(model)
    params = random_params(model, *data)
    output = run(model, params, *data, diagnostics=True)
    assert output.value is None
    assert_close(output.logits, oracle.gppn(double(params), *data, depth, size))


# Parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (VIN(latent_actions=600), 516_300),
        (HighwayNetwork(latent_actions=600, num_blocks=20), 516_300 + 20),
        (HighwayVIN(latent_actions=600, num_blocks=30), 516_300 + 2 * 30),
        (HighwayVIN(latent_actions=600, num_blocks=30, num_policies=3), 516_300 + 2 * 30),
        (HighwayVIN(latent_actions=600, learn_temperatures=False), 516_300),
        (VIN(latent_actions=600, tie_kernels=True), 516_300 - 5 * 5 * 4 * 4 * 600),
        (GPPN(), 509_551),
    ],
    ids=str,
)
def test_parameter_counts(model, count):
    """At O = 4, 3 actions, F = 5, hidden 150."""
    assert (model.num_orientations, model.num_actions) == (4, 3)
    assert (model.kernel_size, model.hidden) == (5, 150)
    shapes = jax.eval_shape(partial(model.init, train=False), KEY(0), *inputs(model))
    assert sum(x.size for x in jax.tree.leaves(shapes)) == count


def fan_ins(model):
    """What each parameter's range is made of; names of parameters that are no kernel are absent."""
    observed, o, u, f = 9 * (1 + model.num_orientations), 4, model.hidden, model.kernel_size
    if isinstance(model, GPPN):
        gather, conv = f * f * u, 9 * u
        return {
            "features": {"kernel": observed, "bias": observed},
            "hidden": {"kernel": conv, "bias": conv},
            "cell": {"kernel": conv, "bias": conv},
            "gather_kernel": gather,
            "gather_bias": gather,
            "input_kernel": u,
            "input_bias": u,
            "recurrent_kernel": u,
            "recurrent_bias": u,
            "policy": u,
        }
    return {
        "hidden_kernel": observed,
        "hidden_bias": observed,
        "reward": u,
        "reward_kernel": f * f * o,
        "policy": o * model.latent_actions,
    }


@each_model
@pytest.mark.slow
def test_initial_values(model):
    large = {"hidden": 40} if isinstance(model, GPPN) else {"hidden": 40, "latent_actions": 30}
    model = model.clone(**large)
    params = dict(initial_params(model, *inputs(model)))
    if not isinstance(model, GPPN):
        assert (params.pop("value_kernel") == 0).all()
    for name in {"alpha", "alpha_tilde"} & params.keys():
        np.testing.assert_array_equal(params.pop(name), np.ones(model.num_blocks))

    def check(x, fan_in):
        bound = fan_in**-0.5
        assert jnp.abs(x).max() <= bound
        if x.size > 100:  # and not in a narrower range
            assert jnp.abs(x).max() > 0.9 * bound
            assert jnp.abs(x.mean()) < 0.2 * bound
            assert abs(x.std() - bound / np.sqrt(3)) < 0.1 * bound

    jax.tree.map(check, params, fan_ins(model))


def test_tied_kernels_are_one_parameter():
    model = MODELS["highway vin"].clone(tie_kernels=True)
    params = initial_params(model, *inputs(model))
    assert {"kernel"} == {name for name in params if "kernel" in name} - {"hidden_kernel"}
    assert 0 < jnp.abs(params["kernel"]).max() <= (3 * 3 * 4) ** -0.5


# Inputs and noise --------------------------------------------------------------------------------


@each_model
@pytest.mark.slow
def test_any_type_of_zeros_and_ones(model):
    data = inputs(model)
    params = random_params(model, *data)
    expected = run(model, params, *data).logits
    actual = run(model, params, *(x.astype(bool) for x in data)).logits
    np.testing.assert_array_equal(actual, expected)
    assert expected.dtype == jnp.float32


def test_observations_of_any_type():
    """What all models see first."""
    maze, goal = inputs(MODELS["vin"])
    expected = np.concatenate([maze[..., None], goal], axis=-1)
    for dtype in (bool, np.uint8, np.int32, np.float16, np.float32):
        observed = observation(maze.astype(dtype), goal.astype(dtype), 4)
        assert observed.dtype == jnp.float32
        np.testing.assert_array_equal(observed, expected)


@each_model
def test_evaluation_is_deterministic_and_training_explores(model):
    """All models take noise and the indices of examples, whether they use them or not."""
    data = inputs(model)
    params = random_params(model, *data)
    evaluation = run(model, params, *data).logits
    np.testing.assert_array_equal(run(model, params, *data, key=KEY(5)).logits, evaluation)
    index = np.array([5, 2])
    training = [
        run(model, params, *data, train=True, key=KEY(k), example_index=index).logits
        for k in (0, 0, 1)
    ]
    np.testing.assert_array_equal(training[0], training[1])
    if isinstance(model, HighwayVIN):
        assert jnp.abs(training[0] - evaluation).max() > 1e-3
        assert jnp.abs(training[0] - training[2]).max() > 1e-3
    else:
        np.testing.assert_array_equal(training[0], evaluation)


def test_training_needs_noise():
    model = MODELS["highway vin"]
    data = inputs(model)
    params = random_params(model, *data)
    with pytest.raises(Exception, match="exploration"):
        run(model, params, *data, train=True)
    for switches in ({"value_exploration": False}, {"learned_policy": True}):
        other = model.clone(**switches)
        params = random_params(other, *data)
        training = run(other, params, *data, train=True).logits
        np.testing.assert_array_equal(training, run(other, params, *data).logits)


def test_keys_of_the_old_style_will_do():
    model = MODELS["highway vin"]
    data = inputs(model)
    params = random_params(model, *data)
    explore = partial(run, model, params, *data, train=True)
    assert jax.eval_shape(lambda: explore(key=jax.random.PRNGKey(3))).value.shape == data[1].shape
    assert typed_key(jax.random.PRNGKey(3)) == typed_key(KEY(3)) == KEY(3)


@pytest.mark.slow
def test_example_index():
    model = MODELS["highway vin"].clone(epsilon=0.7)
    maze, goal = inputs(model, batch=4)
    params = random_params(model, maze, goal)
    explore = partial(run, model, params, train=True, key=KEY(0))
    whole = explore(maze, goal).logits
    assert_close(explore(maze, goal, example_index=np.arange(4)).logits, whole)
    order = np.array([2, 0])
    part = explore(maze[order], goal[order], example_index=order).logits
    assert_close(part, whole[order])
    other = explore(maze[order], goal[order], example_index=np.arange(2)).logits
    assert jnp.abs(other - part).max() > 1e-3


# Gradients ---------------------------------------------------------------------------------------


@lru_cache
def compiled_gradients(model):
    @jax.jit
    @jax.value_and_grad
    def gradients(params, data, labels):
        noise = {"exploration": KEY(0)}
        logits = model.apply({"params": params}, *data, train=True, rngs=noise).logits
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
        return -picked.mean()

    return gradients


def loss_and_gradients(model, params, data):
    labels = np.random.default_rng(1).integers(0, model.num_actions, data[1].shape)
    return compiled_gradients(model)(params, data, labels)


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"epsilon": 0.5, "share_exploration": True, "tie_kernels": True},
        {"filter_gate": False, "value_exploration": False, "num_policies": 1},
        {"learned_policy": True, "learned_gate": True},
        {"learned_gate": True, "learn_temperatures": False, "num_policies": 3},
        {"block_depth": 1},
    ],
    ids=str,
)
@pytest.mark.slow
def test_gradients_of_all_switches(switches):
    model = MODELS["highway vin"].clone(**switches)
    data = inputs(model)
    params = random_params(model, *data)
    loss, grads = loss_and_gradients(model, params, data)
    assert jnp.isfinite(loss)
    # What a network has no use for: outer gates of chains that are alike, gates of one depth.
    idle = {"alpha_tilde"} if model.num_policies == 1 or not model.value_exploration else set()
    if model.block_depth == 1:
        idle = {"alpha", "alpha_tilde"}
    for name, grad in grads.items():
        assert jnp.isfinite(grad).all(), name
        assert (grad != 0).any() or name in idle, name


@each_model
@pytest.mark.slow
def test_very_deep_models_are_finite_at_the_start(model):
    depth = 1000
    blocks = {"num_blocks": depth // 10, "block_depth": 10}
    model = model.clone(
        **({"depth": depth} if isinstance(model, VIN | GPPN) else blocks), kernel_size=5
    )
    data = inputs(model, batch=1, height=4, width=4)
    params = initial_params(model, *data)
    loss, grads = loss_and_gradients(model, params, data)
    assert 0.5 < loss < 5
    chex.assert_tree_all_finite(grads)
    assert max(jnp.abs(grad).max() for grad in jax.tree.leaves(grads)) > 0


# JAX's 64-bit flag -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        *MODELS.values(),
        MODELS["highway vin"].clone(learned_policy=True, learned_gate=True),
        MODELS["highway vin"].clone(learn_temperatures=False, dtype="bfloat16"),
    ],
    ids=[*MODELS.keys(), "learned", "narrow"],
)
@pytest.mark.slow
def test_parameters_and_results_stay_single_when_the_flag_is_on(model):
    data = inputs(model)
    gradients = partial(loss_and_gradients, model, data=data)
    with jax.enable_x64(True):
        params = jax.eval_shape(partial(model.init, train=False), KEY(0), *data)["params"]
        results = jax.eval_shape(gradients, params)
    assert {str(x.dtype) for x in jax.tree.leaves((params, results))} == {"float32"}


@pytest.mark.parametrize("name", ["gppn", "highway vin"])
@pytest.mark.slow
def test_the_flag_changes_no_result(name):
    model = MODELS[name]
    data = inputs(model)
    params = random_params(model, *data)
    expected = loss_and_gradients(model, params, data)
    with jax.enable_x64(True):
        actual = loss_and_gradients(model, params, data)
    chex.assert_trees_all_close(actual, expected, rtol=1e-4, atol=1e-6)


def test_double_parameters_give_logits_in_double_precision(x64):
    model = MODELS["highway vin"].clone(num_policies=1)
    data = inputs(model)
    params = double(random_params(model, *data))
    with jax.numpy_dtype_promotion("standard"):
        logits = run(model, params, *data).logits
    expected, _ = oracle.highway_model(params, *data, num_blocks=2, block_depth=3)
    np.testing.assert_allclose(logits, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["news", "diffdrive"])
def test_latent_actions_may_start_as_moves(name):
    """Then a highway VIN knows at once how to cross a free map, if a step costs something."""
    mechanism = get_mechanism(name)
    model = HighwayVIN(
        num_orientations=mechanism.num_orientations,
        num_actions=mechanism.num_actions,
        moves=mechanism.moves,
        start_as_moves=True,
        latent_actions=6,
        kernel_size=3,
        hidden=5,
        num_blocks=14,
        block_depth=2,
    )
    params = init_params(model, jax.random.key(0))
    inner = dict(params["params"])
    # The reward: -0.1 for every free cell, -5.1 for walls, nothing for the goal.
    orientations = mechanism.num_orientations
    own_cell = 4 * (1 + orientations)
    reward, hidden_bias = np.zeros((5, orientations)), np.array([-1.02, 0, 0, 0, 0])
    kernel = np.zeros_like(inner["hidden_kernel"])
    kernel[own_cell, 0], reward[0] = 1, 5
    for orientation in range(orientations):
        kernel[own_cell + 1 + orientation, 1 + orientation] = 1
        reward[1 + orientation, orientation] = 0.1
    inner |= {"hidden_kernel": kernel, "hidden_bias": hidden_bias, "reward": reward}
    inner = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), inner)
    maze = np.pad(np.ones((1, 5, 5), np.uint8), ((0, 0), (1, 1), (1, 1)))
    maze[0, 2:5, 3] = 0
    data = label_mazes(
        maze, np.array([[3, 5, 0]], np.int32), np.random.default_rng(0), mechanism=mechanism
    )
    output = model.apply({"params": inner}, data.maze, data.goal_maps(), train=False)
    scores = evaluate(np.asarray(output.logits).argmax(-1), data)
    assert scores.optimality_rate == 1
    with pytest.raises(ValueError, match=r"start_as_moves needs moves of shape"):
        init_params(model.clone(moves=()), jax.random.key(0))
    with pytest.raises(ValueError, match="needs more latent actions"):
        init_params(model.clone(latent_actions=2), jax.random.key(0))
    with pytest.raises(ValueError, match="a move is beyond kernels of 1×1"):
        init_params(model.clone(kernel_size=1), jax.random.key(0))
