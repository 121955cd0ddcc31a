"""What a planner wants to do on one map."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What a planner wants to do on one map.

    Plans are equal when all that they hold is equal. Since arrays are among it, they have no hash.

    Attributes:
      path: int32 `[k + 1, 3]`, the states (row, column, orientation) that the policy leads through
        from the start on. If the goal is not reached, the last one repeats an earlier one.
      reached: whether the path ends at the goal.
      shortest: the length of a shortest path; None if there is none.
      start: the state that was started from.
      goal: the goal state that was planned for.
      policy: uint8 `[H, W, O]`, the action in every state.
      values: float32 `[H, W, O]`, the planner's value map; None for models that have none.
      layers: with how many layers it was made; None if the model does not say.
    """

    path: np.ndarray
    reached: bool
    shortest: int | None
    start: tuple[int, int, int]
    goal: tuple[int, int, int]
    policy: np.ndarray
    values: np.ndarray | None
    layers: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        pairs = [
            (getattr(self, field.name), getattr(other, field.name))
            for field in dataclasses.fields(self)
        ]
        return all(
            (mine is None) == (theirs is None) and np.array_equal(mine, theirs)
            for mine, theirs in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        height, width, _ = self.policy.shape
        return f"Plan({height}×{width} map, {self.start} to {self.goal}: {self.summary()})"

    @property
    def length(self) -> int:
        """The number of actions on the path."""
        return len(self.path) - 1

    @property
    def optimal(self) -> bool:
        """Whether the goal is reached by a shortest path."""
        return self.reached and self.length == self.shortest

    def summary(self) -> str:
        """What the planner achieved in one sentence, without flattery."""
        if self.shortest is None:
            return "there is no path from the start to the goal"
        if not self.reached:
            return (
                f"the planner fails: after {self.length} actions it goes round in circles or is "
                f"stuck (a shortest path has {self.shortest})"
            )
        if self.optimal:
            return f"the planner reaches the goal in {self.length} actions, as few as possible"
        return (
            f"the planner reaches the goal in {self.length} actions, "
            f"{self.length - self.shortest} more than the shortest path of {self.shortest}"
        )
