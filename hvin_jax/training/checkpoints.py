"""Checkpoints of everything that a run needs to go on as if nothing had happened.

A checkpoint holds the training state, the best parameters so far and the time spent; the two newest
are kept. They are written in the background and become visible in one piece, so a killed run finds
the last complete one. Since each carries the best parameters, none of them can be lost on the way.
Several processes write them together, into a folder that all of them see.

Each carries a checksum of its arrays, so one that has changed on the disk is not gone on from.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy

from hvin_jax._digest import digest_of
from hvin_jax.training import devices, hosts
from hvin_jax.training.step import Params, TrainState

KEPT = 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Best:
    """The best parameters so far, by validation.

    Attributes:
      params: the parameters.
      score: their validation score; -inf before the first validation.
      step: after which step they were the state's.
    """

    params: Params
    score: jax.Array
    step: jax.Array

    @classmethod
    def none(cls, params: Params) -> "Best":
        """Before the first validation."""
        return cls(params, jnp.asarray(-jnp.inf, jnp.float32), jnp.zeros((), jnp.int32))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Snapshot:
    """What a checkpoint holds.

    Attributes:
      state: of the training.
      best: the best parameters so far.
      collapsed: how many validations in a row found a constant policy, int32; at least as many as
        end the run if all steps of a report were skipped.
      seconds: how long the run has taken until then, in all its sittings.
    """

    state: TrainState
    best: Best
    collapsed: jax.Array
    seconds: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Sealed(Snapshot):
    """A snapshot as it is on disk.

    Attributes:
      sha256: of all other arrays, uint8 `[32]`; earlier versions did not have it.
    """

    sha256: jax.Array


class CheckpointError(RuntimeError):
    """Checkpoints are there but none of them can be read, or one can't be written."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Opens or makes the folder; unfinished checkpoints of a killed run are removed."""
        self.folder = folder.resolve()
        self._manager = ocp.CheckpointManager(
            self.folder,
            item_handlers=ocp.StandardCheckpointHandler(),
            options=ocp.CheckpointManagerOptions(
                preservation_policy=preservation_policy.LatestN(KEPT),
                cleanup_tmp_directories=True,
                enable_async_checkpointing=True,
            ),
        )

    def save(self, snapshot: Snapshot) -> None:
        """Starts to write; the arrays may be reused as soon as this returns."""
        step = int(snapshot.state.step)
        if step in self._manager.all_steps():
            return
        sealed = _Sealed(**vars(snapshot), sha256=_digest(snapshot))
        if jax.process_count() > 1:
            sealed = devices.place_globally(sealed)
        self._or_fail(lambda: self._manager.save(step, args=ocp.args.StandardSave(sealed)))

    def wait(self) -> None:
        """Waits until everything is on disk."""
        self._or_fail(self._manager.wait_until_finished)

    def close(self) -> None:
        """Waits, and lets go of the folder."""
        self.wait()
        self._manager.close()

    def restore(self, like: Snapshot, say: Callable[[str], object]) -> Snapshot | None:
        """The newest checkpoint that can be read; None if there is none at all.

        Args:
          like: a snapshot of the same structure, shapes and types.
          say: is told about each damaged checkpoint, which is put aside, and about one of an
            earlier version, which has no checksum.

        Returns:
          The snapshot.

        Raises:
          CheckpointError: there are checkpoints, but all are damaged.
        """
        steps = sorted(self._manager.all_steps(), reverse=True)
        for step in steps:
            found, fault = None, "another process can't read it"
            try:
                found = self._read(step, like, say)
            except jax.errors.JaxRuntimeError:  # another process is gone: no fault of the files
                raise
            except Exception as error:  # whatever a damaged file makes the reader raise
                fault = _first_line(error)
            if hosts.all_say(found is not None):
                return found
            aside = _unused(self.folder.with_name(f"damaged-{self.folder.name}-{step}"))
            say(f"the checkpoint of step {step} is damaged and put aside as {aside.name}: {fault}")
            if hosts.is_first():
                (self.folder / str(step)).rename(aside)
            hosts.wait_for_all(f"damaged {step}")
            self._manager.reload()
        if steps:
            raise CheckpointError(
                f"no checkpoint in {self.folder} can be read; they were put aside as damaged-*, "
                "and the same command starts again from the beginning"
            )
        return None

    def _read(self, step: int, like: Snapshot, say: Callable[[str], object]) -> Snapshot:
        """A checkpoint, compared with its checksum."""
        is_sealed = "sha256" in self._manager.item_metadata(step)
        wanted = _Sealed(**vars(like), sha256=_digest(like)) if is_sealed else like
        several = jax.process_count() > 1
        if several:
            wanted = devices.place_globally(wanted)
        found = self._manager.restore(step, args=ocp.args.StandardRestore(wanted))
        if several:
            found = devices.place_locally(found)
        if not is_sealed:
            say(f"the checkpoint of step {step} is of an earlier version and has no checksum")
            return found
        names = (field.name for field in dataclasses.fields(Snapshot))
        snapshot = Snapshot(**{name: getattr(found, name) for name in names})
        if not np.array_equal(found.sha256, _digest(snapshot)):
            raise ValueError("its checksum is not that of its arrays")
        return snapshot

    @property
    def newest(self) -> str:
        """Where the newest complete checkpoint is, in words."""
        step = self._manager.latest_step()
        return "none yet" if step is None else f"{self.folder / str(step)}"

    def _or_fail(self, write: Callable[[], Any]) -> None:
        try:
            write()
        except jax.errors.JaxRuntimeError:  # another process is gone: no fault of the disk
            raise
        except Exception as error:
            raise CheckpointError(
                f"can't write a checkpoint in {self.folder}: {_first_line(error)}; the newest "
                f"complete one is {self.newest}"
            ) from error


def _digest(snapshot: Snapshot) -> jax.Array:
    leaves = enumerate(jax.tree.leaves(snapshot))
    # Numbered, since the names of leaves are JAX's and may change.
    digits = digest_of({str(number): _numbers(leaf) for number, leaf in leaves})
    return jnp.asarray(np.frombuffer(bytes.fromhex(digits), np.uint8))


def _numbers(leaf: jax.Array) -> Any:
    is_key = jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def _unused(path: pathlib.Path) -> pathlib.Path:
    """The path itself or, if there is something already, with a number behind it."""
    others = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(x for x in itertools.chain([path], others) if not x.exists())


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:160]
