r"""Planning on maps of many sizes in one process: time of a new size, memory kept.

    python -m benchmarks.sizes --sizes=1000

Plans on maps of random sizes, each seen for the first time, with a planner that comes with the
package. What is compiled is for a few shapes only, in which maps of other sizes are planned on as
if they were alone; see `hvin_jax._applied`.
"""

import pathlib
import resource
import statistics
import time

import numpy as np
from absl import app, flags

import hvin_jax

_SIZES = flags.DEFINE_integer("sizes", 1000, "Number of different sizes.", lower_bound=1)
_LARGEST = flags.DEFINE_integer("largest", 60, "Largest side of a map.", lower_bound=5)
_PLANNER = flags.DEFINE_string("planner", "diffdrive-15", "Folder or name of the planner.")


def main(argv: list[str]) -> None:
    """Prints a table."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]!r}")
    planner = hvin_jax.load_planner(_PLANNER.value)
    rng = np.random.default_rng(0)
    sides = np.arange(5, _LARGEST.value + 1)
    every = rng.permutation([(h, w) for h in sides for w in sides])[: _SIZES.value]
    _seconds(planner, rng, 9, 9)
    before, more = _memory(), []
    for height, width in every:
        first, again = (_seconds(planner, rng, int(height), int(width)) for _ in range(2))
        more.append(first - again)
    print("| sizes | a new size takes longer by | compiled anew | memory kept |")
    print("|---|---|---|---|")
    print(
        f"| {len(every)} of 5×5 to {_LARGEST.value}×{_LARGEST.value} | "
        f"{1e3 * statistics.median(more):.1f} ms | {sum(x > 0.3 for x in more)} times, "
        f"{max(more):.1f} s at most | {_memory() - before:.0f} MB |"
    )


def _seconds(planner: hvin_jax.Planner, rng: np.random.Generator, height: int, width: int) -> float:
    """Seconds to plan on a random map."""
    maze = (rng.random((height, width)) < 0.8).astype(np.uint8)
    maze[1, 1] = maze[-2, -2] = 1
    start = time.perf_counter()
    planner.plan(maze, (height - 2, width - 2, 0), (1, 1, 0))
    return time.perf_counter() - start


def _memory() -> float:
    """The memory of this process, in MB."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    app.run(main)
