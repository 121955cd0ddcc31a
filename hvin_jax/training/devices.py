"""The one place that knows how many devices there are: steps split over them by `jax.pmap`.

State and parameters go in and come out unstacked (`in_axes=None`); batches carry a leading axis of
the devices of this process. The same code runs on one CPU, on many GPUs and on many machines.
"""

import ctypes
import functools
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from hvin_jax.training.step import EvalStep, TrainStep

# The axis over which batches are split; `make_train_step` needs its name.
BATCH_AXIS = "batch"
Devices = Sequence[jax.Device] | None
# Seen in the PTX (docs/gpus.md); the cuda12 extra leaves them out.
SLOW_RELEASES = ("0.10.2", "0.11.0")
# Into how many devices to divide a CPU core: with several, one computes while others wait in a
# serial loop or in the all-reduce, and the smaller parts of a batch stay in the caches.
PER_CORE = 4


def split_train_step(step: TrainStep, devices: Devices = None) -> TrainStep:
    """Splits a step made with `axis_name=BATCH_AXIS` over devices (all); the state is donated."""
    _warn_of_slow_gradients()
    return jax.pmap(
        step,
        axis_name=BATCH_AXIS,
        in_axes=(None, 0),
        out_axes=None,
        donate_argnums=0,
        devices=devices,
    )


@functools.cache
def _warn_of_slow_gradients() -> None:
    """Once, on a GPU: some releases compile every atomic addition to a compare-and-swap loop."""
    if jax.default_backend() == "gpu" and jax.__version__ in SLOW_RELEASES:
        warnings.warn(
            f"jax {jax.__version__} makes gradients slow on GPUs: install another than "
            f"{' and '.join(SLOW_RELEASES)}.",
            stacklevel=3,
        )


def split_eval_step(step: EvalStep, devices: Devices = None) -> EvalStep:
    """Splits an evaluation step over devices (all): decisions `[D, B / D, ...]`.

    With several processes, each gets the decisions of all.
    """
    if jax.process_count() == 1:
        return jax.pmap(step, axis_name=BATCH_AXIS, in_axes=(None, 0), devices=devices)

    def gathered(params: Any, batch: Any) -> Any:
        return jax.lax.all_gather(step(params, batch), BATCH_AXIS)

    return jax.pmap(
        gathered, axis_name=BATCH_AXIS, in_axes=(None, 0), out_axes=None, devices=devices
    )


def split_mean(
    function: Callable[[Any, jax.Array, Any], Any], devices: Devices = None
) -> Callable[[Any, jax.Array, Any], Any]:
    """The mean over devices of `function(params, key, batch)`, its batch split; for measuring."""
    return jax.pmap(
        lambda *args: jax.lax.pmean(function(*args), BATCH_AXIS),
        axis_name=BATCH_AXIS,
        in_axes=(None, None, 0),
        out_axes=None,
        devices=devices,
    )


def all_reduce(devices: Devices = None) -> Callable[[jax.Array], jax.Array]:
    """An all-reduce: the sum of what lies on each device, `[D, ...]` to the same; for measuring."""
    return jax.pmap(lambda x: jax.lax.psum(x, BATCH_AXIS), axis_name=BATCH_AXIS, devices=devices)


def split_gather() -> Any:
    """`(arrays, indices [D, b]) -> rows [D, b, ...]` of arrays that live on every device."""
    return jax.pmap(
        lambda arrays, index: jax.tree.map(lambda x: x[index], arrays), in_axes=(None, 0)
    )


def replicate(tree: Any) -> Any:
    """Puts arrays on all devices the way a pmapped step returns them.

    A step that is fed its own output's placement from the start is compiled once, not twice.
    """
    place = jax.pmap(lambda tree, _: tree, axis_name=BATCH_AXIS, in_axes=(None, 0), out_axes=None)
    return place(tree, np.zeros(jax.local_device_count()))


