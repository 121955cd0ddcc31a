"""Moving pictures of plans and thoughts, as GIFs.

They are drawn by Pillow: a figure of matplotlib takes some hundred times as long.
"""

import base64
import dataclasses
import html
import io
import os
import pathlib
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax.plan import Plan
from hvin_jax.report._gif import save_gif, write_gif
from hvin_jax.report._map_picture import BAND, MapPicture, joined
from hvin_jax.thought import Thought

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image

# A whole film takes about so many milliseconds, then stays on its last picture.
_FILM, _FASTEST, _SLOWEST, _LAST = 6000, 60, 400, 2500
_MOST_STEPS = 80  # pictures of a walk
_COLOURS = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Animation:
    """Pictures one after another.

    Attributes:
      frames: images of Pillow, all of one size.
      durations: for how many milliseconds each is shown.
      text: what they show, for who can't see it.
    """

    frames: tuple[Any, ...]
    durations: tuple[int, ...]
    text: str

    def gif(self) -> bytes:
        """The GIF."""
        file = io.BytesIO()
        write_gif(file, self.frames, self.durations)
        return file.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a `.gif`."""
        if pathlib.Path(path).suffix.lower() != ".gif":
            raise ValueError(f"{path}: a moving picture is written to a file *.gif")
        save_gif(path, self.frames, self.durations)

    def __repr__(self) -> str:
        return f"Animation({len(self.frames)} frames: {self.text})"

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.gif()).decode()
        return f'<img alt="{html.escape(self.text)}" src="data:image/gif;base64,{data}">'


def thought_animation(thought: Thought) -> Animation:
    """Values, policy and path of each moment; beside it, what the filter gate let through."""
    maze, mechanism = thought.plan.setting()
    pictures = []
    for moment in range(len(thought)):
        picture = MapPicture(maze, mechanism)
        values = None if thought.values is None else thought.values[moment]
        if values is not None:
            picture.values(values.max(-1))
            picture.policy(thought.policies[moment], values)
        if thought.best_path is not None:
            picture.path(thought.paths[moment])
            picture.best_path(thought.best_path)
        picture.ends(thought.plan.start, thought.plan.every_goal)
        panels = [picture.finish("values, policy and path")]
        if thought.passed is not None:
            gate = MapPicture(maze, mechanism)
            gate.shares(thought.passed[moment].mean(-1))
            gate.ends(thought.plan.start, thought.plan.every_goal)
            panels.append(gate.finish("let through by the filter gate"))
        elif values is None:
            panels = [picture.finish("path")]
        done = (moment + 1) / len(thought)
        pictures.append(joined(panels, thought.caption(moment), done))
    text = f"{thought.planner} thinks: {thought.plan.summary()}"
    return _animation(pictures, text)


def walk_animation(plan: Plan) -> Animation:
    """The agent on its path, step by step."""
    maze, mechanism = plan.setting()
    count = len(plan.path)
    steps = np.unique(np.linspace(0, count - 1, min(count, _MOST_STEPS)).round().astype(int))
    pictures = []
    for step in steps.tolist():
        picture = MapPicture(maze, mechanism)
        if plan.values is not None:
            picture.values(plan.values.max(-1))
        picture.path(plan.path[: step + 1])
        picture.ends(plan.path[step], plan.every_goal)
        caption = f"{step} of {plan.length} actions"
        if step == count - 1:
            caption = plan.summary() if plan.reached else f"lost after {plan.length} actions"
        pictures.append(joined([picture.finish("")], caption, (step + 1) / count))
    return _animation(pictures, plan.summary())


def _animation(pictures: list[Image.Image], text: str) -> Animation:
    each = int(np.clip(_FILM / len(pictures), _FASTEST, _SLOWEST)) // 10 * 10
    durations = (*[each] * (len(pictures) - 1), _LAST)
    # One palette for all, or colours would flicker: that of the pictures under one another.
    some = pictures[:: max(len(pictures) // 8, 1)] + pictures[-1:]
    strip = Image.fromarray(np.concatenate([np.asarray(x)[:-BAND] for x in some]))
    strip.paste(pictures[-1].crop((0, pictures[-1].height - BAND, *pictures[-1].size)), (0, 0))
    palette = strip.quantize(_COLOURS)
    frames = tuple(x.quantize(palette=palette, dither=Image.Dither.NONE) for x in pictures)
    return Animation(frames, durations, text)
