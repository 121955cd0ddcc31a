"""How a command ends: asked to by a signal, or because of something that a user can mend."""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator

import jax

from experiments.console import announce, say
from hvin_jax.training import hosts, loop, workdir
from hvin_jax.training.checkpoints import CheckpointError

# Exit code of a command whose folder another process is working in ("try again later").
BUSY = os.EX_TEMPFAIL
# Exit code of a command that was asked to stop and has saved its work.
STOPPED = 128 + signal.SIGTERM


@contextlib.contextmanager
def stop_signals(parent: int = 0) -> Iterator[Callable[[], bool]]:
    """Turns the first SIGTERM or SIGINT into a wish that the loop looks at.

    Args:
      parent: if not 0, the process that started this one; its end is such a wish, too.
    """
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        say(f"{signal.Signals(number).name}: saving, then stopping")

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(asked) or (parent > 0 and os.getppid() != parent)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def ending_at_once(command: str) -> Iterator[None]:
    """Where a process of several fails, it ends at once, and the others soon after.

    To leave in an orderly way it would have to wait for the others, who wait for it.

    Args:
      command: the name that messages begin with.
    """
    try:
        yield
    except BaseException as error:
        if not hosts.are_several():
            raise
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else 1
            message = "" if isinstance(error.code, int) else f"{error.code}\n"
        elif isinstance(error, jax.errors.JaxRuntimeError) and "Gloo" in str(error):
            reason = str(error).splitlines()[0]
            code, message = 1, f"{command}: another process of this run is gone ({reason})\n"
        else:
            code, message = 1, traceback.format_exc()
        sys.stdout.flush()
        sys.stderr.write(message)
        sys.stderr.flush()
        os._exit(code)


@contextlib.contextmanager
def readable_errors(command: str, *others: type[Exception]) -> Iterator[None]:
    """Ends the process with one sentence where something is wrong that a user can mend.

    Args:
      command: the name that the sentence begins with.
      *others: further errors whose message is such a sentence; `ValueError` and `TypeError` while
        a configuration is being read, but not later, when they would hide a fault of ours.
    """
    known: tuple[type[Exception], ...] = (
        workdir.WorkdirError,
        loop.NotFiniteError,
        hosts.DisagreementError,
        *others,
    )
    try:
        yield
    except loop.Interrupted as error:
        announce(f"{error}; the same command goes on from there")
        hosts.leave_together()
        sys.exit(STOPPED)
    except workdir.WorkdirBusy as error:
        print(f"{command}: {error}", file=sys.stderr)
        sys.exit(BUSY)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        sys.exit(f"{command}: can't use{where}: {error.strerror or error}")
    except CheckpointError as error:
        print(f"{command}: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # at once: the threads of the failed write would add tracebacks of their own
    except known as error:
        sys.exit(f"{command}: {error}")
