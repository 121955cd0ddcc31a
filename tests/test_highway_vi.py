"""Highway value iteration: against the oracle, its reductions, its noise, JAX's transformations."""

import dataclasses
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest
from jax.tree_util import Partial

import hvin_jax
from hvin_jax.planning.policies import explore

assert_close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
KEY = jax.random.key


def random_conv(seed, shape=(2, 3, 4, 2, 3, 3), dtype=np.float64):
    """Arrays of a `ConvMDP` and a value; `shape` is B, H, W, O, A, F."""
    b, h, w, o, a, f = shape
    rng = np.random.default_rng(seed)
    q_reward = rng.normal(size=(b, h, w, o, a))
    kernel = rng.normal(size=(f, f, o, o, a)) * 0.8 / (f * np.sqrt(o))
    return tuple(x.astype(dtype) for x in (q_reward, kernel, rng.normal(size=(b, h, w, o))))


def small_conv(seed=0, batch=4, actions=5):
    q_reward, kernel, _ = random_conv(seed, (batch, 2, 3, 2, actions, 3), np.float32)
    return hvin_jax.ConvMDP(q_reward, kernel)


def actions_of(key, mdp, **settings):
    settings = {"num_blocks": 2, "block_depth": 3} | settings
    return np.asarray(hvin_jax.highway_vi(key, mdp, return_actions=True, **settings).actions)


# Against the oracle ------------------------------------------------------------------------------


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"block_depth": 1},
        {"num_policies": 3},
        {"num_policies": 2, "epsilon": 0.5, "alpha": [0.5, -1.0], "alpha_tilde": [2.0, -0.3]},
        {"num_policies": 2, "alpha": 3.0, "alpha_tilde": -2.0, "filter_gate": False},
        {"epsilon": 0.3, "filter_gate": False, "block_depth": 4, "alpha": [-1.0, 2.0]},
        {"num_policies": 2, "key": None, "alpha": [0.5, -1.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["conv", "tabular"])
def test_against_the_oracle(kind, settings):
    if kind == "conv":
        q_reward, kernel, v0 = random_conv(0)
        mdp, q = hvin_jax.ConvMDP(q_reward, kernel), oracle.conv_q(q_reward, kernel)
    else:
        table = oracle.random_tabular(np.random.default_rng(1), 6, 3)
        mdp, q = hvin_jax.TabularMDP(*table), oracle.tabular_q(*table)
        v0 = np.random.default_rng(2).normal(size=6)
    shape = {"num_blocks": 2, "block_depth": 3, "num_policies": 1}
    settings = shape | settings
    key, epsilon = settings.pop("key", KEY(3)), settings.pop("epsilon", 1.0)
    output = hvin_jax.highway_vi(
        key,
        mdp,
        v0=v0,
        return_values=True,
        return_actions=True,
        epsilon=epsilon,
        **{k: np.asarray(v) if isinstance(v, list) else v for k, v in settings.items()},
    )
    layers = 1 + settings["num_policies"] * (settings["block_depth"] - 1)
    assert output.actions.shape == (2, layers, *mdp.value_shape)
    assert output.values.shape == (2, *mdp.value_shape)
    assert output.value.shape == mdp.value_shape
    assert jnp.issubdtype(output.actions.dtype, jnp.integer)
    actions = np.asarray(output.actions)
    assert ((actions >= 0) & (actions < mdp.num_actions)).all()
    expected = oracle.highway_vi(q, v0, actions=actions, **settings)
    assert_close(output.values, expected)
    assert_close(output.value, expected[-1])
    starts = np.stack([v0, *expected[:-1]])
    np.testing.assert_array_equal(actions[:, 0], [q(start).argmax(-1) for start in starts])
    if key is None:
        assert_close(expected, oracle.highway_vi(q, v0, **settings))


def test_what_was_not_asked_for_is_not_returned():
    output = hvin_jax.highway_vi(None, small_conv(), num_blocks=1, block_depth=2)
    assert output.values is None
    assert output.actions is None


# Reductions --------------------------------------------------------------------------------------


def same(x, y):
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), x, y)


