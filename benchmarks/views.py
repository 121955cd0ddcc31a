"""How fast mazes are rendered in the Doom engine, and how much space their views take.

    python -m benchmarks.views [--mazes=400] [--json=FILE]

Needs hvin_jax[vizdoom]. Renders mazes of 15×15, every view of every cell, with one engine per core,
compaction included; then writes a data set of them. Takes about two minutes. The space for the
paper's 35,000 mazes is extrapolated from the last half of these, so it is too large rather than too
small: the more mazes there are, the fewer of their views are new.
"""

import pathlib
import tempfile
import time

from absl import app, flags

from benchmarks.harness import Figure, report
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.doom.levels import draw_looks
from hvin_jax.tasks.doom.rendering import render_mazes
from hvin_jax.tasks.doom.view_data import make_view_data
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import MazeSplits
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.devices import usable_cores

_JSON = flags.DEFINE_string("json", None, "Also write the figures to this file.")
_MAZES = flags.DEFINE_integer("mazes", 400, "How many mazes to render.", lower_bound=20)
_PAPER = 35_000


def main(argv: list[str]) -> None:
    """Measures, prints a Markdown table and writes it as JSON if asked to."""
    del argv
    count, workers = _MAZES.value, usable_cores()
    splits = _mazes(count)
    mazes = list(splits.train.maze)
    views = render_mazes(mazes, draw_looks(0, count), workers=workers)
    for _ in range(workers):  # until every worker has started its engine
        next(views)
    began = time.perf_counter()
    rendered = sum(maze.index.size for maze in views)
    seconds = time.perf_counter() - began
    figures = [Figure(f"1,000 views, {workers} engines", 1000 * seconds / rendered, "s", 0.2)]
    with tempfile.TemporaryDirectory() as folder:
        make_view_data(
            folder, lambda: splits, settings={}, seed=0, workers=workers, shard=count // 2
        )
        last = pathlib.Path(folder) / "views-00001.npz"
        each = last.stat().st_size / (count // 2)
        figures.append(Figure("views of one maze on disk", each / 1e3, "kB"))
        figures.append(Figure(f"{_PAPER:,} mazes, extrapolated", each * _PAPER / 1e9, "GB", 5.0))
    report(figures, _JSON.value)


def _mazes(count: int) -> MazeSplits:
    return make_mazes(
        law=MazeLaw((15, 15)),
        mechanism=get_mechanism("diffdrive"),
        train=count,
        valid=0,
        test=0,
        seed=0,
    )


if __name__ == "__main__":
    app.run(main)
