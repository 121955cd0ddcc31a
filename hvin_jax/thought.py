"""What a planner thinks on the way to a plan: its values, policy and path after each block."""

import dataclasses
import os
from typing import Any

import numpy as np

from hvin_jax._extras import MissingExtraError
from hvin_jax._words import counted
from hvin_jax.plan import Plan


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Thought:
    """What a planner would do if it stopped planning after some of its layers.

    There are `M` moments, the last of which is the plan itself.

    Attributes:
      planner: the name of the planner.
      plan: what it came to, with the map, the mechanism and the costs.
      depths: int32 `[M]`, after how many layers each moment is.
      values: float32 `[M, H, W, O]`, the value maps; None for models that have none.
      policies: uint8 `[M, H, W, O]`, the greedy action in every state.
      paths: for each moment int32 `[k + 1, 3]`, where its policy leads, see `Plan.path`.
      reached: bool `[M]`, whether that is the goal.
      passed: float32 `[M, H, W, O]`, of the block that ends there, the share of exploring layers
        whose value the filter gate let through; None for models without one.
      best_path: int32 `[k + 1, 3]`, a shortest path, or a cheapest one where cells have costs; None
        if there is no path.
    """

    planner: str
    plan: Plan
    depths: np.ndarray
    values: np.ndarray | None
    policies: np.ndarray
    paths: tuple[np.ndarray, ...]
    reached: np.ndarray
    passed: np.ndarray | None
    best_path: np.ndarray | None

    def __len__(self) -> int:
        return len(self.depths)

    def __repr__(self) -> str:
        height, width = self.policies.shape[1:3]
        return (
            f"Thought({self.planner} on a {height}×{width} map, {counted(len(self), 'moment')} up "
            f"to {counted(self.depths[-1], 'layer')}: {self.plan.summary()})"
        )

    @property
    def settled(self) -> int | None:
        """After how many layers the path is the last one and stays so; None if it gets nowhere.

        Only the moments are looked at, so it is after that many layers at the latest.
        """
        if not self.reached[-1]:
            return None
        same = [np.array_equal(path, self.paths[-1]) for path in self.paths]
        first = len(same) - same[::-1].index(False) if False in same else 0
        return int(self.depths[first])

    def caption(self, moment: int) -> str:
        """What there is to say of a moment, in a few words."""
        plan, taken = self.plan, counted(len(self.paths[moment]) - 1, "action")
        after = f"{self.depths[moment]} of {counted(self.depths[-1], 'layer')}"
        if plan.shortest is None:
            return f"{after}: there is no path"
        if not self.reached[moment]:
            return f"{after}: lost after {taken}"
        return f"{after}: {taken}, shortest {plan.shortest}"

    def draw(self, moment: int = -1, path: str | os.PathLike[str] | None = None) -> Any:
        """A moment as a figure of matplotlib: path and shortest path, values and policy.

        Args:
          moment: which one, from 0 on, or from -1 back.
          path: a file to write it to as well, such as `thought.png`.
        """
        from hvin_jax.report.thoughts import thought_figure
        from hvin_jax.tasks.drawing import save_figure

        figure = thought_figure(self, moment)
        if path is not None:
            save_figure(figure, path)
        return figure

    def animate(self, path: str | os.PathLike[str] | None = None) -> Any:
        """All moments as a moving picture: the values, the arrows and the path as they change.

        Beside it stands what the filter gate lets through, for models that have one.

        Args:
          path: a file to write it to as well, such as `thought.gif`.

        Returns:
          A `hvin_jax.report.moving.Animation`, which shows itself in notebooks.
        """
        from hvin_jax.report.moving import thought_animation

        animation = thought_animation(self)
        if path is not None:
            animation.save(path)
        return animation

    def _repr_html_(self) -> str | None:
        """What notebooks show: the moving picture; None, for a text, where it can't be drawn."""
        try:
            return self.animate()._repr_html_()
        except MissingExtraError:
            return None
