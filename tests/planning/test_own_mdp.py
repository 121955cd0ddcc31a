"""An MDP of one's own."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_mdps import KEY, plan, same, small_conv

import hvin_jax
from hvin_jax import planning


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
        every = jnp.arange(self.num_actions, dtype=self.first.dtype)
        return jax.vmap(lambda a: self.q_of(value, a), out_axes=-1)(every)

    def greedy(self, value):
        q = self.q(value)
        return q.max(-1), q.argmax(-1).astype(self.first.dtype)


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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SlowConvMDP:
    """A batched MDP that has what is required and nothing else."""

    conv: hvin_jax.ConvMDP

    batched = True
    num_actions = property(lambda self: self.conv.num_actions)
    value_shape = property(lambda self: self.conv.value_shape)

    def q(self, value):
        return self.conv.q(value)

    def q_of(self, value, action):
        return self.conv.q_of(value, action)

    def greedy(self, value):
        return self.conv.greedy(value)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.slow
def test_optional_members_change_nothing_but_the_speed(share):
    conv = small_conv()

    @jax.jit
    @partial(jax.grad, has_aux=True)
    def gradients(mdp):
        output = plan(KEY(0), mdp, share_exploration=share)
        return output.value.sum(), output

    grads, output = gradients(conv)
    slow_grads, slow_output = gradients(SlowConvMDP(conv))
    same(grads, slow_grads.conv)
    same(output, slow_output)
    np.testing.assert_array_equal(output.actions, slow_output.actions)


def test_all_mdps_satisfy_the_protocol():
    conv, graph = small_conv(), random_graph(0)
    tabular = hvin_jax.TabularMDP(np.eye(2)[:, None], np.zeros((2, 1)), 0.5)
    for mdp in (conv, tabular, graph):
        assert isinstance(mdp, planning.MDP)
        assert isinstance(mdp, planning.FastMDP) == (mdp is conv)
        assert isinstance(mdp, planning.SharingMDP) == (mdp is conv)
    assert isinstance(conv.sharing_actions(), planning.SharedMDP)
    assert not isinstance(np.zeros(3), planning.MDP)


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 1.0, "num_policies": 2}, {"epsilon": 0.5}],
    ids=str,
)
@pytest.mark.slow
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