@pytest.mark.parametrize("key", [None, KEY(0)])
def test_block_depth_one_is_value_iteration(key):
    mdp = small_conv()
    asked = {"return_values": True, "return_actions": True}
    blocks = hvin_jax.highway_vi(key, mdp, num_blocks=5, block_depth=1, num_policies=2, **asked)
    plain = hvin_jax.value_iteration(mdp, num_iterations=5, **asked)
    same(blocks.values, plain.values)
    same(blocks.actions[:, 0], plain.actions)


@pytest.mark.parametrize("num_policies", [1, 2])
def test_epsilon_zero_is_greedy(num_policies):
    mdp = small_conv()
    settings = {"num_blocks": 3, "block_depth": 3, "num_policies": num_policies}
    asked = {"return_values": True, "return_actions": True}
    greedy = hvin_jax.highway_vi(None, mdp, **settings, **asked)
    assert greedy.actions.shape[1] == 1 + 2 * num_policies
    for epsilon in (0.0, 0, jnp.float32(0.0)):
        same(hvin_jax.highway_vi(KEY(0), mdp, epsilon=epsilon, **settings, **asked), greedy)
    same(hvin_jax.highway_vi(None, mdp, epsilon=0.5, **settings, **asked), greedy)


def test_epsilon_as_an_array_is_epsilon_as_a_float():
    plan = partial(
        *(hvin_jax.highway_vi, KEY(0), small_conv()),
        num_blocks=2,
        block_depth=4,
        num_policies=2,
        return_actions=True,
    )
    for epsilon in (0.3, 1.0):
        same(plan(epsilon=jnp.float32(epsilon)), plan(epsilon=epsilon))
    same(plan(epsilon=1), plan())


def test_a_chain_in_evaluation_is_value_iteration_layer_by_layer():
    """A gate that lets the last depth pass alone makes the blocks one long chain."""
    mdp = small_conv()

    def last(values, *, block):
        return jnp.zeros_like(values).at[-1].set(1.0)

    output = hvin_jax.highway_vi(
        None,
        mdp,
        num_blocks=3,
        block_depth=4,
        filter_gate=False,
        depth_gate=last,
        return_values=True,
        return_actions=True,
    )
    plain = hvin_jax.value_iteration(
        mdp, num_iterations=12, return_values=True, return_actions=True
    )
    same(output.values, plain.values[3::4])
    same(output.actions.reshape(plain.actions.shape), plain.actions)


@pytest.mark.parametrize("alpha_tilde", [-3.0, 0.0, 1.0, 10.0])
def test_copies_of_a_chain_change_nothing(alpha_tilde):
    """N_p chains with equal actions: here those of one constant policy, and greedy ones."""
    mdp = small_conv()
    for policy in (None, lambda q, **_: jnp.zeros_like(q).at[..., 1].set(1.0)):
        plan = partial(
            hvin_jax.highway_vi, None, mdp, num_blocks=2, block_depth=3, policy=policy, alpha=0.7
        )
        same(plan(num_policies=3, alpha_tilde=alpha_tilde).value, plan().value)


def test_outer_temperature_is_irrelevant_for_one_policy():
    plan = partial(hvin_jax.highway_vi, KEY(0), small_conv(), num_blocks=2, block_depth=3)
    same(plan(alpha_tilde=50.0).value, plan(alpha_tilde=-2.0).value)
    two = partial(plan, num_policies=2)
    assert jnp.abs(two(alpha_tilde=50.0).value - two(alpha_tilde=-2.0).value).max() > 1e-3


def test_temperatures_of_each_block():
    mdp = small_conv()
    plan = partial(hvin_jax.highway_vi, None, mdp, num_blocks=2, block_depth=3)
    same(plan(alpha=2.0).value, plan(alpha=jnp.array([2.0, 2.0])).value)
    same(plan(alpha=2.0).value, plan(alpha=jnp.float32(2.0)).value)
    # The second block's temperature leaves the value after the first block alone.
    first, second = (
        plan(alpha=jnp.array(alpha), return_values=True).values for alpha in ([2.0, 2], [2.0, -1])
    )
    same(first[0], second[0])
    assert jnp.abs(first[1] - second[1]).max() > 1e-3


# Noise -------------------------------------------------------------------------------------------


