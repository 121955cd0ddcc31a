"""Data sets of distinct labelled mazes, drawn from a seed by any number of processes.

Mazes are drawn in chunks of a fixed size, each from a random stream of its own that depends on the
seed and the chunk's number alone. Chunks are looked through in order and a map that was seen before
is dropped, so the data set is the same however the chunks are shared out. A last permutation, from
the seed too, deals the mazes to the splits: otherwise the most common maps, nearly open ones, would
all end up in the first.
"""

import collections
import concurrent.futures
import contextlib
import functools
import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping

import numpy as np

from hvin_jax._memory import check_memory
from hvin_jax.tasks.generation import Law, draw_mazes
from hvin_jax.tasks.maze_data import LEAST_COST, MOST_COST, MazeData, MazeSplits, concatenate
from hvin_jax.tasks.mechanisms import Mechanism
from hvin_jax.tasks.shortest_paths import label_mazes

# Mazes in a chunk; fewer only if fewer are asked for. Part of what a seed means: another number
# gives other mazes.
CHUNK = 512
MOST_GOALS = 100
# Bytes that a process takes for itself.
_PER_WORKER = 50e6
# Maps are taken to be exhausted when, of so many draws, less than one in a hundred is new and fifty
# times as many draws would not bring all that are missing.
WINDOW, LEAST_SHARE, PATIENCE = 16384, 0.01, 50


