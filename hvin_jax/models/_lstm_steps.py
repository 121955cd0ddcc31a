"""The recurrent steps of a GPPN: LSTMs at all cells, step after step, and the way back.

Letters: `B` examples, `H` × `W` cells, `F` side of the gathering kernel, `U` units. The steps are
`segments`: of each only the state that it starts from is kept. The backward pass makes a segment's
states again, then goes back through it, making the gates of a step again when it gets there: about
2√steps states are kept at a time. On CPUs JAX goes back. Loops that it differentiates can't be
unrolled for GPUs, where every step would start twice as many kernels: there the rule is written by
hand.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hvin_jax.planning._conv_backup import divisor
from hvin_jax.planning._platforms import either, repeat, scan
from hvin_jax.planning._products import matmul
from hvin_jax.planning._windows import unwindows, windows_in_loops

Shape = tuple[int, ...]
State = tuple[jax.Array, jax.Array]
Params = dict[str, jax.Array]
# Sums over cells have so many parts, at most, that GPUs make side by side.
_PARTS = 8


def in_two_products(params: Params) -> Params:
    """The parameters as a step multiplies with them; made once, not in every step.

    Args:
      params: `gather_kernel` `[U, F·F]` (the weight of the neighbour at each place of the window),
        `gather_bias` `[]`, `input_kernel` `[4U]`, `recurrent_kernel` `[U, 4U]`, two biases `[4U]`.

    Returns:
      `give` `[U, F·F]`, `gather_bias` `[]`, `gates` `[U + 2, 4U]`.
    """
    # A convolution to one channel: project first, then sum over the window. `unwindows` collects
    # what each neighbour gives, so the kernel is read backwards.
    give = params["gather_kernel"][:, ::-1]
    # All that enters the gates, so that its gradient is one product.
    bias = params["input_bias"] + params["recurrent_bias"]
    gates = jnp.concatenate([params["recurrent_kernel"], params["input_kernel"][None], bias[None]])
    return {"give": give, "gather_bias": params["gather_bias"], "gates": gates}


def lstm_steps(times: int, params: Params, state: State, inside: jax.Array | None) -> State:
    """So many steps of all cells' LSTMs; gates come in the order input, forget, cell, output.

    Args:
      times: the number of steps.
      params: see `in_two_products`.
      state: hidden and cell state, `[B, H, W, U]` each.
      inside: `[B, H, W]`, booleans: where hidden states are kept, zero elsewhere; None: everywhere.

    Returns:
      The last state.
    """
    shape = state[0].shape
    # As matrices, made before the first step: XLA for GPUs lays maps out as convolutions like them,
    # and would transpose them within products, where it fails at it (jax 0.10.1).
    flat = (state[0].reshape(-1, shape[-1]), state[1].reshape(-1, shape[-1]))
    flat = lax.optimization_barrier(flat)
    inside = None if inside is None else inside.reshape(-1, 1)
    hidden, cell = _steps(times, shape[:-1], params, flat, inside)
    return hidden.reshape(shape), cell.reshape(shape)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _steps(
    times: int, shape: Shape, params: Params, state: State, inside: jax.Array | None
) -> State:
    """`lstm_steps` of `N = B·H·W` cells; `shape` is `(B, H, W)`."""
    return repeat(times, lambda _, state: _step(shape, params, inside, state)[0], state)


def _step(
    shape: Shape, params: Params, inside: jax.Array | None, state: State
) -> tuple[State, jax.Array]:
    """The next state, and what entered the gates, `[N, U + 2]`."""
    hidden, cell = state
    given = matmul(hidden, params["give"]).reshape(*shape, -1)
    gathered = unwindows(given, math.isqrt(given.shape[-1])).reshape(-1, 1) + params["gather_bias"]
    inputs = jnp.concatenate([hidden, gathered, jnp.ones_like(gathered)], axis=-1)
    return _act(inside, matmul(inputs, params["gates"]), cell), inputs


def _act(inside: jax.Array | None, gates: jax.Array, cell: jax.Array) -> State:
    """The next state by the gates `[N, 4U]`, number by number."""
    enter, forget, new, leave = jnp.split(gates, 4, axis=-1)
    cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
    hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
    return hidden if inside is None else jnp.where(inside, hidden, 0), cell


def _segments(times: int) -> tuple[int, int, int]:
    """How many segments, their length, and the steps that are left over and come first."""
    root = max(1, math.isqrt(times))
    even = divisor(times, root) if times else 1
    # Without a rest there is less to compile, and on GPUs a sixth less memory.
    length = even if 2 * even >= root else root
    return times // length, length, times % length


def _steps_fwd(
    times: int, shape: Shape, params: Params, state: State, inside: jax.Array | None
) -> tuple[State, Any]:
    count, length, rest = _segments(times)

    def segment(start: State, _: None) -> tuple[State, State]:
        return _steps(length, shape, params, start, inside), start

    first = state
    state, starts = lax.scan(
        segment, _steps(rest, shape, params, first, inside), None, length=count
    )
    return state, (params, first, starts, inside)


def _steps_bwd(times: int, shape: Shape, residuals: Any, cotangent: State) -> tuple[Any, ...]:
    params, first, starts, inside = residuals
    _, length, rest = _segments(times)

    def segment(length: int, carry: tuple[State, Params], start: State) -> tuple[Any, None]:
        args = (params, inside, start, *carry)
        cpu, gpu = (partial(f, length, shape) for f in (_by_autodiff, _by_hand))
        return either(*args, cpu=cpu, gpu=gpu), None

    carry = (cotangent, jax.tree.map(jnp.zeros_like, params))
    carry, _ = lax.scan(partial(segment, length), carry, starts, reverse=True)
    if rest:
        carry, _ = segment(rest, carry, first)
    return carry[1], carry[0], None


_steps.defvjp(_steps_fwd, _steps_bwd)


def _by_autodiff(
    length: int,
    shape: Shape,
    params: Params,
    inside: jax.Array | None,
    start: State,
    cotangent: State,
    grads: Params,
) -> tuple[State, Params]:
    """The cotangent of the state that a segment starts from, and gradients with its share added."""

    @partial(jax.checkpoint, prevent_cse=False)
    def step(params: Params, state: State) -> State:
        return _step(shape, params, inside, state)[0]

    def segment(params: Params, state: State) -> State:
        return lax.scan(lambda x, _: (step(params, x), None), state, None, length=length)[0]

    own, cotangent = jax.vjp(segment, params, start)[1](cotangent)
    return cotangent, jax.tree.map(jnp.add, grads, own)


def _by_hand(
    length: int,
    shape: Shape,
    params: Params,
    inside: jax.Array | None,
    start: State,
    cotangent: State,
    grads: Params,
) -> tuple[State, Params]:
    """`_by_autodiff`, in few kernels: what hidden states are multiplied with is one matrix."""
    parts = divisor(shape[0], _PARTS)
    units, width = params["gates"].shape[0] - 2, params["gates"].shape[1]
    size, weight = math.isqrt(params["give"].shape[1]), params["gates"][-2]
    merged = jnp.concatenate([params["gates"][:units], params["give"]], axis=1)

    def again(state: State, _: None) -> tuple[State, State]:
        after, inputs = _step(shape, params, inside, state)
        return after, (inputs, state[1])

    def step(carry: tuple[State, jax.Array], x: State) -> tuple[Any, None]:
        # Step by step: the compiler would make the gates of all steps at once.
        (cotangent, total), (inputs, cell) = lax.optimization_barrier((carry, x))
        _, pull_back = jax.vjp(partial(_act, inside), matmul(inputs, params["gates"]), cell)
        of_gates, of_cell = pull_back(cotangent)
        of_gathered = matmul(of_gates, weight).reshape(*shape, 1)
        # `windows` is the transpose of `unwindows`.
        of_given = windows_in_loops(of_gathered, size).reshape(-1, size**2)
        of_products = jnp.concatenate([of_gates, of_given], axis=-1)
        # In parts: the compiler would split the sum by itself, of copies with some rows more.
        split = [y.reshape(parts, -1, y.shape[-1]) for y in (inputs, of_products)]
        total += matmul(jnp.swapaxes(split[0], 1, 2), split[1])
        return ((matmul(of_products, merged.T), of_cell), total), None

    total = jnp.zeros((parts, units + 2, width + size**2), merged.dtype)
    states = scan(again, start, None, length, whole=True)[1]
    (cotangent, total), _ = scan(step, (cotangent, total), states, reverse=True, whole=True)
    total = total.sum(0)
    own = {
        "give": total[:units, width:],
        # What was gathered enters by one row of the gates; their last one is the sum over cells.
        "gather_bias": matmul(total[-1, :width], weight),
        "gates": total[:, :width],
    }
    return cotangent, jax.tree.map(jnp.add, grads, own)