def test_a_key_determines_the_result():
    mdp = small_conv()
    first = actions_of(KEY(0), mdp, num_policies=2)
    np.testing.assert_array_equal(first, actions_of(KEY(0), mdp, num_policies=2))
    other = actions_of(KEY(1), mdp, num_policies=2)
    assert (first[:, 1:] != other[:, 1:]).mean() > 0.5


def test_noise_belongs_to_the_example_and_not_to_its_place():
    q_reward, kernel, _ = random_conv(4, (4, 2, 3, 2, 5, 3), np.float32)
    index = np.array([7, 0, 3, 2])

    def plan(chosen, epsilon):
        output = hvin_jax.highway_vi(
            KEY(0),
            hvin_jax.ConvMDP(q_reward[chosen], kernel),
            num_blocks=2,
            block_depth=3,
            num_policies=2,
            epsilon=epsilon,
            example_index=index[chosen],
            return_actions=True,
        )
        return output.value, jnp.moveaxis(output.actions, 2, 0)

    for epsilon, parts in ((1.0, [[2, 3, 1, 0]]), (0.5, [[2, 3, 1, 0], [0, 1], [2, 3]])):
        whole = plan(np.arange(4), epsilon)
        for part in parts:
            same(
                plan(np.array(part), epsilon), jax.tree.map(lambda x, p=part: x[np.array(p)], whole)
            )


def test_default_example_index_counts_the_batch():
    mdp = small_conv()
    default = actions_of(KEY(0), mdp)
    np.testing.assert_array_equal(default, actions_of(KEY(0), mdp, example_index=np.arange(4)))
    shifted = actions_of(KEY(0), mdp, example_index=np.arange(4) + 1)
    np.testing.assert_array_equal(default[:, 1:, 1:], shifted[:, 1:, :-1])
    large = actions_of(KEY(0), mdp, example_index=np.array([2**31 - 1, 0, 0, 1]))
    np.testing.assert_array_equal(large[:, 1:, 1], large[:, 1:, 2])
    np.testing.assert_array_equal(large[:, 1:, 3], default[:, 1:, 1])
    assert (large[:, 1:, 0] != default[:, 1:, 0]).mean() > 0.5


@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_shared_exploration(epsilon):
    batch = 3
    q_reward, kernel, _ = random_conv(5, (1, 3, 3, 2, 5, 3), np.float32)
    mdp = hvin_jax.ConvMDP(np.repeat(q_reward, batch, 0), kernel)
    shared = actions_of(KEY(0), mdp, share_exploration=True, num_policies=2, epsilon=epsilon)
    np.testing.assert_array_equal(shared, np.repeat(shared[:, :, :1], batch, axis=2))
    own = actions_of(KEY(0), mdp, num_policies=2, epsilon=epsilon)[:, 1:]
    assert (own[:, :, 0] != own[:, :, 1]).mean() > 0.2
    # Layers, chains and blocks still differ from each other.
    layers = shared[:, 1:, 0].reshape(8, -1)
    assert all((x != y).any() for x, y in itertools.combinations(layers, 2))


NUM_ACTIONS = 5


def constant_q(batch=16):
    """Q that no value changes, with the best action known: for the statistics of choices."""
    q_reward = np.random.default_rng(6).normal(size=(batch, 5, 4, 2, NUM_ACTIONS))
    mdp = hvin_jax.ConvMDP(q_reward.astype(np.float32), np.zeros((1, 1, 2, 2, NUM_ACTIONS), "f4"))
    return mdp, q_reward.argmax(-1)


def chi_square(counts):
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("num_actions", [1, 2, 7, 700, 2**22, 2**31 - 1])
def test_layers_that_share_random_words_stay_uniform(num_actions):
    """Means of the drawn actions, layer by layer, for bases of many digits, one and in between."""
    mdp = Size(num_actions)
    for length in (1, 2, 23):
        drawn = explore(KEY(0), mdp, length=length, epsilon=1.0, example_index=jnp.arange(16))
        actions = np.asarray(drawn.actions, np.float64)
        assert actions.shape == (length, 16, 16, 4, 4)
        assert actions.min() >= 0
        assert actions.max() < num_actions
        deviation = np.sqrt((num_actions**2 - 1) / 12 / actions[0].size)
        assert (np.abs(actions.mean((1, 2, 3, 4)) - (num_actions - 1) / 2) <= 5 * deviation).all()