def make_mazes(
    *,
    law: Law,
    mechanism: Mechanism,
    train: int,
    valid: int,
    test: int,
    seed: int,
    costs: tuple[float, float] | None = None,
    goals: int = 1,
    any_orientation: bool = False,
    workers: int = 1,
    progress: Callable[[int], object] | None = None,
) -> MazeSplits:
    """A data set in which no map occurs twice, whatever its goal.

    Args:
      law: what mazes to draw.
      mechanism: how the agent moves.
      train: number of training mazes.
      valid: number of validation mazes.
      test: number of test mazes.
      seed: 0 or greater; the same seed gives the same arrays.
      costs: what entering a cell costs, drawn uniformly between these two for each cell; None: all
        actions cost the same.
      goals: how many goals a maze has, any of which counts; drawn from the free cells.
      any_orientation: whether it does not matter how the agent faces at a goal.
      workers: number of processes. With more than one, a script that calls this needs the usual
        `if __name__ == "__main__":`.
      progress: is called with the number of new mazes whenever some are ready.

    Returns:
      The mazes of the three splits.
    """
    counts = {"train": train, "valid": valid, "test": test}
    check_request(
        law=law,
        mechanism=mechanism,
        counts=counts,
        seed=seed,
        costs=costs,
        goals=goals,
        workers=workers,
    )
    total = sum(counts.values())
    size = min(CHUNK, 64 * -(-total // 64))
    make = functools.partial(
        make_chunk,
        size=size,
        seed=seed,
        law=law,
        mechanism=mechanism,
        costs=costs,
        goals=goals,
        any_orientation=any_orientation,
    )
    with contextlib.closing(_in_order(make, workers=min(workers, -(-total // size)))) as chunks:
        distinct = list(_distinct(chunks, total=total, law=law, progress=progress))
    whole = concatenate(distinct)
    order = np.split(_stream(seed, 0).permutation(total), [train, train + valid])
    return MazeSplits(
        train=whole[order[0]],
        valid=whole[order[1]],
        test=whole[order[2]],
        seed=seed,
        **law.kept,
    )


def check_request(
    *,
    law: Law,
    mechanism: Mechanism,
    counts: Mapping[str, int],
    seed: int,
    costs: tuple[float, float] | None = None,
    goals: int = 1,
    workers: int = 1,
) -> None:
    """Raises if there can't be such a data set, before anything is begun.

    Args:
      law: what mazes to draw.
      mechanism: how the agent moves.
      counts: number of mazes in each split.
      seed: 0 or greater.
      costs: the lowest and the highest of a cell.
      goals: number of goals of a maze.
      workers: number of processes.
    """
    if costs is not None and not LEAST_COST <= costs[0] <= costs[1] <= MOST_COST:
        raise ValueError(
            f"costs are from {costs[0]} to {costs[1]}, expected {LEAST_COST:g} <= lowest <= "
            f"highest <= {MOST_COST:g}"
        )
    if not 1 <= goals <= MOST_GOALS:
        raise ValueError(f"goals is {goals}, expected 1 to {MOST_GOALS}")
    for name, value in {**counts, "seed": seed}.items():
        if value < 0:
            raise ValueError(f"{name} is {value}, expected 0 or more")
    if seed >= 2**63:
        raise ValueError(f"seed is {seed}, expected less than 2⁶³")
    if workers < 1:
        raise ValueError(f"workers is {workers}, expected 1 or more")
    total = sum(counts.values())
    if total == 0:
        raise ValueError("no mazes were asked for: train, valid and test are all 0")
    per_maze = bytes_of_maze(law.size, mechanism=mechanism, has_costs=costs is not None)
    # All mazes, twice when they are dealt to the splits; at least a chunk, and tables for carving.
    needed = max(2 * total, 64) * per_maze + 100 * law.size[0] * law.size[1]
    what = f"{total:,} mazes of {law.size[0]}×{law.size[1]}"
    check_memory(needed, what)
    check_memory(_PER_WORKER * min(workers, total), f"{what} and {workers:,} workers")


def bytes_of_maze(size: tuple[int, int], *, mechanism: Mechanism, has_costs: bool) -> int:
    """How much memory a labelled maze takes, see `MazeData`."""
    of_cost = 4 if has_costs else 0
    per_state = 3 + mechanism.set_dtype.itemsize + of_cost
    return (1 + of_cost + per_state * mechanism.num_orientations) * size[0] * size[1]


def make_chunk(
    number: int,
    *,
    size: int,
    seed: int,
    law: Law,
    mechanism: Mechanism,
    costs: tuple[float, float] | None = None,
    goals: int = 1,
    any_orientation: bool = False,
) -> MazeData:
    """Chunk `number` = 0, 1, … of a seed: `size` labelled mazes, duplicates included."""
    rng = _stream(seed, number + 1)
    maze, goal = draw_mazes(size, law=law, num_orientations=mechanism.num_orientations, rng=rng)
    if goals > 1:
        more = draw_goals(maze, rng, count=goals - 1, mechanism=mechanism)
        goal = np.concatenate([goal[:, None], more], axis=1)
    if any_orientation:
        goal[..., 2] = -1
    cost = None if costs is None else rng.uniform(*costs, maze.shape).astype(np.float32)
    return label_mazes(maze, goal, rng, mechanism=mechanism, cost=cost)


def draw_goals(
    maze: np.ndarray, rng: np.random.Generator, *, count: int, mechanism: Mechanism
) -> np.ndarray:
    """Free cells with an orientation, all equally likely: int32 `[n, count, 3]`.

    Args:
      maze: `[n, H, W]`, 1 = free, each with a free cell.
      rng: consumed.
      count: for each maze; one may be drawn twice.
      mechanism: how the agent moves.
    """
    flat = maze.reshape(len(maze), -1) != 0
    free = flat.sum(axis=1)
    if not free.all():
        raise ValueError(f"map {int(free.argmin())} has no free cell for a goal")
    rank = np.floor(rng.random((len(maze), count)) * free[:, None]).astype(np.int64)
    place = np.argsort(~flat, axis=1, kind="stable")  # free cells first
    cell = np.take_along_axis(place, rank, axis=1)
    orientation = rng.integers(0, mechanism.num_orientations, cell.shape)
    return np.stack([*np.divmod(cell, maze.shape[2]), orientation], axis=-1).astype(np.int32)


def _stream(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def _in_order(make: Callable[[int], MazeData], *, workers: int) -> Generator[MazeData, None, None]:
    """`make(0)`, `make(1)`, … without end, some of them made ahead of time."""
    if workers == 1:
        yield from map(make, itertools.count())
        return
    # Not forked: a process in which JAX has started threads can't be forked safely.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(workers, context, _end_with_parent)
    try:
        ahead = collections.deque(pool.submit(make, number) for number in range(2 * workers))
        for number in itertools.count(2 * workers):
            yield ahead.popleft().result()
            ahead.append(pool.submit(make, number))
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Lets a worker end when its parent is killed; by itself it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _distinct(
    chunks: Iterator[MazeData],
    *,
    total: int,
    law: Law,
    progress: Callable[[int], object] | None,
) -> Iterator[MazeData]:
    """The first `total` mazes with a map of their own."""
    seen: set[bytes] = set()
    draws = in_window = at_window_start = 0
    for chunk in chunks:
        new = []
        for index, row in enumerate(np.packbits(chunk.maze.reshape(len(chunk), -1), axis=1)):
            before = len(seen)
            seen.add(row.tobytes())
            if len(seen) > before:
                new.append(index)
            if len(seen) == total:
                break
        if progress is not None:
            progress(len(new))
        yield chunk[new]
        if len(seen) == total:
            return
        draws += len(chunk)
        in_window += len(chunk)
        if in_window >= WINDOW:
            found = len(seen) - at_window_start
            if found < LEAST_SHARE * in_window and PATIENCE * found < total - len(seen):
                height, width = law.size
                raise ValueError(
                    f"too few distinct maps: {draws} draws of {height}×{width} {law.about} gave "
                    f"only {len(seen)}, and {total} were asked for; ask for fewer, for larger "
                    "ones or for a wider range of decimation or families"
                )
            in_window, at_window_start = 0, len(seen)
