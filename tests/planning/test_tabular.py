"""Tabular MDPs: the operators against the oracle, and the facts of highway value iteration."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import planning_oracle as oracle
import pytest

import hvin_jax

pytestmark = pytest.mark.usefixtures("x64")
assert_close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)

NUM_MDPS = 200
STATES, ACTIONS, POLICIES = 5, 3, 2
DEPTH_SETS = [(1,), (2,), (1, 2, 3), (4, 1), (3, 3, 7)]
# Temperatures are redrawn for every MDP from this: also negative ones, zero and large ones.
TEMPERATURES = np.array([-50.0, -1.0, 0.0, 0.5, 1.0, 20.0])


def stacked_mdps(seed, n=NUM_MDPS):
    rng = np.random.default_rng(seed)
    tables = [oracle.random_tabular(rng, STATES, ACTIONS) for _ in range(n)]
    optimal = np.stack([oracle.optimal_value(*table) for table in tables])
    return *(np.stack(x) for x in zip(*tables, strict=True)), optimal


def over_mdps(function):
    """`function(mdp, *rest)` for a stack of tables, vectorised and compiled."""
    return jax.jit(jax.vmap(lambda t, r, d, *rest: function(hvin_jax.TabularMDP(t, r, d), *rest)))


def norm(x):
    return np.abs(x).max(-1)


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (4, 1), (5, 3)])
@pytest.mark.slow
def test_bellman_operators_against_the_oracle(size):
    rng = np.random.default_rng(sum(size))
    table = oracle.random_tabular(rng, *size)
    mdp, q = hvin_jax.TabularMDP(*table), oracle.tabular_q(*table)
    value, policy = rng.normal(size=size[0]), oracle.random_policies(rng, *size)
    action = rng.integers(0, size[1], size[0])
    expected = q(value)
    assert_close(mdp.q(value), expected)
    assert_close(mdp.q_of(value, jnp.asarray(action)), oracle.chosen(expected, action))
    best, greedy = mdp.greedy(value)
    assert_close(best, oracle.best(expected))
    np.testing.assert_array_equal(greedy, expected.argmax(-1))
    assert_close(hvin_jax.bellman_optimality(mdp, jnp.asarray(value)), oracle.best(expected))
    assert_close(
        hvin_jax.bellman_expectation(mdp, jnp.asarray(value), jnp.asarray(policy)),
        oracle.expectation(expected, policy),
    )


@pytest.mark.parametrize(
    ("depths", "filter_gate"),
    [*((depths, True) for depths in DEPTH_SETS), ((1, 2, 3), False), ((4, 1), False)],
)
@pytest.mark.slow
def test_highway_operator_against_the_oracle(depths, filter_gate):
    rng = np.random.default_rng(len(depths))
    table = oracle.random_tabular(rng, STATES, ACTIONS)
    value = rng.normal(size=STATES)
    policies = oracle.random_policies(rng, POLICIES, STATES, ACTIONS)
    mdp = hvin_jax.TabularMDP(*table)

    @jax.jit
    def operate(value, policies, alpha, alpha_tilde):
        return hvin_jax.highway_operator(
            *(mdp, value, policies, depths),
            alpha=alpha,
            alpha_tilde=alpha_tilde,
            filter_gate=filter_gate,
        )

    for alpha, alpha_tilde in [(1.0, 1.0), (-2.0, 0.5), (0.0, 7.0)]:
        actual = operate(value, policies, alpha, alpha_tilde)
        expected = oracle.highway_operator(
            oracle.tabular_q(*table), value, policies, depths, alpha, alpha_tilde, filter_gate
        )
        assert_close(actual, expected)


def test_value_iteration_against_the_oracle():
    rng = np.random.default_rng(3)
    table = oracle.random_tabular(rng, STATES, ACTIONS)
    v0 = rng.normal(size=STATES)
    output = hvin_jax.value_iteration(
        hvin_jax.TabularMDP(*table),
        num_iterations=6,
        v0=v0,
        return_values=True,
        return_actions=True,
    )
    q = oracle.tabular_q(*table)
    expected = oracle.value_iteration(q, v0, 6)
    assert_close(output.values, expected)
    assert_close(output.value, expected[-1])
    starts = [v0, *expected[:-1]]
    np.testing.assert_array_equal(output.actions, [q(start).argmax(-1) for start in starts])


def test_value_iteration_starts_from_zero_and_converges():
    table = oracle.random_tabular(np.random.default_rng(4), STATES, ACTIONS)
    mdp = hvin_jax.TabularMDP(*table)
    first = hvin_jax.value_iteration(mdp, num_iterations=1)
    assert first.values is None
    assert first.actions is None
    assert_close(first.value, oracle.best(oracle.tabular_q(*table)(np.zeros(STATES))))
    last = hvin_jax.value_iteration(mdp, num_iterations=1500)
    assert_close(last.value, oracle.optimal_value(*table))


def test_reward_of_next_states_is_its_expectation():
    transition, reward, discount = oracle.random_tabular(np.random.default_rng(5), STATES, ACTIONS)
    full = hvin_jax.TabularMDP(transition, reward, discount)
    expected = hvin_jax.TabularMDP(transition, (transition * reward).sum(-1), discount)
    assert full.reward.shape == (STATES, ACTIONS)
    chex.assert_trees_all_close(full, expected, rtol=1e-10)


@pytest.mark.parametrize("depths", DEPTH_SETS)
@pytest.mark.slow
def test_bounds_of_the_operator_hold_for_random_mdps(depths):
    """BV ≤ GV ≤ max over n ∈ 𝒩 ∪ {1} of BⁿV, hence ‖GV - V*‖ ≤ γ‖V - V*‖: any π, 𝒩, α, α̃."""
    *tables, optimal = stacked_mdps(seed=0)
    rng = np.random.default_rng(1)
    value = optimal + rng.normal(size=optimal.shape) * rng.choice([0.1, 1, 10], (NUM_MDPS, 1))
    policies = oracle.random_policies(rng, NUM_MDPS, POLICIES, STATES, ACTIONS)
    alpha, alpha_tilde = rng.choice(TEMPERATURES, (2, NUM_MDPS))

    @over_mdps
    def operate(mdp, value, policies, alpha, alpha_tilde):
        ahead = hvin_jax.value_iteration(
            mdp, num_iterations=max(depths), v0=value, return_values=True
        ).values
        new = hvin_jax.highway_operator(
            mdp, value, policies, depths, alpha=alpha, alpha_tilde=alpha_tilde
        )
        return new, ahead

    new, ahead = map(np.asarray, operate(*tables, value, policies, alpha, alpha_tilde))
    lowest = ahead[:, 0]
    highest = ahead[:, [n - 1 for n in {*depths, 1}]].max(1)
    assert (new >= lowest - 1e-9).all()
    assert (new <= highest + 1e-9).all()
    discount = tables[2]
    assert (norm(new - optimal) <= discount * norm(value - optimal) + 1e-9).all()
    if depths == (1,):
        assert_close(new, lowest)
    else:  # The bounds would hold for VI alone; this one looks further.
        assert (norm(new - lowest) > 1e-3).mean() > 0.1


@pytest.mark.parametrize("depths", DEPTH_SETS)
@pytest.mark.slow
def test_from_below_highway_vi_is_never_slower_than_vi(depths):
    """VI_k ≤ HVI_k ≤ V* for all k, and contraction, with policies redrawn at every iteration."""
    *tables, optimal = stacked_mdps(seed=2)
    rng = np.random.default_rng(3)
    highway = plain = optimal - rng.uniform(0, 5, optimal.shape)

    @over_mdps
    def step(mdp, highway, plain, policies, alpha, alpha_tilde):
        highway = hvin_jax.highway_operator(
            mdp, highway, policies, depths, alpha=alpha, alpha_tilde=alpha_tilde
        )
        return highway, hvin_jax.bellman_optimality(mdp, plain)

    faster = 0.0
    for _ in range(12):
        policies = oracle.random_policies(rng, NUM_MDPS, POLICIES, STATES, ACTIONS)
        alpha, alpha_tilde = rng.choice(TEMPERATURES, (2, NUM_MDPS))
        before = norm(highway - optimal)
        highway, plain = map(
            np.asarray, step(*tables, highway, plain, policies, alpha, alpha_tilde)
        )
        assert (plain <= highway + 1e-9).all()
        assert (highway <= optimal + 1e-9).all()
        assert (norm(highway - optimal) <= tables[2] * before + 1e-9).all()
        faster = max(faster, (highway - plain).max())
    assert (faster > 0.1) == (depths != (1,))


@pytest.mark.parametrize("filter_gate", [True, False])
@pytest.mark.parametrize(("depths", "without"), [((3,), 0.81), ((1, 3), 0.914)])
def test_the_inner_maximum_is_needed(depths, without, filter_gate):
    """Two states {s, end}, π = stay: without the max, the fixed point is not V* = 1."""
    go, stay = 0, 1
    transition = np.zeros((2, 2, 2))
    transition[0, go, 1] = transition[0, stay, 0] = transition[1, :, 1] = 1
    reward = np.zeros((2, 2))
    reward[0, go] = 1
    mdp = hvin_jax.TabularMDP(transition, reward, 0.9)
    policies = jnp.zeros((1, 2, 2)).at[:, :, stay].set(1.0)
    operate = jax.jit(
        lambda value: hvin_jax.highway_operator(
            mdp, value, policies, depths, alpha=1.0, alpha_tilde=1.0, filter_gate=filter_gate
        )
    )
    value = jnp.zeros(2)
    for _ in range(60):
        value = operate(value)
    expected = 1.0 if filter_gate else without
    np.testing.assert_allclose(value, [expected, 0.0], atol=5e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1.0},
        {"epsilon": 0.4},
        {"epsilon": 0.0},
        {"epsilon": 1.0, "num_policies": 3, "alpha": -2.0, "alpha_tilde": 5.0},
        {"epsilon": 0.7, "num_policies": 2, "alpha": 30.0, "alpha_tilde": -1.0},
    ],
)
@pytest.mark.slow
def test_highway_vi_converges_whatever_it_explores(settings):
    *tables, optimal = stacked_mdps(seed=7, n=30)
    keys = jax.random.split(jax.random.key(0), len(optimal))
    starts = np.resize([-30.0, 0.0, 30.0], (STATES, len(optimal))).T

    @over_mdps
    def plan(mdp, key, v0):
        return hvin_jax.highway_vi(key, mdp, num_blocks=800, block_depth=4, v0=v0, **settings).value

    np.testing.assert_allclose(plan(*tables, keys, starts), optimal, atol=1e-6)


def test_without_the_filter_gate_highway_vi_misses_the_optimum():
    *tables, optimal = stacked_mdps(seed=8, n=20)
    keys = jax.random.split(jax.random.key(0), len(optimal))

    @over_mdps
    def plan(mdp, key):
        return hvin_jax.highway_vi(key, mdp, num_blocks=800, block_depth=4, filter_gate=False).value

    assert (norm(plan(*tables, keys) - optimal) > 0.1).mean() > 0.5


@pytest.mark.parametrize("filter_gate", [True, False])
def test_operator_is_a_block_of_highway_vi(filter_gate):
    """With depths 1..N_b and one policy per chain; here a learnable policy that is constant."""
    rng = np.random.default_rng(9)
    table = oracle.random_tabular(rng, STATES, ACTIONS)
    mdp, value = hvin_jax.TabularMDP(*table), jnp.asarray(rng.normal(size=STATES))
    policies = jnp.asarray(oracle.random_policies(rng, POLICIES, STATES, ACTIONS))
    temperatures = {"alpha": 0.8, "alpha_tilde": -1.5, "filter_gate": filter_gate}
    block = hvin_jax.highway_vi(
        None,
        mdp,
        num_blocks=1,
        block_depth=4,
        num_policies=POLICIES,
        v0=value,
        policy=jax.tree_util.Partial(lambda p, q, *, block, chain, layer: p[chain], policies),
        **temperatures,
    )
    operator = hvin_jax.highway_operator(mdp, value, policies, range(1, 5), **temperatures)
    assert_close(block.value, operator)


def test_distributions_of_narrow_types():
    """What was rounded does not sum to one, and is a distribution all the same."""
    rows = np.random.default_rng(0).dirichlet(np.ones(7), size=(7, 2))
    for dtype in (jnp.bfloat16, jnp.float16):
        mdp = hvin_jax.TabularMDP(jnp.asarray(rows, dtype), jnp.zeros((7, 2)), 0.5)
        assert mdp.transition.dtype == dtype
        with pytest.raises(ValueError, match="must sum to one"):
            hvin_jax.TabularMDP(jnp.asarray(rows * 1.02, dtype), jnp.zeros((7, 2)), 0.5)


def test_infinite_temperatures_of_blocks():
    transition = np.random.default_rng(0).dirichlet(np.ones(6), size=(6, 3))
    mdp = hvin_jax.TabularMDP(transition, np.random.default_rng(1).normal(size=(6, 3)), 0.9)
    plan = partial(hvin_jax.highway_vi, jax.random.key(0), mdp, num_blocks=4, block_depth=4)
    for alpha in (np.inf, -np.inf):
        assert_close(plan(alpha=alpha).value, plan(alpha=np.sign(alpha) * 1e9).value)


def test_forbidden_actions():
    """Minus infinity is a reward where nothing explores; else it is refused."""
    transition = np.eye(2)[[[0, 1], [1, 1]]]
    mdp = hvin_jax.TabularMDP(transition, [[0.0, -np.inf], [2.0, 3.0]], 0.5)
    assert_close(hvin_jax.value_iteration(mdp, num_iterations=60).value, [0, 6])
    plan = partial(hvin_jax.highway_vi, mdp=mdp, num_blocks=20, block_depth=3)
    assert_close(plan(None).value, [0, 6])
    with pytest.raises(ValueError, match="reward must be finite where layers explore"):
        plan(jax.random.key(0))


def test_tables_of_integers_and_of_single_precision():
    transition = np.eye(2, dtype=int)[[[0, 1], [1, 1]]]
    mdp = hvin_jax.TabularMDP(transition, [[0, 1], [2, 3]], 1)
    assert {x.dtype for x in jax.tree.leaves(mdp)} == {jnp.dtype("float32")}
    output = hvin_jax.highway_vi(None, mdp, num_blocks=1, block_depth=2)
    assert output.value.dtype == jnp.float32
    np.testing.assert_array_equal(mdp.q(jnp.array([10.0, 20.0], jnp.float32)), [[10, 21], [22, 23]])