@dataclasses.dataclass
class Size:
    """An MDP as far as its noise is concerned."""

    num_actions: int
    batched = True
    value_shape = (16, 16, 4, 4)


@pytest.mark.parametrize("share", [False, True])
def test_drawn_actions_are_uniform_and_independent(share):
    mdp, _ = constant_q()
    actions = actions_of(
        KEY(1), mdp, num_blocks=3, block_depth=4, num_policies=2, share_exploration=share
    )[:, 1:]
    if share:
        actions = actions[:, :, :1]
    # χ² of 4 degrees of freedom exceeds 18.5 once in a thousand.
    counts = np.bincount(actions.ravel(), minlength=NUM_ACTIONS)
    assert chi_square(counts) < 18.5
    # Pairs of actions along each axis: blocks, layers of a chain, chains, examples, cells,
    # orientations. χ² of 24 degrees of freedom exceeds 51.2 once in a thousand.
    chains = actions.reshape(3, 2, 3, *actions.shape[2:])
    for axis in range(chains.ndim):
        if chains.shape[axis] > 1:
            moved = np.moveaxis(chains, axis, 0)
            pairs = moved[:-1] * NUM_ACTIONS + moved[1:]
            assert chi_square(np.bincount(pairs.ravel(), minlength=NUM_ACTIONS**2)) < 51.2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 0.9])
def test_frequency_of_greedy_actions(epsilon):
    """P(best) = 1 - ε + ε / A, and the others are equally likely."""
    mdp, best = constant_q()
    actions = actions_of(KEY(2), mdp, epsilon=epsilon, num_blocks=3, num_policies=2)[:, 1:]
    greedy = actions == best
    probability = 1 - epsilon + epsilon / NUM_ACTIONS
    deviation = np.sqrt(probability * (1 - probability) / greedy.size)
    assert abs(greedy.mean() - probability) < 4 * deviation
    others = ((actions - best) % NUM_ACTIONS)[~greedy] - 1
    assert chi_square(np.bincount(others, minlength=NUM_ACTIONS - 1)) < 16.3  # 3 degrees


def test_greedy_actions_are_those_of_the_modules_own_q():
    """In a VE module, Q comes from the value of its own chain and not from that of the block."""
    q_reward, kernel, v0 = random_conv(7, (4, 4, 4, 1, 4, 3))
    q_reward *= 0.1  # so that values matter
    q, epsilon = oracle.conv_q(q_reward, kernel), 0.5
    output = hvin_jax.highway_vi(
        KEY(3),
        hvin_jax.ConvMDP(q_reward, kernel),
        num_blocks=1,
        block_depth=8,
        epsilon=epsilon,
        v0=v0,
        return_actions=True,
    )
    actions = np.asarray(output.actions[0])
    inputs = [v0, *oracle.follow(q, v0, actions)[:-1]]
    greedy = [actions[i] == q(inputs[i]).argmax(-1) for i in range(8)]
    assert np.mean(greedy[0]) == 1
    assert abs(np.mean(greedy[1:]) - (1 - epsilon + epsilon / 4)) < 0.08


# Learnable policies and gates --------------------------------------------------------------------


def table_policy(table, q, *, block, chain, layer):
    return table[block, chain, layer]


def table_gate(table, values, *, block):
    return table[block]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("filter_gate", [True, False])
