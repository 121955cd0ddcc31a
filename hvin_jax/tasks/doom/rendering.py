"""Many mazes rendered by several engines side by side.

The parent hands out mazes one by one; each worker process runs one engine, which stays up for
hundreds of levels. An engine that dies is started again by its worker, a worker that dies by the
parent, which clears away the engine that was left behind. Either way only the maze at hand is
rendered again. When the parent dies, its workers notice, end their engines and themselves.
"""

import collections
import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import numpy as np

from hvin_jax.tasks.doom import _orphans
from hvin_jax.tasks.doom._compaction import CompactViews, compact
from hvin_jax.tasks.doom.camera import maze_views
from hvin_jax.tasks.doom.engine import Engine, EngineError, load_vizdoom
from hvin_jax.tasks.doom.levels import Look, check_maze, write_levels

# Levels in one file, which are rendered by one start of an engine.
LEVELS_PER_FILE = 400
# Mazes that a worker has before it: one at hand, and the next, so that it never waits.
_AHEAD = 2
# A maze that is at hand when things die as often as this is at fault itself.
_ATTEMPTS = 3
# None of the workers has ever taken as long as this.
_SECONDS_FOR_A_MAZE = 120
# How often to look whether silent workers still have their engines: one that is killed at the wrong
# moment leaves its worker waiting for ever.
_LOOK_SECONDS = 2


class Job(NamedTuple):
    """A maze to be rendered.

    Attributes:
      number: of the maze.
      wad: the file with its level.
      name: of the level.
      size: `(H, W)`.
    """

    number: int
    wad: str
    name: str
    size: tuple[int, int]


def render_mazes(
    mazes: Sequence[np.ndarray],
    looks: Sequence[Look],
    *,
    workers: int = 1,
    levels_per_file: int = LEVELS_PER_FILE,
) -> Iterator[CompactViews]:
    """Renders every view of mazes.

    Args:
      mazes: `[H, W]` each, 1 = free, 0 = wall.
      looks: of each maze.
      workers: number of engines side by side. A script that calls this needs the usual
        `if __name__ == "__main__":`, since they are processes.
      levels_per_file: for how many mazes an engine stays up.

    Yields:
      The views of each maze, in the order of the mazes, in tables of their own. The same whatever
      the number of workers.
    """
    load_vizdoom()
    if workers < 1 or levels_per_file < 1:
        raise ValueError(
            f"workers is {workers}, levels_per_file {levels_per_file}: expected 1 or more"
        )
    if len(mazes) != len(looks):
        raise ValueError(f"there are {len(mazes)} mazes but {len(looks)} looks")
    for maze in mazes:
        check_maze(maze)
    _orphans.clear_orphans()
    folder = _orphans.make_folder()
    try:
        with contextlib.closing(_Crew(min(workers, max(len(mazes), 1)))) as crew:
            for start in range(0, len(mazes), levels_per_file):
                part = slice(start, start + levels_per_file)
                wad = folder / f"levels-{start}.wad"
                names = write_levels(wad, mazes[part], looks[part])
                jobs = [
                    Job(start + k, str(wad), name, mazes[start + k].shape)
                    for k, name in enumerate(names)
                ]
                yield from crew.do(jobs)
                wad.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()
        self.jobs: collections.deque[Job] = collections.deque()

    def give(self, job: Job) -> None:
        self.jobs.append(job)
        # A worker that is dead is dealt with when its answer is waited for.
        with contextlib.suppress(OSError):
            self.connection.send(job)

    def close(self, patience: float) -> None:
        """Lets the worker end by itself, and ends it if it does not."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()
        _orphans.clear_orphans()


class _Crew:
    """Workers that are replaced when they die."""

    def __init__(self, count: int) -> None:
        self._workers = [_Worker() for _ in range(count)]

    def do(self, jobs: Sequence[Job]) -> Iterator[CompactViews]:
        """The results of jobs, in their order."""
        waiting = collections.deque(jobs)
        attempts: collections.Counter[int] = collections.Counter()
        done: dict[int, CompactViews] = {}
        wanted = collections.deque(job.number for job in jobs)
        silence = 0
        suspects: set[int | None] = set()
        while wanted:
            for worker in self._workers:
                while waiting and len(worker.jobs) < _AHEAD:
                    worker.give(waiting.popleft())
            by_connection = {worker.connection: worker for worker in self._workers}
            ready = wait(list(by_connection), timeout=_LOOK_SECONDS)
            silence = 0 if ready else silence + _LOOK_SECONDS
            lost = set() if ready else self._without_engine()
            for worker in self._workers:  # what follows is as if those that hang had died
                if silence >= _SECONDS_FOR_A_MAZE or worker.process.pid in lost & suspects:
                    worker.process.kill()
            suspects = lost
            for connection in ready:
                worker = by_connection[connection]  # type: ignore[index]
                try:
                    result = worker.connection.recv()
                except (EOFError, OSError):
                    waiting.extendleft(reversed(worker.jobs))
                    self._replace(worker, attempts)
                    continue
                if isinstance(result, Exception):
                    raise result
                done[worker.jobs.popleft().number] = result
            while wanted and wanted[0] in done:
                yield done.pop(wanted.popleft())

    def _without_engine(self) -> set[int | None]:
        """Workers whose engine is dead, which they will soon notice, or never."""
        pids = [worker.process.pid for worker in self._workers]
        return {pid for pid in pids if pid is not None and _orphans.has_lost_engine(pid)}

    def _replace(self, worker: _Worker, attempts: collections.Counter[int]) -> None:
        if worker.jobs:
            number = worker.jobs[0].number
            attempts[number] += 1
            if attempts[number] == _ATTEMPTS:
                raise EngineError(
                    f"maze {number} could not be rendered: {_ATTEMPTS} workers died of it"
                )
        self._workers[self._workers.index(worker)] = _Worker()
        worker.close(patience=5)

    def close(self) -> None:
        """Ends all workers."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.close(patience=20)


def _keep_files_to_itself() -> None:
    """Lets the engine inherit no connection to the parent.

    Otherwise the parent would not notice a killed worker as long as its engine lives.
    """
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.set_inheritable(int(name), False)


def work(connection: Connection, parent: int) -> None:
    """The life of a worker: jobs come and views go through a connection, until it is closed.

    Args:
      connection: to the parent.
      parent: the parent's process number.
    """
    # Whoever presses Ctrl-C means the parent; a parent that ends closes the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _keep_files_to_itself()
    engine: Engine | None = None
    wad = ""
    try:
        while os.getppid() == parent:
            job: Job = connection.recv()
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    if engine is None or wad != job.wad:
                        if engine is not None:
                            engine.close()
                        engine, wad = None, job.wad
                        engine = Engine(wad, first_map=job.name)
                    result: CompactViews | Exception = compact(
                        maze_views(engine, job.name, job.size)
                    )
                    break
                except EngineError as error:
                    if engine is not None:
                        engine.close()
                        engine = None
                    result = EngineError(
                        f"maze {job.number} could not be rendered in {attempt} attempts: {error}"
                    )
            connection.send(result)
    except (EOFError, OSError):
        pass  # the parent wants no more
    finally:
        if engine is not None:
            engine.close()
