"""What a planner wants to do on one map."""

import dataclasses
import os
from typing import Any

import numpy as np

from hvin_jax._extras import MissingExtraError
from hvin_jax._words import counted
from hvin_jax.tasks.cheapest_paths import TOLERANCE
from hvin_jax.tasks.mechanisms import Mechanism


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
      goal: the goal state that was planned for; of several, the one that is reached.
      policy: uint8 `[H, W, O]`, the action in every state.
      values: float32 `[H, W, O]`, the planner's value map; None for models that have none.
      layers: with how many layers it was made; None if the model does not say.
      cost: what the path costs, where cells have costs, else None.
      least_cost: what a cheapest path costs, None without costs or if there is no path. `shortest`
        is then the number of its actions.
      maze: uint8 `[H, W]`, the map that it is a plan for.
      mechanism: how the agent moves.
      goals: int32 `[K, 3]`, the goals that were planned for, any of which counts; an orientation of
        -1 stands for any.
      other_goals: int32 `[k, 3]`, cells that would have counted, too, but were planned for apart.
      costs: float32 `[H, W]`, what it costs to enter each cell; None: everywhere the same.
    """

    path: np.ndarray
    reached: bool
    shortest: int | None
    start: tuple[int, int, int]
    goal: tuple[int, int, int]
    policy: np.ndarray
    values: np.ndarray | None
    layers: int | None = None
    cost: float | None = None
    least_cost: float | None = None
    maze: np.ndarray | None = None
    mechanism: Mechanism | None = None
    goals: np.ndarray | None = None
    other_goals: np.ndarray | None = None
    costs: np.ndarray | None = None

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
        """Whether the goal is reached by a shortest path, or a cheapest one."""
        if self.cost is None or self.least_cost is None:
            return self.reached and self.length == self.shortest
        return self.reached and self.cost <= self.least_cost * (1 + TOLERANCE)

    @property
    def every_goal(self) -> np.ndarray:
        """Int32 `[K, 3]`, all goals that count, for pictures."""
        given = [x for x in (self.goals, self.other_goals) if x is not None]
        return np.concatenate(given) if given else np.array([self.goal], np.int32)

    def summary(self) -> str:
        """What the planner achieved in one sentence, without flattery."""
        if self.shortest is None:
            return "there is no path from the start to the goal"
        taken = counted(self.length, "action")
        if not self.reached:
            return (
                f"the planner fails: after {taken} it goes round in circles or is "
                f"stuck (a shortest path has {self.shortest})"
            )
        if self.cost is not None and self.least_cost is not None:
            more = 100 * (self.cost / self.least_cost - 1) if self.least_cost else 0.0
            than = "as little as possible" if self.optimal else f"{more:.2g} % more than the least"
            return f"the planner reaches the goal in {taken} at a cost of {self.cost:.6g}, {than}"
        if self.optimal:
            return f"the planner reaches the goal in {taken}, as few as possible"
        return (
            f"the planner reaches the goal in {taken}, "
            f"{self.length - self.shortest} more than the shortest path of {self.shortest}"
        )

    def draw(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The plan as a figure of matplotlib: the path, and the values with the policy.

        Args:
          path: a file to write it to as well, such as `plan.png`.
        """
        from hvin_jax.report.plans import plan_figure
        from hvin_jax.tasks.drawing import save_figure

        maze, mechanism = self.setting()
        figure = plan_figure(self, maze, mechanism=mechanism, cost=self.costs)
        if path is not None:
            save_figure(figure, path)
        return figure

    def animate(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The agent on its way, as a moving picture; see `Planner.think` for what went before.

        Args:
          path: a file to write it to as well, such as `plan.gif`.

        Returns:
          A `hvin_jax.report.moving.Animation`, which shows itself in notebooks.
        """
        from hvin_jax.report.moving import walk_animation

        animation = walk_animation(self)
        if path is not None:
            animation.save(path)
        return animation

    def setting(self) -> tuple[np.ndarray, Mechanism]:
        """Map and mechanism of a plan that a planner made, which tells both."""
        if self.maze is None or self.mechanism is None:
            raise ValueError("this plan does not know its map: Planner.plan makes those that do")
        return self.maze, self.mechanism

    def _repr_png_(self) -> bytes | None:
        """The picture that notebooks show; None, for a text instead, where it can't be drawn."""
        if self.maze is None:
            return None
        try:
            from hvin_jax.report.plans import png_of
        except MissingExtraError:
            return None
        return png_of(self.draw())