def test_learnable_policy_and_gates_against_the_oracle(filter_gate):
    """Set to fixed random distributions, different for each layer, chain, block and state."""
    blocks, depth, chains = 2, 3, 2
    q_reward, kernel, v0 = random_conv(8)
    rng = np.random.default_rng(9)
    mixes = oracle.random_policies(rng, blocks, chains, depth - 1, *q_reward.shape)
    depth_weights = np.moveaxis(oracle.random_policies(rng, blocks, *v0.shape, depth), -1, 1)
    chain_weights = np.moveaxis(oracle.random_policies(rng, blocks, *v0.shape, chains), -1, 1)
    settings = {
        "num_blocks": blocks,
        "block_depth": depth,
        "num_policies": chains,
        "filter_gate": filter_gate,
    }
    output = hvin_jax.highway_vi(
        None,
        hvin_jax.ConvMDP(q_reward, kernel),
        v0=v0,
        policy=Partial(table_policy, jnp.asarray(mixes)),
        depth_gate=Partial(table_gate, jnp.asarray(depth_weights)),
        policy_gate=Partial(table_gate, jnp.asarray(chain_weights)),
        return_values=True,
        return_actions=True,
        **settings,
    )
    expected = oracle.highway_vi(
        oracle.conv_q(q_reward, kernel),
        v0,
        policy=lambda q, block, chain, layer: mixes[block, chain, layer],
        depth_gate=lambda values, block: depth_weights[block],
        policy_gate=lambda values, block: chain_weights[block],
        **settings,
    )
    assert_close(output.values, expected)
    likely = mixes.argmax(-1).reshape(blocks, chains * (depth - 1), *v0.shape)
    np.testing.assert_array_equal(output.actions[:, 1:], likely)


def softmax_policy(scale, q, *, block, chain, layer):
    return jax.nn.softmax(scale[block, chain, layer] * q, axis=-1)


def softmax_gate(scale, values, *, block):
    return jax.nn.softmax(scale[block] * values, axis=0)


@pytest.mark.usefixtures("x64")
def test_gradients_of_learnable_policies_and_gates():
    """Equal to autodiff of loops; they also reach the MDP, through VI and VE modules alike."""
    blocks, chains, layers = 2, 2, 2
    rng = np.random.default_rng(11)
    transition, reward, discount = oracle.random_tabular(rng, 4, 3)
    args = [
        jnp.asarray(x)
        for x in (
            (transition * reward).sum(-1),
            rng.uniform(-2, 2, (blocks, chains, layers)),
            rng.uniform(-2, 2, blocks),
            rng.uniform(-2, 2, blocks),
        )
    ]
    weights = jnp.asarray(rng.normal(size=4))

    def ours(reward, mix, over_depth, over_chains):
        output = hvin_jax.highway_vi(
            None,
            hvin_jax.TabularMDP(transition, reward, discount),
            num_blocks=blocks,
            block_depth=layers + 1,
            num_policies=chains,
            policy=Partial(softmax_policy, mix),
            depth_gate=Partial(softmax_gate, over_depth),
            policy_gate=Partial(softmax_gate, over_chains),
        )
        return jnp.vdot(weights, output.value)

    def plain(reward, mix, over_depth, over_chains):
        value = jnp.zeros(4)
        for n in range(blocks):
            first = (reward + discount * transition @ value).max(-1)
            outputs = []
            for p in range(chains):
                values = [first]
                for k in range(layers):
                    q = reward + discount * transition @ values[-1]
                    values.append(jnp.sum(jax.nn.softmax(mix[n, p, k] * q, axis=-1) * q, axis=-1))
                stack = jnp.maximum(jnp.stack(values), first[None])
                outputs.append(jnp.sum(jax.nn.softmax(over_depth[n] * stack, 0) * stack, 0))
            stack = jnp.stack(outputs)
            value = jnp.sum(jax.nn.softmax(over_chains[n] * stack, 0) * stack, 0)
        return jnp.vdot(weights, value)

    actual, expected = (
        jax.jit(jax.value_and_grad(f, argnums=(0, 1, 2, 3)))(*args) for f in (ours, plain)
    )
    jax.tree.map(assert_close, actual, expected)
    assert all((np.asarray(grad) != 0).any() for grad in actual[1])


# Transformations ---------------------------------------------------------------------------------


def plan_conv(key, q_reward, kernel, example_index=None, epsilon=0.5):
    return hvin_jax.highway_vi(
        key,
        hvin_jax.ConvMDP(q_reward, kernel),
        num_blocks=2,
        block_depth=3,
        num_policies=2,
        epsilon=epsilon,
        example_index=example_index,
        return_actions=True,
    )


