"""How good a policy is: success and optimality rates by path length, the baseline's measures.

Everything is kept as counts, so that the scores of batches add up to the scores of the whole:
`sum(parts, Scores.none())`.
"""

import dataclasses
import math

import numpy as np

from hvin_jax.tasks.cheapest_paths import TOLERANCE
from hvin_jax.tasks.maze_data import UNREACHABLE, MazeData
from hvin_jax.tasks.rollouts import path_costs, path_lengths

# Ranges (low, high] of the shortest path length for each maze size: the paper's, and those of the
# DT-VIN paper for four moves.
SPL_RANGES = {
    15: ((0, 30), (30, 60), (60, 100)),
    25: ((0, 60), (60, 130), (130, 230)),
    35: ((0, 100), (100, 200), (200, 300)),
    100: ((0, 600), (600, 1200), (1200, 1800)),
}


@dataclasses.dataclass(frozen=True)
class RangeScore:
    """The rates of the start states with low < SPL ≤ high.

    Attributes:
      low: the range begins above this.
      high: the range ends with this.
      count: number of start states.
      success_rate: SR, the share that reach the goal; nan if there are no start states.
      optimality_rate: OR, the share that reach it in SPL actions; nan if there are no start states.
      mazes: how many mazes these start states are in.
      success_error: the standard error of SR, if other mazes were drawn; nan with fewer than two.
      optimality_error: the same of OR.
    """

    low: int
    high: int
    count: int
    success_rate: float
    optimality_rate: float
    mazes: int
    success_error: float
    optimality_error: float


@dataclasses.dataclass(frozen=True)
class Scores:
    """Counts over start states, and over mazes for the measures of the baseline code.

    Attributes:
      starts_of: int32 `[n, L]`, of each maze the number of start states with SPL = 0, 1, …, L − 1.
      successes_of: int32 `[n, L]`, how many of these reach the goal.
      optimal_of: int32 `[n, L]`, how many of these reach it in SPL actions.
      percent_optimal_sum: the sum over mazes of the baseline's %Opt.
      percent_success_sum: the sum over mazes of the baseline's %Suc.
      states: number of states, wall cells included.
      errors: at how many of them the policy's action is not the label.
      ratio_sum: the sum over successes of what the path costs relative to the cheapest one (where
        mazes have no costs, of their lengths).
    """

    starts_of: np.ndarray
    successes_of: np.ndarray
    optimal_of: np.ndarray
    percent_optimal_sum: float
    percent_success_sum: float
    states: int
    errors: int
    ratio_sum: float = 0.0

    @classmethod
    def none(cls) -> "Scores":
        """The scores of no mazes at all."""
        empty = np.zeros((0, 0), dtype=np.int32)
        return cls(empty, empty, empty, 0.0, 0.0, 0, 0)

    def __add__(self, other: "Scores") -> "Scores":
        return Scores(
            starts_of=_stacked(self.starts_of, other.starts_of),
            successes_of=_stacked(self.successes_of, other.successes_of),
            optimal_of=_stacked(self.optimal_of, other.optimal_of),
            percent_optimal_sum=self.percent_optimal_sum + other.percent_optimal_sum,
            percent_success_sum=self.percent_success_sum + other.percent_success_sum,
            states=self.states + other.states,
            errors=self.errors + other.errors,
            ratio_sum=self.ratio_sum + other.ratio_sum,
        )

    @property
    def mazes(self) -> int:
        """The number of mazes."""
        return len(self.starts_of)

    @property
    def starts(self) -> np.ndarray:
        """Int64 `[L]`, the number of start states with SPL = 0, 1, …, L − 1."""
        return self.starts_of.sum(0, dtype=np.int64)

    @property
    def successes(self) -> np.ndarray:
        """Int64 `[L]`, how many of these reach the goal."""
        return self.successes_of.sum(0, dtype=np.int64)

    @property
    def optimal(self) -> np.ndarray:
        """Int64 `[L]`, how many of these reach it in SPL actions."""
        return self.optimal_of.sum(0, dtype=np.int64)

    def in_range(self, low: int, high: int) -> RangeScore:
        """The rates of start states with low < SPL ≤ high."""
        starts, successes, optimal = (
            of_mazes[:, low + 1 : high + 1].sum(1, dtype=np.int64)
            for of_mazes in (self.starts_of, self.successes_of, self.optimal_of)
        )
        count = int(starts.sum())
        return RangeScore(
            low=low,
            high=high,
            count=count,
            success_rate=_ratio(successes.sum(), count),
            optimality_rate=_ratio(optimal.sum(), count),
            mazes=int((starts > 0).sum()),
            success_error=_standard_error(successes, starts),
            optimality_error=_standard_error(optimal, starts),
        )

    def by_range(self, ranges: tuple[tuple[int, int], ...]) -> list[RangeScore]:
        """`in_range` for each of some ranges, such as `SPL_RANGES[15]`."""
        return [self.in_range(low, high) for low, high in ranges]

    @property
    def success_rate(self) -> float:
        """SR over all start states."""
        return _ratio(self.successes_of.sum(), int(self.starts_of.sum()))

    @property
    def optimality_rate(self) -> float:
        """OR over all start states."""
        return _ratio(self.optimal_of.sum(), int(self.starts_of.sum()))

    @property
    def cost_ratio(self) -> float:
        """How much more than the cheapest path that of the policy costs, where it arrives."""
        return _ratio(self.ratio_sum, int(self.successes.sum()))

    @property
    def percent_optimal(self) -> float:
        """The baseline's %Opt as a fraction, averaged over mazes.

        The share of a maze's free states, goal included, whose path is as long as the shortest. As
        in the baseline code, a state from which the goal can't be reached counts as optimal.
        """
        return _ratio(self.percent_optimal_sum, self.mazes)

    @property
    def percent_success(self) -> float:
        """The baseline's %Suc as a fraction, averaged over mazes.

        The share of a maze's free states, goal included, that reach the goal; one from which it
        can't be reached is a failure.
        """
        return _ratio(self.percent_success_sum, self.mazes)

    @property
    def prediction_error(self) -> float:
        """The share of all states, wall cells included, where the action is not the label."""
        return _ratio(self.errors, self.states)

    def curve(self) -> np.ndarray:
        """The success rate at each SPL, float64 `[L]`, nan where there are no start states."""
        with np.errstate(invalid="ignore"):
            return self.successes / self.starts