def place_globally(tree: Any) -> Any:
    """Arrays that are the same in all processes, as arrays over the devices of all of them."""
    here = _everywhere(jax.local_devices())
    return _reassembled(jax.device_put(tree, here), _everywhere(jax.devices()))


def place_locally(tree: Any) -> Any:
    """The inverse of `place_globally`: what `replicate` would have made."""
    return _reassembled(tree, _everywhere(jax.local_devices()))


def _everywhere(devices: Sequence[jax.Device]) -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices), BATCH_AXIS), PartitionSpec())


def _reassembled(tree: Any, sharding: NamedSharding) -> Any:
    return jax.tree.map(
        lambda x: jax.make_array_from_single_device_arrays(
            x.shape, sharding, [shard.data for shard in x.addressable_shards]
        ),
        tree,
    )


def steps_in_flight() -> int:
    """How many steps may be under way while the next one is handed to the devices.

    Accelerators queue what they are given, so they never wait for the host. CPU devices share
    threads: with several steps under way, those that wait in one step's all-reduce can starve
    another step of the thread it needs, and the process is ended by a time-out. So on CPU a step
    is finished before the next one begins, which costs about a millisecond.
    """
    return 0 if jax.default_backend() == "cpu" else 3


def usable_cores() -> int:
    """How many CPU cores this process may use: those it is pinned to, or all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def even_number(batch_size: int, cores: int) -> int:
    """Into how many devices to divide CPU cores so that they share a batch evenly."""
    return max(n for n in range(1, PER_CORE * cores + 1) if batch_size % n == 0)


def use_cpu_devices(count: int = 0, batch_size: int = 0) -> None:
    """Divides the CPU into devices, where there is no accelerator; before JAX touches a device.

    Splitting a batch over devices is faster than sharing the loops of one batch among cores. And
    from here on the process keeps the memory that it frees, see `_keep_freed_memory`.

    Args:
      count: how many devices; 0: several a core, as far as they share a batch evenly.
      batch_size: of this process; 0: one that all devices share evenly, however many they are.
    """
    jax.config.update("jax_num_cpu_devices", count or even_number(batch_size, usable_cores()))
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Leaves freed memory with the process, where its C library is told how (glibc).

    A step takes hundreds of MB and gives them back. Large pieces would go back to the system, which
    clears every page before it hands it out again: a tenth of the time of large steps.
    """
    trim_threshold, top_pad, mmap_max = -1, -2, -4  # the names of malloc.h
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is not None:
        for option, value in ((mmap_max, 0), (trim_threshold, 2**31 - 1), (top_pad, 2**26)):
            set_option(option, value)


def describe(batch_size: int) -> str:
    """How a batch is split, in words."""
    processes, count = jax.process_count(), jax.device_count()
    several = f"{processes} processes, " if processes > 1 else ""
    devices = f"{jax.default_backend()} device{'s' if count > 1 else ''}"
    return f"{several}{count} {devices}: batches of {batch_size}, {batch_size // count} a device"


def check_batch_size(batch_size: int) -> None:
    """Raises if the devices can't share a batch evenly."""
    devices = jax.device_count()
    if batch_size < 1 or batch_size % devices:
        raise ValueError(
            f"a batch of {batch_size} can't be shared evenly by {devices} devices: make it a "
            f"multiple of {devices}"
        )


def split(batch: Mapping[str, np.ndarray], num_devices: int = 0) -> dict[str, np.ndarray]:
    """`[B, ...]` to `[D, B / D, ...]`, by default for all devices, and what this process's get."""
    devices = num_devices or jax.device_count()
    mine = slice(None) if num_devices else own_devices()
    return {name: x.reshape(devices, -1, *x.shape[1:])[mine] for name, x in batch.items()}


def own_devices() -> slice:
    """Which of all devices, in the order of a batch, are this process's."""
    count = jax.local_device_count()
    return slice(jax.process_index() * count, (jax.process_index() + 1) * count)