def test_under_jit_and_vmap():
    """Over keys and over MDPs: each is what one call gives."""
    q_reward, kernel, _ = random_conv(12, (3, 2, 3, 2, 4, 3), np.float32)
    keys = jax.random.split(KEY(0), 2)
    q_rewards, kernels = np.stack([q_reward, -q_reward]), np.stack([kernel, kernel[::-1]])
    over_mdps = jax.vmap(plan_conv, in_axes=(None, 0, 0))
    both = jax.jit(jax.vmap(over_mdps, in_axes=(0, None, None)))(keys, q_rewards, kernels)
    for i, j in np.ndindex(2, 2):
        each = plan_conv(keys[i], q_rewards[j], kernels[j])
        same(jax.tree.map(lambda x, i=i, j=j: x[i, j], both), each)


def test_gradients_under_vmap():
    q_reward, kernel, _ = random_conv(13, (2, 2, 2, 1, 3, 3), np.float32)
    keys = jax.random.split(KEY(0), 3)
    grad = jax.grad(lambda kernel, key: plan_conv(key, q_reward, kernel).value.sum())
    each = jnp.stack([jax.jit(grad)(kernel, key) for key in keys])
    same(jax.jit(jax.vmap(grad, in_axes=(None, 0)))(kernel, keys), each)
    assert jnp.abs(each[0] - each[1]).max() > 1e-3


def test_splitting_a_batch_over_devices_changes_nothing():
    """Values, actions and (summed) gradients, of 8 examples on 1 and on 8 devices."""
    devices = 8
    assert jax.device_count() == devices
    q_reward, kernel, _ = random_conv(14, (devices, 2, 3, 2, 4, 3), np.float32)
    index = np.arange(devices) + 10

    def loss(kernel, q_reward, index):
        output = plan_conv(KEY(0), q_reward, kernel, index)
        return jnp.sum(output.value**2), (output.value, jnp.moveaxis(output.actions, 2, 0))

    grad = jax.grad(loss, has_aux=True)
    whole, expected = jax.jit(grad)(kernel, q_reward, index)

    def on_device(kernel, q_reward, index):
        grads, outputs = grad(kernel, q_reward, index)
        return jax.lax.psum(grads, "device"), outputs

    grads, outputs = jax.pmap(on_device, axis_name="device", in_axes=(None, 0, 0))(
        kernel, q_reward[:, None], index[:, None]
    )
    same(jax.tree.map(lambda x: x[:, 0], outputs), expected)
    np.testing.assert_allclose(grads[0], whole, rtol=1e-4, atol=1e-4)


# Compilation, and an MDP of one's own ------------------------------------------------------------


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["target", "cost", "first", "degree"],
    meta_fields=["num_actions", "discount"],
)
@dataclasses.dataclass(frozen=True)
class GraphMDP:
    """Cheap ways through a sparse graph: what a third-party MDP looks like.

    Edges are a list sorted by where they start: state s has `degree[s]` of them from `first[s]` on.
    Actions choose among them; surplus actions repeat the earlier ones. No array is dense.
    """

    target: jax.Array  # [E] integers
    cost: jax.Array  # [E]
    first: jax.Array  # [S] integers
    degree: jax.Array  # [S] integers
    num_actions: int
    discount: float

    batched = False

    @property
    def value_shape(self):
        return self.first.shape

    def q_of(self, value, action):
        edge = self.first + action % self.degree
        return self.discount * value[self.target[edge]] - self.cost[edge]

    def q(self, value):
        TRACES.append(self.value_shape)
        every = jnp.arange(self.num_actions, dtype=self.first.dtype)
        return jax.vmap(lambda a: self.q_of(value, a), out_axes=-1)(every)

    def greedy(self, value):
        q = self.q(value)
        return q.max(-1), q.argmax(-1).astype(self.first.dtype)


TRACES = []  # grows whenever Python code of a GraphMDP runs: when tracing, and not in between


def random_graph(seed, states=9):
    """A ring with random chords; state 0 is the goal, where one rests at no cost."""
    rng = np.random.default_rng(seed)
    edges = [[0]] + [
        [(s + 1) % states, *rng.integers(0, states, rng.integers(0, 3))] for s in range(1, states)
    ]
    degree = np.array([len(x) for x in edges])
    target = np.concatenate(edges)
    cost = rng.uniform(0.1, 1.0, len(target))
    cost[0] = 0
    first = np.cumsum(degree) - degree
    arrays = target.astype(np.int32), cost.astype(np.float32), first.astype(np.int32)
    return GraphMDP(*map(jnp.asarray, (*arrays, degree.astype(np.int32))), 3, 0.9)


