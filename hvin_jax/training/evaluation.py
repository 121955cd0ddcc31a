"""The greedy policy of a model on many mazes, and how good it is."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import Scores, evaluate, start_states
from hvin_jax.training.devices import split
from hvin_jax.training.state import Params
from hvin_jax.training.step import EvalStep

# A policy that takes one action in this share of all start states counts as constant.
CONSTANT = 0.999


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How a policy did on some mazes.

    Attributes:
      scores: success and optimality.
      constant_action: the action that it takes (nearly) everywhere if it has collapsed to a
        constant, else None.
    """

    scores: Scores
    constant_action: int | None


def greedy_policy(
    eval_step: EvalStep,
    params: Params,
    arrays: Mapping[str, np.ndarray],
    *,
    batch_size: int,
    progress: Callable[[int], object] | None = None,
) -> np.ndarray:
    """The action in every state of every maze.

    Args:
      eval_step: split over devices, see `devices.pmap_eval_step`.
      params: of the model.
      arrays: what the model looks at, `[n, ...]` each.
      batch_size: how many mazes at once, a multiple of the number of devices.
      progress: is called with the number of mazes whenever some are done.

    Returns:
      uint8 `[n, H, W, O]`.
    """
    count = len(next(iter(arrays.values())))
    parts: list[Any] = []
    for start in range(0, count, batch_size):
        # The last batch is filled up with repetitions, so that one shape is compiled.
        index = np.arange(start, start + batch_size) % count
        actions = eval_step(params, split({name: x[index] for name, x in arrays.items()}))
        parts.append(actions)
        if len(parts) > 1:  # one batch is computed while the one before is fetched
            parts[-2] = np.asarray(parts[-2])
        if progress is not None:
            progress(min(batch_size, count - start))
    whole = np.concatenate([np.asarray(part).reshape(-1, *part.shape[2:]) for part in parts])
    return whole[:count]


def evaluate_policy(policy: np.ndarray, data: MazeData) -> Evaluation:
    """Measures a policy `[n, H, W, O]` and tells whether it is a constant one."""
    chosen = policy[start_states(data.spl)]
    counts = np.bincount(chosen, minlength=data.mechanism.num_actions)
    common = int(counts.argmax())
    constant = bool(chosen.size) and counts[common] >= CONSTANT * chosen.size
    return Evaluation(evaluate(policy, data), common if constant else None)


def planner_arrays(data: MazeData) -> dict[str, np.ndarray]:
    """What a planner looks at: maps and goals."""
    return {"maze": data.maze, "goal": data.goal}


def training_arrays(data: MazeData) -> dict[str, np.ndarray]:
    """What a training step needs besides: labels and path lengths."""
    others = {"label": data.label, "optimal": data.optimal, "spl": data.spl}
    return planner_arrays(data) | others


def num_params(params: Params) -> int:
    """The number of parameters."""
    return sum(x.size for x in jax.tree.leaves(params))
