"""Several processes, on one machine or on many, that train one model together.

Each process has devices of its own, and a step runs on all of them (`hvin_jax.training.devices`).
All processes hold the same state and take the same decisions; the first one alone speaks and writes
files, except for checkpoints, which all write together into a folder that all of them see.
"""

import contextlib
import ctypes
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jaxlib import _jax

# A process that has not been heard of for so long is dead, and ends the others.
HEARTBEAT_SECONDS = 10
# How long to wait for the others at the beginning, and at the end.
START_SECONDS, SHUTDOWN_SECONDS = 120, 15
# How long the others wait while the first one makes data or draws pictures. It is not a way to
# find out that it is dead, which heartbeats do.
PATIENCE_SECONDS = 24 * 3600

T = TypeVar("T")
Said = TypeVar("Said", bool, float)
# What C++ may call until the process ends.
_on_terminate: Any = None


class DisagreementError(ValueError):
    """The processes of a run were not started on the same thing."""


def join(
    coordinator: str, num_processes: int, process_id: int, when_lost: Callable[[], object]
) -> None:
    """Joins the processes of a run; before JAX touches a device.

    Args:
      coordinator: HOST:PORT at which the first process listens, on that address only.
      num_processes: how many there are.
      process_id: which one this is, from 0.
      when_lost: ends this process; called in some thread when another one has died.
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"the coordinator is {coordinator!r}, expected HOST:PORT")
    if num_processes < 1 or not 0 <= process_id < num_processes:
        raise ValueError(
            f"process {process_id} of {num_processes}: processes are counted from 0 to "
            f"{num_processes - 1}"
        )
    # Else JAX keeps SIGTERM to itself, and a run that is asked to stop would not save.
    jax.config.update("jax_enable_preemption_service", False)
    with _instead_of_abort(when_lost):
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=START_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=SHUTDOWN_SECONDS,
            # Else it would listen on all interfaces of the machine.
            coordinator_bind_address=coordinator if process_id == 0 else None,
        )


@contextlib.contextmanager
def _instead_of_abort(end: Callable[[], object]) -> Iterator[None]:
    """JAX's client that is made inside calls a function where it would abort the process."""
    make = _jax.get_distributed_runtime_client
    _jax.get_distributed_runtime_client = functools.partial(
        make, missed_heartbeat_callback=lambda _: end()
    )
    # Up to now jaxlib fails to hand its reason to Python, and C++ calls this instead of the above.
    global _on_terminate
    _on_terminate = ctypes.CFUNCTYPE(None)(end)
    with contextlib.suppress(OSError, AttributeError):  # not this library: aborted as before
        ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(_on_terminate)
    try:
        yield
    finally:
        _jax.get_distributed_runtime_client = make


def is_first() -> bool:
    """Whether this is the process that speaks and writes."""
    return jax.process_index() == 0


def first_before_others(make: Callable[[], T], name: str) -> T:
    """Calls a function in the first process and, when that has returned, in all others.

    Args:
      make: makes files, say, unless they are there.
      name: of this occasion, which comes once in a run.

    Returns:
      What it returned in this process.
    """
    if is_first():
        made = make()
        wait_for_all(name)
        return made
    wait_for_all(name)
    return make()


def are_several() -> bool:
    """Whether this process has joined others."""
    return jax.distributed.is_initialized()


def leave_together() -> None:
    """Takes leave of the others, who do the same."""
    if are_several():
        jax.distributed.shutdown()


def wait_for_all(name: str) -> None:
    """Waits until all processes have called this with a name, which is used once in a run."""
    ocp.multihost.sync_global_processes(name, timeout=PATIENCE_SECONDS)


def as_the_first(said: Said) -> Said:
    """What the first process says, in all of them."""
    if jax.process_count() == 1:
        return said
    return type(said)(multihost_utils.broadcast_one_to_all(np.asarray(said)))


def all_say(flag: bool) -> bool:
    """Whether all processes say yes, in all of them."""
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.asarray(flag)).all())


def check_agreement(**things: Any) -> None:
    """Checks that all processes have the same.

    Args:
      **things: configurations and trees of arrays, by what they are called in the error.

    Raises:
      DisagreementError: one of them differs.
    """
    if jax.process_count() == 1:
        return
    digests = np.stack([_digest(thing) for thing in things.values()])
    everyones = multihost_utils.process_allgather(digests)
    for place, name in enumerate(things):
        different = (everyones[:, place] != everyones[0, place]).any(axis=-1)
        if different.any():
            raise DisagreementError(
                f"processes 0 and {different.argmax()} do not have the same {name}; start all of "
                "them with the same command (but for --process_id), code and packages"
            )


def _digest(thing: Any) -> np.ndarray:
    digest = hashlib.sha256()
    if isinstance(thing, Mapping) and not any(hasattr(x, "dtype") for x in jax.tree.leaves(thing)):
        digest.update(json.dumps(thing, sort_keys=True, default=str).encode())
    else:
        for leaf in jax.tree.leaves(thing):
            digest.update(np.ascontiguousarray(leaf).tobytes())
    return np.frombuffer(digest.digest(), np.uint32)