def best_walks(mdp):
    """V*, and the edge that the best walk takes from each state, by loops."""
    target, cost, first, degree = (np.asarray(x) for x in jax.tree.leaves(mdp))
    states = range(len(first))
    value = np.zeros(len(first))
    for _ in range(500):
        choices = [
            [(mdp.discount * value[target[e]] - cost[e], e) for e in range(f, f + d)]
            for f, d in zip(first, degree, strict=True)
        ]
        value = np.array([max(choices[s])[0] for s in states])
    return value, [max(choices[s])[1] for s in states]


def test_all_mdps_satisfy_the_protocol():
    mdps = small_conv(), hvin_jax.TabularMDP(np.eye(2)[:, None], np.zeros((2, 1)), 0.5)
    for mdp in (*mdps, random_graph(0)):
        assert isinstance(mdp, hvin_jax.MDP)
    assert not isinstance(np.zeros(3), hvin_jax.MDP)


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 1.0, "num_policies": 2}, {"epsilon": 0.5}],
    ids=str,
)
def test_an_mdp_of_ones_own(settings):
    """It converges; and ∂V*(s) / ∂cost(e) is -γᵏ for each time k at which e is walked from s."""
    mdp = random_graph(1)
    optimal, best_edge = best_walks(mdp)

    @jax.jit
    @partial(jax.jacrev, allow_int=True, has_aux=True)
    def plan(mdp):
        value = hvin_jax.highway_vi(KEY(0), mdp, num_blocks=150, block_depth=4, **settings).value
        return value, value

    jacobian, value = plan(mdp)
    np.testing.assert_allclose(value, optimal, atol=1e-5)
    expected = np.zeros((len(optimal), len(mdp.cost)))
    for start in range(len(optimal)):
        state = start
        for k in range(300):
            expected[start, best_edge[state]] -= mdp.discount**k
            state = mdp.target[best_edge[state]]
    np.testing.assert_allclose(jacobian.cost, expected, atol=1e-4)


def test_value_iteration_in_an_mdp_of_ones_own():
    mdp = random_graph(2)
    optimal, best_edge = best_walks(mdp)
    output = hvin_jax.value_iteration(mdp, num_iterations=150, return_actions=True)
    np.testing.assert_allclose(output.value, optimal, atol=1e-5)
    np.testing.assert_array_equal(mdp.first + output.actions[-1] % mdp.degree, best_edge)


def scaled_policy(scale, q, **_):
    return jax.nn.softmax(scale * q, axis=-1)


blocks = partial(hvin_jax.highway_vi, num_blocks=2, block_depth=3)


# A size for each, so that nothing was compiled before.
@pytest.mark.parametrize(
    ("states", "plan"),
    [
        (31, lambda mdp, x: hvin_jax.value_iteration(mdp, num_iterations=3, v0=jnp.full(31, x))),
        (32, lambda mdp, x: blocks(KEY(int(x)), mdp, alpha=x, alpha_tilde=np.float64(x))),
        (33, lambda mdp, x: blocks(KEY(int(x)), mdp, epsilon=jnp.float32(x / 9))),
        (34, lambda mdp, x: blocks(None, mdp, policy=Partial(scaled_policy, jnp.float32(x)))),
        (
            35,
            lambda mdp, x: hvin_jax.highway_operator(
                *(mdp, jnp.full(35, x), jnp.full((1, 35, 3), 1 / 3), (1, 2)),
                alpha=x,
                alpha_tilde=x,
            ),
        ),
    ],
    ids=["value_iteration", "temperatures", "epsilon", "policy", "highway_operator"],
)
def test_new_values_do_not_compile_again(states, plan):
    TRACES.clear()
    mdp = random_graph(3, states)
    plan(mdp, 1.0)
    first = len(TRACES)
    assert first > 0
    for x in (2.0, 3.0):
        plan(dataclasses.replace(mdp, cost=mdp.cost * x), x)
    assert len(TRACES) == first
