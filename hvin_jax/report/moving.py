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
from hvin_jax._words import counted
from hvin_jax.plan import Plan
from hvin_jax.report._gif import save_gif, write_gif
from hvin_jax.report._map_picture import FIXED, MapPicture, joined, wrapped
from hvin_jax.thought import Thought

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image

# A whole film takes about so many milliseconds, then stays on its last picture.
_FILM, _FASTEST, _SLOWEST, _LAST = 6000, 60, 400, 2500
_MOST_STEPS = 80  # pictures of a walk
_COLOURS, _APART = 64, 8

_Scene = tuple[list[Image.Image], str, float]  # panels, caption, how much is done


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
        return f"Animation({counted(len(self.frames), 'frame')}: {self.text})"

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.gif()).decode()
        return f'<img alt="{html.escape(self.text)}" src="data:image/gif;base64,{data}">'


def thought_animation(thought: Thought) -> Animation:
    """Values, policy and path of each moment; beside it, what the filter gate let through."""
    maze, mechanism = thought.plan.setting()
    scenes: list[_Scene] = []
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
        scenes.append((panels, thought.caption(moment), (moment + 1) / len(thought)))
    return _animation(scenes, f"{thought.planner} thinks: {thought.plan.summary()}")


def walk_animation(plan: Plan) -> Animation:
    """The agent on its path, step by step; where there is no path to the goal, it stays."""
    maze, mechanism = plan.setting()
    path = plan.path[:1] if plan.shortest is None else plan.path
    count = len(path)
    steps = np.unique(np.linspace(0, count - 1, min(count, _MOST_STEPS)).round().astype(int))
    scenes: list[_Scene] = []
    for step in steps.tolist():
        picture = MapPicture(maze, mechanism)
        if plan.values is not None:
            picture.values(plan.values.max(-1))
        picture.path(path[: step + 1])
        picture.ends(path[step], plan.every_goal)
        taken = counted(plan.length, "action")
        caption = f"{step} of {taken}"
        if step == count - 1:
            lost = plan.shortest is not None and not plan.reached
            caption = f"lost after {taken}" if lost else plan.summary()
        scenes.append(([picture.finish("")], caption, (step + 1) / count))
    return _animation(scenes, plan.summary())


def _animation(scenes: list[_Scene], text: str) -> Animation:
    captions = [wrapped(caption, panels) for panels, caption, _ in scenes]
    lines = max(map(len, captions))
    pictures = [
        joined(panels, caption, done, lines=lines)
        for (panels, _, done), caption in zip(scenes, captions, strict=True)
    ]
    each = int(np.clip(_FILM / len(pictures), _FASTEST, _SLOWEST)) // 10 * 10
    durations = (*[each] * (len(pictures) - 1), _LAST)
    # One palette for all, or colours would flicker.
    palette = _palette(pictures[:: max(len(pictures) // 8, 1)] + pictures[-1:])
    frames = tuple(x.quantize(palette=palette, dither=Image.Dither.NONE) for x in pictures)
    return Animation(frames, durations, text)


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """The colours that have a meaning as they are, and some for all others in the pictures."""
    pixels = np.concatenate([np.asarray(x).reshape(-1, 3) for x in pictures])
    fixed = np.array(FIXED)
    others = pixels[~np.isin(_as_numbers(pixels), _as_numbers(fixed))]
    entries = list(FIXED)
    if len(others):
        few = Image.fromarray(others[None]).quantize(_COLOURS - len(FIXED)).getpalette()
        # Pillow looks colours up in steps of four: near ones could take a fixed one's place.
        found = np.array(few).reshape(-1, 3)
        apart = abs(found[:, None] - fixed).max(-1).min(-1) >= _APART
        entries += found[apart].tolist()
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.ravel(entries).astype(np.uint8).tobytes())
    return palette


def _as_numbers(colours: np.ndarray) -> np.ndarray:
    return colours.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
