"""Planning in one thread: the newest wish of a page wins."""

import threading

import pytest

from hvin_jax.play.worker import MOST_WAITING, BusyError, Worker


@pytest.fixture
def worker():
    worker = Worker()
    yield worker
    worker.stop()


def test_what_comes_out(worker):
    assert worker.ask("page", lambda: 7).wait() == 7
    with pytest.raises(ValueError, match="no map"):
        worker.ask("page", lambda: _fail()).wait()
    assert worker.ask("page", lambda: 8).wait() == 8


def _fail():
    raise ValueError("no map")


def test_of_many_quick_wishes_the_newest_wins(worker):
    begun, gate, made = threading.Event(), threading.Event(), []

    def first():
        begun.set()
        gate.wait()

    worker.ask("page", first)
    begun.wait()
    jobs = [worker.ask("page", lambda number=number: made.append(number)) for number in range(200)]
    other = worker.ask("another page", lambda: made.append("other"))
    gate.set()
    for job in (*jobs, other):
        job.wait()
    assert made == [199, "other"]


def test_no_more_pages_than_there_is_room_for(worker):
    begun, gate = threading.Event(), threading.Event()

    def first():
        begun.set()
        gate.wait()

    worker.ask("page", first)
    begun.wait()
    jobs = [worker.ask(f"page {number}", lambda: 1) for number in range(MOST_WAITING)]
    with pytest.raises(BusyError, match="32 pages wait already"):
        worker.ask("one more", lambda: 1)
    gate.set()
    assert [job.wait() for job in jobs] == [1] * MOST_WAITING


def test_stopping_drops_what_waits():
    worker, begun, gate = Worker(), threading.Event(), threading.Event()

    def first():
        begun.set()
        gate.wait()

    worker.ask("page", first)
    begun.wait()
    job = worker.ask("other", lambda: 1)
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    gate.set()
    stopping.join()
    assert job.wait() in (None, 1)