def evaluate(
    policy: np.ndarray,
    data: MazeData,
    *,
    step_limit: int | None = None,
    one_start_seed: int | None = None,
) -> Scores:
    """Follows a policy from all free states that can reach the goal, the goal itself left out.

    Args:
      policy: int `[n, H, W, O]`, indices of actions.
      data: the `n` mazes.
      step_limit: whoever has not arrived after so many actions has failed; by default there is no
        limit.
      one_start_seed: if given, one start state is drawn per maze from this seed (and %Opt and %Suc
        are of all states as ever).

    Returns:
      The scores.
    """
    if step_limit is not None and step_limit < 1:
        raise ValueError(f"step_limit is {step_limit}, expected 1 or more, or None for no limit")
    policy = np.asarray(policy)
    length = path_lengths(policy, data.maze, data.goal, mechanism=data.mechanism)
    if step_limit is not None:
        length[length > step_limit] = UNREACHABLE
    arrives, best, cost = length != UNREACHABLE, length == data.spl, length
    if data.cost is not None and data.distance is not None:
        cost = path_costs(policy, data.maze, data.goal, data.cost, mechanism=data.mechanism)
        with np.errstate(invalid="ignore"):
            best = arrives & (cost <= data.distance * (1 + TOLERANCE))
        best |= ~arrives & (data.spl == UNREACHABLE)
    least = data.spl if data.distance is None else data.distance
    starts = start_states(data.spl)
    if one_start_seed is not None:
        starts = one_start(starts, seed=one_start_seed)

    spl = data.spl[starts]
    bins = int(spl.max()) + 1 if spl.size else 0
    free = data.maze.astype(bool)[..., None]
    open_states = data.mechanism.num_orientations * data.maze.sum(axis=(1, 2), dtype=np.int64)
    place = np.nonzero(starts)[0] * bins + spl

    def of_mazes(places: np.ndarray) -> np.ndarray:
        counts = np.bincount(places, minlength=len(data) * bins)
        return counts.astype(np.int32).reshape(len(data), bins)

    return Scores(
        starts_of=of_mazes(place),
        successes_of=of_mazes(place[arrives[starts]]),
        optimal_of=of_mazes(place[best[starts]]),
        percent_optimal_sum=float(((best & free).sum(axis=(1, 2, 3)) / open_states).sum()),
        percent_success_sum=float(((arrives & free).sum(axis=(1, 2, 3)) / open_states).sum()),
        states=policy.size,
        errors=int((policy != data.label).sum()),
        ratio_sum=float((cost[starts & arrives] / least[starts & arrives]).sum(dtype=np.float64)),
    )


def start_states(spl: np.ndarray) -> np.ndarray:
    """The states that are a start: the goal can be reached and is not reached already.

    Args:
      spl: uint16 `[n, H, W, O]`, see `MazeData.spl`.

    Returns:
      bool `[n, H, W, O]`.
    """
    return (spl != 0) & (spl != UNREACHABLE)


def one_start(starts: np.ndarray, *, seed: int) -> np.ndarray:
    """One of the start states of each maze, all with equal probability.

    Args:
      starts: bool `[n, H, W, O]`.
      seed: what the draws come from.

    Returns:
      bool `[n, H, W, O]` with a single state per maze, none where a maze has no start state.
    """
    flat = starts.reshape(len(starts), math.prod(starts.shape[1:]))
    count = flat.sum(axis=1)
    drawn = np.floor(np.random.default_rng(seed).random(len(flat)) * count).astype(np.int64)
    rank = np.cumsum(flat, axis=1)
    return (flat & (rank == drawn[:, None] + 1)).reshape(starts.shape)


def farthest_start(spl: np.ndarray) -> tuple[int, int, int]:
    """The first of the states that are farthest from the goal, by their SPL `[H, W, O]`.

    Where no state leads to the goal, it is the goal itself.
    """
    reachable = np.where(spl == UNREACHABLE, -1, spl.astype(np.int32))
    row, column, orientation = np.unravel_index(reachable.argmax(), spl.shape)
    return int(row), int(column), int(orientation)


def _stacked(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Rows of both, filled up with zeros to one length."""
    longest = max(first.shape[1], second.shape[1])
    return np.concatenate([np.pad(x, ((0, 0), (0, longest - x.shape[1]))) for x in (first, second)])


def _standard_error(parts: np.ndarray, wholes: np.ndarray) -> float:
    """By how much the ratio of two sums over mazes would vary, were other mazes drawn.

    What many resamples of the mazes (the bootstrap) come to: each maze counts with all its starts,
    which succeed or fail together.
    """
    total = wholes.sum()
    if np.count_nonzero(wholes) < 2:
        return float("nan")
    return float(np.sqrt(np.square(parts - parts.sum() / total * wholes).sum()) / total)


def _ratio(part: float, whole: int) -> float:
    return float(part / whole) if whole else float("nan")
