"""GIFs from pictures."""

import os
from collections.abc import Sequence
from typing import IO

from hvin_jax._extras import needs
from hvin_jax._files import atomic_write

with needs("an animation", "pillow", extra="draw"):
    from PIL import Image


def write_gif(file: IO[bytes], frames: Sequence[Image.Image], durations: Sequence[int]) -> None:
    """Writes pictures that repeat for ever, each for so many milliseconds."""
    frames[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=list(durations),
        loop=0,
        optimize=False,
    )


def save_gif(
    path: str | os.PathLike[str], frames: Sequence[Image.Image], durations: Sequence[int]
) -> None:
    """`write_gif` to a file, which appears when it is complete."""
    with atomic_write(path) as file:
        write_gif(file, frames, durations)
