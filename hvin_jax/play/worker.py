"""One thread that plans, in which the newest wish of each page wins."""

import threading
from collections.abc import Callable
from typing import Any

# So many pages may wait at once.
MOST_WAITING = 32


class BusyError(Exception):
    """More pages wait than there is room for."""


class Job:
    """Something to compute, and what came out."""

    def __init__(self, function: Callable[[], Any]) -> None:
        """A function without arguments."""
        self._function = function
        self._done = threading.Event()
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Computes it."""
        try:
            self._result = self._function()
        except BaseException as error:  # is raised where somebody waits for it
            self._error = error
        self._done.set()

    def drop(self) -> None:
        """Nobody wants it any more."""
        self._done.set()

    def wait(self) -> Any:
        """What came out; None if the job was dropped. Errors are raised here."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Worker:
    """Runs jobs one after another; of those of one page that wait, only the newest."""

    def __init__(self) -> None:
        self._waiting: dict[str, Job] = {}
        self._change = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="planning", daemon=True)
        self._thread.start()

    def ask(self, page: str, function: Callable[[], Any]) -> Job:
        """Puts a job in line, in the place of one of the same page that still waits."""
        job = Job(function)
        with self._change:
            if page not in self._waiting and len(self._waiting) >= MOST_WAITING:
                raise BusyError(f"{MOST_WAITING} pages wait already: try again in a moment")
            older = self._waiting.get(page)
            self._waiting[page] = job
            self._change.notify()
        if older is not None:
            older.drop()
        return job

    def stop(self) -> None:
        """Ends the thread after the job that runs; those that wait are dropped."""
        with self._change:
            self._stopped = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._stopped)
                if self._stopped:
                    for job in self._waiting.values():
                        job.drop()
                    return
                # The page that has waited longest; replacing a job keeps its place.
                job = self._waiting.pop(next(iter(self._waiting)))
            job.run()
