"""Embedded policies: which latent action a VE module takes.

The default is ε-greedy (eq. 8 of the paper): with probability ε an action sampled uniformly, else
the one of largest Q. ε = 1 is uniform, ε = 0 greedy. A learnable policy is any function of Q that
returns probabilities; see `Policy`.
"""

from typing import Protocol

import jax
import jax.numpy as jnp

from hvin_jax.planning._chain import Exploration
from hvin_jax.planning.mdp import MDP


class Policy(Protocol):
    """A learnable embedded policy.

    Wrap parameters with `jax.tree_util.Partial`, so that gradients reach them and new ones do not
    compile again: `Partial(function, params)` is called as `function(params, q, block=...)`.
    """

    def __call__(
        self, q: jax.Array, /, *, block: jax.Array, chain: jax.Array, layer: jax.Array
    ) -> jax.Array:
        """π(a | s), of the shape and type of `q`; a distribution over the last axis.

        Args:
          q: `[*value_shape, A]`, all Q of the chain's value.
          block: the index of the highway block, a traced integer as the other two.
          chain: the index of the chain in the block, below `num_policies`.
          layer: the index of the VE module in the chain, below `block_depth - 1`.
        """


def explore(
    key: jax.Array,
    mdp: MDP,
    *,
    length: int,
    epsilon: float | jax.Array,
    example_index: jax.Array | None,
) -> Exploration | None:
    """Draws what a chain of VE modules needs to act ε-greedily.

    Args:
      key: a typed PRNG key; it is consumed.
      mdp: the MDP to act in.
      length: the number of layers `L`.
      epsilon: the exploration rate ε. As a Python float, 0 and 1 take shortcuts.
      example_index: `[B]`, the global index of each example: the noise of an example depends on
        it, not on its place in the batch. None draws one noise for the whole value, which a
        batched MDP shares over the batch.

    Returns:
      The exploration, or None if it is greedy.
    """
    if isinstance(epsilon, float) and epsilon == 0:
        return None
    shape = mdp.value_shape[1:] if mdp.batched else mdp.value_shape

    def draw(key: jax.Array) -> Exploration:
        action_key, choice_key = jax.random.split(key)
        actions = _uniform_actions(action_key, mdp.num_actions, length, shape)
        if isinstance(epsilon, float) and epsilon == 1:
            return Exploration(actions, None)
        uniform = jax.random.uniform(choice_key, (length, *shape), jnp.float32)
        return Exploration(actions, uniform < jnp.asarray(epsilon, jnp.float32))

    if not mdp.batched:
        return draw(key)
    if example_index is None:
        shared = (length, *mdp.value_shape)
        return jax.tree.map(lambda x: jnp.broadcast_to(x[:, None], shared), draw(key))
    keys = jax.vmap(lambda index: jax.random.fold_in(key, index))(example_index)
    return jax.vmap(draw, out_axes=1)(keys)


def _uniform_actions(
    key: jax.Array, num_actions: int, length: int, shape: tuple[int, ...]
) -> jax.Array:
    """`[length, *shape]` integers, uniform in `[0, num_actions)`.

    Random words are dear, so several layers share one: its digits in base A. As many digits are
    used as keep A^k below 2^22; up to that A, no action is favoured by more than a thousandth.
    """
    digits = 1
    while digits < length and num_actions ** (digits + 1) <= 2**22:
        digits += 1
    words = jax.random.bits(key, (-(-length // digits), *shape), jnp.uint32)
    layers = []
    for _ in range(digits):
        layers.append(words % jnp.uint32(num_actions))
        words = words // jnp.uint32(num_actions)
    return jnp.concatenate(layers)[:length].astype(jnp.int32)
