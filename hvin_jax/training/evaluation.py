"""The greedy policy of a model on many mazes, and how good it is."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import Scores, evaluate, start_states
from hvin_jax.training import devices
from hvin_jax.training.batches import Collate
from hvin_jax.training.step import Decisions, EvalStep, Params
from hvin_jax.training.task import Split

# A policy that takes one action in this share of all start states counts as constant.
CONSTANT = 0.999


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How a policy did on some mazes.

    Attributes:
      scores: success and optimality.
      constant_action: the action that it takes (nearly) everywhere if it has collapsed to a
        constant, else None.
      map_accuracy: the share of cells whose predicted map is right; None if the map was given.
    """

    scores: Scores
    constant_action: int | None
    map_accuracy: float | None = None

    @property
    def rates(self) -> dict[str, float]:
        """The figures that are logged, by name."""
        names = ("success_rate", "optimality_rate", "percent_optimal", "percent_success")
        rates = {name: getattr(self.scores, name) for name in names}
        return rates if self.map_accuracy is None else {**rates, "map_accuracy": self.map_accuracy}


def decisions(
    eval_step: EvalStep,
    params: Params,
    arrays: Mapping[str, np.ndarray],
    *,
    batch_size: int,
    collate: Collate = devices.split,
    progress: Callable[[int], object] | None = None,
) -> Decisions:
    """What a model decides on many mazes.

    Args:
      eval_step: split over devices, see `devices.split_eval_step`.
      params: of the model.
      arrays: what the model looks at, `[n, ...]` each.
      batch_size: how many mazes at once, a multiple of the number of devices.
      collate: makes a batch for the devices.
      progress: is called with the number of mazes whenever some are done.

    Returns:
      The decisions, as numpy arrays over all mazes.
    """
    count = len(next(iter(arrays.values())))
    parts: list[Any] = []
    for start in range(0, count, batch_size):
        # The last batch is filled up with repetitions, so that one shape is compiled.
        index = np.arange(start, start + batch_size) % count
        parts.append(eval_step(params, collate({name: x[index] for name, x in arrays.items()})))
        # An accelerator computes one batch while the one before is fetched.
        ready = len(parts) - 1 - min(1, devices.steps_in_flight())
        if ready >= 0:
            parts[ready] = jax.tree.map(np.asarray, parts[ready])
        if progress is not None:
            progress(min(batch_size, count - start))

    def join(*devices_parts: Any) -> np.ndarray:
        flat = [np.asarray(part).reshape(-1, *part.shape[2:]) for part in devices_parts]
        return np.concatenate(flat)[:count]

    return jax.tree.map(join, *parts)


def evaluate_split(
    eval_step: EvalStep,
    params: Params,
    split: Split,
    *,
    batch_size: int,
    collate: Collate = devices.split,
    progress: Callable[[int], object] | None = None,
) -> Evaluation:
    """How good a model is on some mazes; the arguments are those of `decisions`."""
    made = decisions(
        eval_step,
        params,
        split.arrays,
        batch_size=batch_size,
        collate=collate,
        progress=progress,
    )
    return evaluate_policy(made.policy, split.data, made.free)


def evaluate_policy(
    policy: np.ndarray, data: MazeData, free: np.ndarray | None = None
) -> Evaluation:
    """Measures a policy and tells whether it is a constant one.

    Args:
      policy: uint8 `[n, H, W, O]`.
      data: the mazes.
      free: bool `[n, H, W]`, the map that the model predicted, if it did.

    Returns:
      The evaluation.
    """
    chosen = policy[start_states(data.spl)]
    counts = np.bincount(chosen, minlength=data.mechanism.num_actions)
    common = int(counts.argmax())
    constant = bool(chosen.size) and counts[common] >= CONSTANT * chosen.size
    accuracy = None if free is None else float(np.mean(free == (data.maze != 0)))
    return Evaluation(evaluate(policy, data), common if constant else None, accuracy)


def num_params(params: Params) -> int:
    """The number of parameters."""
    return sum(x.size for x in jax.tree.leaves(params))
