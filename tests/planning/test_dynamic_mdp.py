"""The latent MDP with kernels of each state's own: against plain loops and plain autodiff."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hvin_jax
from hvin_jax.planning import DynamicConvMDP, FastMDP, places_around

# (B, H, W, O, A, F, window): maps that are not square, orientations, larger windows, one cell.
SHAPES = [
    (2, 4, 5, 1, 4, 3, "all"),
    (1, 3, 4, 2, 3, 3, "all"),
    (2, 5, 4, 1, 2, 5, "all"),
    (1, 1, 1, 2, 1, 3, "all"),
    (1, 4, 3, 4, 3, 3, "steps"),
]
# Those with which all the rest is tried.
CHAINS = [SHAPES[0], SHAPES[-1]]


def random_parts(shape, seed=0):
    """Reward, logits and places."""
    b, h, w, o, a, f, window = shape
    rng = np.random.default_rng(seed)
    places = places_around(f, o, window)
    return rng.normal(size=(b, o, h, w)), 2 * rng.normal(size=(len(places), a, b, o, h, w)), places


def plain_q(reward, kernel, value, places):
    """All Q, place by place."""
    _, o, h, w = reward.shape
    margin = max(max(map(abs, place[:2])) for place in places)
    future = jnp.pad(reward + value, ((0, 0), (0, 0), (margin, margin), (margin, margin)))
    state = np.meshgrid(range(o), range(h), range(w), indexing="ij")
    q = 0
    for weights, (down, right, turn) in zip(kernel, places, strict=True):
        at = (state[0] + turn) % o, state[1] + down + margin, state[2] + right + margin
        q = q + weights * future[None, :, *at]
    return jnp.moveaxis(q, 0, -1)


def plain_value_iteration(reward, logits, places, *, depth):
    """The values after each of `depth` layers."""
    kernel = jax.nn.softmax(logits, axis=0)

    def layer(value, _):
        q = plain_q(reward, kernel, value, places)
        value = jnp.take_along_axis(q, q.argmax(-1)[..., None], -1)[..., 0]
        return value, value

    return jax.lax.scan(layer, jnp.zeros_like(reward), length=depth)[1]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("shape", SHAPES)
def test_members(shape):
    reward, logits, places = random_parts(shape)
    mdp = DynamicConvMDP.from_logits(reward, logits, places)
    assert isinstance(mdp, FastMDP)
    assert (mdp.num_actions, mdp.value_shape) == (shape[4], reward.shape)
    value = np.random.default_rng(1).normal(size=reward.shape)
    q = plain_q(reward, mdp.kernel, value, places)
    best, action = jax.jit(DynamicConvMDP.greedy)(mdp, value)
    chex.assert_trees_all_close(
        (jax.jit(DynamicConvMDP.q)(mdp, value), best), (q, q.max(-1)), rtol=1e-12
    )
    np.testing.assert_array_equal(action, q.argmax(-1))
    weights = np.random.default_rng(2).normal(size=q.shape)
    both = (
        jax.jit(jax.grad(lambda *args, f=f: jnp.sum(weights * f(*args)), (0, 1)))(mdp.kernel, value)
        for f in (
            lambda kernel, value: DynamicConvMDP(reward, kernel, places).q(value),
            lambda kernel, value: plain_q(reward, kernel, value, places),
        )
    )
    chex.assert_trees_all_close(*both, rtol=1e-9, atol=1e-9)
    last = jnp.full(reward.shape, shape[4] - 1)
    chex.assert_trees_all_close(mdp.q_of(value, last), q[..., -1], rtol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("keep_every", [None, 1, 3, 7, 20])
@pytest.mark.parametrize("shape", CHAINS)
def test_value_iteration_and_its_gradient(shape, keep_every):
    """Whatever is kept for the gradient, and whether or not it divides the depth."""
    depth, every = 7, keep_every or 1
    *args, places = random_parts(shape)
    kept = depth // every
    weights = np.random.default_rng(2).normal(size=(kept + 1, *args[0].shape))

    def loss(plan, args):
        values, last = plan(*args)
        return jnp.sum(weights[:-1] * values) + jnp.sum(weights[-1] * last)

    def ours(reward, logits):
        mdp = DynamicConvMDP.from_logits(reward, logits, places)
        output = hvin_jax.value_iteration(
            mdp, num_iterations=depth, keep_every=keep_every, return_values=True
        )
        return output.values, output.value

    def plain(*args):
        values = plain_value_iteration(*args, places, depth=depth)
        return values[every - 1 :: every][:kept], values[-1]

    both = (jax.jit(jax.value_and_grad(partial(loss, plan)))(args) for plan in (ours, plain))
    chex.assert_trees_all_close(*both, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_highway_vi_and_its_gradient():
    """The fast chains agree with those that any MDP has."""
    shape = CHAINS[-1]

    class Plain:
        """The same without `follow`."""

        batched = True

        def __init__(self, mdp):
            self.mdp = mdp

        def __getattr__(self, name):
            if name in ("follow", "follow_vjp"):
                raise AttributeError(name)
            return getattr(self.mdp, name)

    jax.tree_util.register_pytree_node(Plain, lambda x: ((x.mdp,), None), lambda _, x: Plain(*x))
    weights = np.random.default_rng(2).normal(size=random_parts(shape)[0].shape)

    def loss(wrap, args):
        mdp = wrap(DynamicConvMDP.from_logits(*args, places))
        output = hvin_jax.highway_vi(
            jax.random.key(0), mdp, num_blocks=2, block_depth=3, num_policies=2, alpha=1.5
        )
        return jnp.sum(weights * output.value)

    *args, places = random_parts(shape)
    both = (jax.jit(jax.value_and_grad(partial(loss, wrap)))(args) for wrap in (lambda x: x, Plain))
    chex.assert_trees_all_close(*both, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("normalise", ["action", "state"])
def test_kernels_are_a_softmax(normalise):
    reward, logits, places = random_parts(SHAPES[-1])
    axes = 0 if normalise == "action" else (0, 1)

    def ours(logits):
        return DynamicConvMDP.from_logits(reward, logits, places, normalise=normalise).kernel

    def outcome(kernels):
        weights = np.random.default_rng(1).normal(size=logits.shape)
        return jax.value_and_grad(lambda x: jnp.sum(weights * kernels(x)))(100 * logits)

    plain = outcome(partial(jax.nn.softmax, axis=axes))
    chex.assert_trees_all_close(outcome(ours), plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("normalise", ["action", "state"])
def test_values_cannot_run_away(normalise):
    """A backup does not expand; after 5,000 layers values are as large as the rewards add up to."""
    shape = (3, 6, 7, 2, 3, 3, "all")
    reward, logits = (x.astype(np.float32) for x in random_parts(shape)[:2])
    mdp = DynamicConvMDP.from_logits(reward, 5 * logits, normalise=normalise)
    sums = mdp.kernel.sum(0 if normalise == "action" else (0, 1))
    np.testing.assert_allclose(sums, 1, rtol=1e-5)
    a, b = np.random.default_rng(3).normal(size=(2, *reward.shape)).astype(np.float32)
    distance = np.abs(mdp.greedy(a)[0] - mdp.greedy(b)[0]).max()
    assert distance <= np.abs(a - b).max() * (1 + 1e-6)
    deep = hvin_jax.value_iteration(mdp, num_iterations=5000, keep_every=100).value
    assert np.isfinite(deep).all()
    assert np.abs(deep).max() <= 5000 * np.abs(reward).max()


def test_bad_input():
    reward, logits, places = random_parts(SHAPES[0])
    make = DynamicConvMDP.from_logits
    with pytest.raises(ValueError, match=r"kernel must have shape \[P, A, B, O, H, W\] = "):
        make(reward[:, :, 1:], logits)
    with pytest.raises(ValueError, match=r"logits must have shape \[P, A, B, O, H, W\], got"):
        make(reward, logits[0])
    with pytest.raises(ValueError, match="normalise must be one of action, state, got 'window'"):
        make(reward, logits, normalise="window")
    with pytest.raises(TypeError, match="reward and kernel must have one type, got float16 and"):
        make(reward.astype(np.float16), logits)
    with pytest.raises(ValueError, match="kernel has 4 places, expected F·F·O, F odd, with O = 1"):
        make(reward, logits[:4])
    with pytest.raises(ValueError, match=r"kernel must have shape .* = \(8, 4, 2, 1, 4, 5\)"):
        make(reward, logits, places[:8])
    with pytest.raises(ValueError, match="places must be triples of integers, got"):
        make(reward, logits, range(9))
    with pytest.raises(ValueError, match="places may be 64 cells away at most, got one of 65"):
        make(reward, logits[:1], [(0, 65, 0)])
    with pytest.raises(ValueError, match="window must be one of all, steps, got 'cross'"):
        places_around(3, 4, "cross")
    mdp = make(reward, logits)
    with pytest.raises(ValueError, match="return_actions needs all iterations"):
        hvin_jax.value_iteration(mdp, num_iterations=3, keep_every=2, return_actions=True)
    with pytest.raises(ValueError, match="keep_every must be at least 1, got 0"):
        hvin_jax.value_iteration(mdp, num_iterations=3, keep_every=0)
