"""Where CPUs and GPUs want different code: the same numbers, computed in another shape.

A CPU is slow at what does not fit into its caches and at loops that its compiler does not turn into
vector instructions. A GPU is slow at what is many: every kernel takes microseconds to start,
however little it does, and a loop starts all kernels of its body in each trip, and one that counts.

* `scan` and `repeat`: layers one after another. A GPU gets several layers of a loop as one piece,
  whose kernels are merged across layers and started together as one command buffer.
* `in_tiles` and `add_in_parts`: on a CPU what is large is made, used and forgotten part by part,
  within the cache. On a GPU one kernel does it all, and what is large is often never stored.
* `apart`: the CPU's compiler would merge two loops and compute the first again for every number of
  the second, above all in chains of one layer, whose loop it unrolls. On a GPU merged is better.
* `copies`: a CPU copies lines of a map. On a GPU a lookup can be part of the kernel that uses the
  copy, which then is never stored.
* `over_first`: the CPU's compiler does not vectorise a reduction of the first of several axes, but
  a loop over it. A GPU wants one kernel.
* `max_and_argmax`: two plain reductions are vectorised by the CPU's compiler; `lax.argmax` is not.
  On a GPU it is part of one kernel; of the other form the numbers of all actions become an array
  as large as Q.

GPUs add to one number from many threads at once, in whatever order, so that the last bits of
gradients differ from run to run. With `HVIN_JAX_DETERMINISTIC=1` in the environment `add_in_order`
takes a form without atomic additions there, which is the same in every run.

Which of the two is compiled is decided when a program is lowered for its platform, so the same
traced function serves both. Whatever is neither is treated as a GPU.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

C = TypeVar("C")
T = TypeVar("T")
# On a GPU, at most so many layers of a loop are one piece: compile time grows with them.
_UNROLL = 10
DETERMINISTIC = os.environ.get("HVIN_JAX_DETERMINISTIC", "0") not in ("", "0")
# Tests set it to "cpu" or "gpu", to compile that form wherever they run.
_forced: str | None = None


def scan(
    layer: Callable[[C, Any], tuple[C, Any]],
    carry: C,
    xs: Any,
    length: int | None = None,
    *,
    reverse: bool = False,
    whole: bool = False,
    prepare: Callable[[Any], Any] = lambda xs: xs,
    finish: Callable[[Any], Any] = lambda ys: ys,
) -> tuple[C, Any]:
    """`lax.scan`, unrolled on GPUs; must not be differentiated.

    Args:
      layer: makes the next carry of this one and an entry of `prepare(xs)`, and something to stack.
      carry: the first.
      xs: arrays whose first axis counts layers, or None.
      length: the number of layers; that of `xs` by default.
      reverse: whether to begin with the last layer.
      whole: whether on GPUs all layers are one piece, so that what is stacked is never copied.
      prepare: changes each entry by itself: on CPUs all at once, where a layer would repeat it for
        every number that it looks up; on GPUs within the layer, so that none of it is stored.
      finish: changes each entry of what is stacked by itself, likewise.
    """

    def rolled(carry: C, xs: Any) -> tuple[C, Any]:
        carry, ys = lax.scan(layer, carry, prepare(xs), length, reverse)
        return carry, finish(ys)

    def unrolled(carry: C, xs: Any) -> tuple[C, Any]:
        def whole_layer(carry: C, x: Any) -> tuple[C, Any]:
            carry, y = layer(carry, prepare(x))
            return carry, finish(y)

        return lax.scan(whole_layer, carry, xs, length, reverse, unroll=whole or _UNROLL)

    return either(carry, xs, cpu=rolled, gpu=unrolled)


def repeat(count: int, layer: Callable[[jax.Array, C], C], carry: C) -> C:
    """`lax.fori_loop` from 0 on, unrolled on GPUs; must not be differentiated."""

    def rolled(carry: C) -> C:
        return lax.fori_loop(0, count, layer, carry)

    def unrolled(carry: C) -> C:
        return lax.fori_loop(0, count, layer, carry, unroll=max(1, min(count, _UNROLL)))

    return either(carry, cpu=rolled, gpu=unrolled)


def apart(x: T) -> T:
    """`x`, which on CPUs is made before anything that uses it."""
    return either(x, cpu=lax.optimization_barrier, gpu=lambda x: x)


def in_tiles(function: Callable[..., Any], tile: int, *xs: jax.Array) -> Any:
    """`function(*xs)` of arrays `[B, ...]`: on CPUs for `tile` examples at a time.

    Args:
      function: makes arrays `[B, ...]` of such arrays.
      tile: a divisor of B.
      *xs: the arrays.
    """
    batch = xs[0].shape[0]

    def tiled(*xs: jax.Array) -> Any:
        if tile == batch:
            return function(*xs)
        split = [x.reshape(batch // tile, tile, *x.shape[1:]) for x in xs]
        made = lax.map(lambda x: function(*x), split)
        return jax.tree.map(lambda x: x.reshape(batch, *x.shape[2:]), made)

    return either(*xs, cpu=tiled, gpu=function)


def copies(
    maps: jax.Array,
    copy: Callable[[jax.Array], jax.Array],
    places: Callable[[tuple[int, ...]], np.ndarray],
) -> jax.Array:
    """`copy(maps)`, which rearranges and repeats the numbers of each example, and adds zeros.

    Args:
      maps: `[B, ...]`.
      copy: makes `[B, ...]` of it.
      places: tells for the shape of an example which of its numbers goes where: integers of the
        shape of a copied example; the number behind the last one stands for zero.
    """

    def look_up(maps: jax.Array) -> jax.Array:
        index = places(maps.shape[1:])
        flat = jnp.pad(maps.reshape(maps.shape[0], -1), ((0, 0), (0, 1)))
        found = flat.at[:, jnp.asarray(index.reshape(-1), jnp.int32)]
        copied = found.get(mode="promise_in_bounds", wrap_negative_indices=False)
        return copied.reshape(maps.shape[0], *index.shape)

    return either(maps, cpu=copy, gpu=look_up)


def add_in_parts(
    add: Callable[..., jax.Array],
    part: int,
    total: jax.Array,
    *xs: jax.Array,
) -> jax.Array:
    """`add(total, *xs)` of arrays `[N, ...]`: on CPUs for `part` rows at a time.

    Args:
      add: returns the total with the share of some rows added.
      part: a divisor of N.
      total: what is added to.
      *xs: the arrays.
    """

    def parts(total: jax.Array, *xs: jax.Array) -> jax.Array:
        split = [x.reshape(-1, part, *x.shape[1:]) for x in xs]
        return lax.scan(lambda total, x: (add(total, *x), None), total, split)[0]

    return either(total, *xs, cpu=parts, gpu=add)


def add_in_order(
    scatter: Callable[..., jax.Array], plain: Callable[..., jax.Array], *args: jax.Array
) -> jax.Array:
    """`scatter(*args)`, or `plain(*args)` where sums of a scatter have no order but need one."""
    if not DETERMINISTIC:
        return scatter(*args)
    if _forced is not None:
        return either(*args, cpu=scatter, gpu=plain)
    return lax.platform_dependent(*args, cuda=plain, rocm=plain, default=scatter)


def interpreted() -> bool:
    """Whether kernels for GPUs have to run elsewhere."""
    return _forced == "gpu"


def one_of(index: jax.Array, count: int) -> jax.Array:
    """Booleans `[..., count]`, true at the index of each."""
    numbers = lax.broadcasted_iota(index.dtype, (*index.shape, count), index.ndim)
    return index[..., None] == numbers


def over_first(function: Any, x: jax.Array) -> jax.Array:
    """The first axis reduced by `jnp.add` or `jnp.maximum`; must not be differentiated."""

    def loop(x: jax.Array) -> jax.Array:
        return lax.scan(lambda total, x: (function(total, x), None), x[0], x[1:])[0]

    return either(x, cpu=loop, gpu=function.reduce)


def max_and_argmax(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The maximum over the last axis and the first index that attains it, int32."""

    def two_reductions(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        best = q.max(-1)
        actions = lax.broadcasted_iota(jnp.float32, q.shape, q.ndim - 1)
        first = jnp.where(q == best[..., None], actions, float(q.shape[-1] - 1)).min(-1)
        return best, first.astype(jnp.int32)

    def one_reduction(q: jax.Array) -> tuple[jax.Array, jax.Array]:
        return q.max(-1), lax.argmax(q, q.ndim - 1, jnp.int32)

    return either(q, cpu=two_reductions, gpu=one_reduction)


def either(*args: Any, cpu: Callable[..., Any], gpu: Callable[..., Any]) -> Any:
    """`cpu(*args)` on CPUs, `gpu(*args)` elsewhere: the same numbers."""
    if _forced is not None:
        return {"cpu": cpu, "gpu": gpu}[_forced](*args)
    return lax.platform_dependent(*args, cpu=cpu, default=gpu)
