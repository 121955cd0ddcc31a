"""Checkpoints of everything that a run needs to go on as if nothing had happened.

A checkpoint holds the training state, the best parameters so far and the time spent; the two newest
are kept. They are written in the background and become visible in one piece, so a killed run finds
the last complete one. Since each carries the best parameters, none of them can be lost on the way.
Several processes write them together, into a folder that all of them see.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy

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


class CheckpointError(RuntimeError):
    """Checkpoints are there but none of them can be read, or one can't be written."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Opens or makes the folder; unfinished checkpoints of a killed run are removed."""
        self.folder = folder.resolve()
        self._manager = ocp.CheckpointManager(
            self.folder,
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
        if jax.process_count() > 1:
            snapshot = devices.place_globally(snapshot)
        self._or_fail(lambda: self._manager.save(step, args=ocp.args.StandardSave(snapshot)))

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
          say: is told about each damaged checkpoint, which is put aside.

        Returns:
          The snapshot.

        Raises:
          CheckpointError: there are checkpoints, but all are damaged.
        """
        several = jax.process_count() > 1
        if several:
            like = devices.place_globally(like)
        steps = sorted(self._manager.all_steps(), reverse=True)
        for step in steps:
            try:
                found = self._manager.restore(step, args=ocp.args.StandardRestore(like))
                return devices.place_locally(found) if several else found
            except Exception as error:  # whatever a damaged file makes the reader raise
                hosts.wait_for_all(f"unreadable {step}")  # not because one of them is gone
                say(f"the checkpoint of step {step} is damaged and put aside: {_first_line(error)}")
                aside = self.folder.with_name(f"damaged-{self.folder.name}-{step}")
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

    @property
    def newest(self) -> str:
        """Where the newest complete checkpoint is, in words."""
        step = self._manager.latest_step()
        return "none yet" if step is None else f"{self.folder / str(step)}"

    def _or_fail(self, write: Callable[[], Any]) -> None:
        try:
            write()
        except Exception as error:
            raise CheckpointError(
                f"can't write a checkpoint in {self.folder}: {_first_line(error)}; the newest "
                f"complete one is {self.newest}"
            ) from error


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:160]
