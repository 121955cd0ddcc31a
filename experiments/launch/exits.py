"""How a command begins and ends: flags, signals, and errors in one sentence."""

import contextlib
import itertools
import os
import pathlib
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import jax
from absl import app, flags, logging

from experiments.launch.console import announce, say
from hvin_jax._files import check_file
from hvin_jax.training import Interrupted, NotFiniteError, WorkdirBusy, WorkdirError, hosts
from hvin_jax.training.checkpoints import CheckpointError

# Exit code of a command whose folder another process is working in ("try again later").
BUSY = os.EX_TEMPFAIL
# Exit codes of a command that was asked to stop and has saved its work.
STOPPED = 128 + signal.SIGTERM
INTERRUPTED = 128 + signal.SIGINT

# What is named by errors in the connection to another process.
_TRANSPORTS = ("Gloo", "CoordinationServiceError")
_last_words = threading.Lock()


def run_main(name: str, main: Callable[[], None]) -> None:
    """Parses the command line and runs a command; mistakes in it are one sentence each."""

    def parse(arguments: list[str]) -> list[str]:
        logging.set_verbosity(logging.ERROR)
        try:
            rest = flags.FLAGS(arguments)
            if "config" in flags.FLAGS:
                # A file that could not be read shows when anything of it is asked for.
                getattr(flags.FLAGS.config, "name", None)
        except Exception as error:  # flags', and whatever reading a configuration file raises
            sys.exit(f"{name}: {_sentence(error)}")
        if len(rest) > 1:
            sys.exit(f"{name}: unexpected argument {rest[1]!r}: flags begin with --, see --help")
        # Libraries print warnings only, unless --verbosity asks for more.
        if not flags.FLAGS["verbosity"].present:
            logging.set_verbosity(logging.WARNING)
        return rest

    app.run(lambda _: main(), flags_parser=parse)


def check_files() -> None:
    """Ends the process if one of its files of flags can't be read, or would be read for ever.

    To be called before a flag `--config` is defined, which reads files of flags already.
    """
    for word, following in itertools.pairwise((*sys.argv, "")):
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in ("config", "flagfile"):
            continue
        path = value if equals else following
        if name == "config":
            path = path.partition(":")[0]
        try:
            if name == "flagfile" or os.path.exists(path):
                check_file(path)
        except ValueError as error:
            sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {error}")


def _sentence(error: Exception) -> str:
    """What is wrong with a command line: of all that its parsers say, the one line that tells."""
    text = str(error).replace("\\n", "\n").replace("\\", "")
    if found := re.search(r'Did you mean "(\S+)" instead of "(\S+)"', text):
        return f"the configuration has no setting {found[2]!r}; did you mean {found[1]}?"
    if found := re.search(r"(No such file|Is a directory)[^']*'([^']+)'", text):
        return f"--config={found[2]}: {found[1].lower()}"
    if found := re.search(r"Field (\S+) not found on dataclass", text):
        return f"the configuration has no setting {found[1]!r}"
    if isinstance(error, SyntaxError):
        return f"--config: {error.msg} in {error.filename}, line {error.lineno}"
    if "get_config() takes 0 positional arguments" in text:
        return "--config: this configuration takes nothing after a colon"
    if "has no attribute 'get_config'" in text:
        return "--config: the file has no function get_config, see experiments/configs"
    if isinstance(error, KeyError | AttributeError):
        return f"the configuration has no setting {text.strip(chr(34))}"
    # Errors in a configuration file may come as a traceback, of which the last line counts.
    raised = [line for line in text.splitlines() if re.match(r"\w*(Error|Exception): ", line)]
    if raised:
        return f"--config: {raised[-1].partition(': ')[2]}"
    if isinstance(error, flags.Error | ValueError | TypeError):
        return text.splitlines()[0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.filename}, line {last.lineno}: {text}"


def integers(flag: str, texts: Sequence[str]) -> list[int]:
    """The numbers of a flag that is a list of them, each once."""
    try:
        numbers = [int(text) for text in texts]
    except ValueError as error:
        raise ValueError(f"--{flag}={','.join(texts)} is not a list of whole numbers") from error
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"--{flag}={','.join(texts)}: expected different numbers")
    return numbers


@contextlib.contextmanager
def stop_signals(parent: int = 0) -> Iterator[Callable[[], bool]]:
    """Turns the first SIGTERM or SIGINT into a stop request; when it is met, the process ends.

    Args:
      parent: if not 0, the process that started this one; its end is such a request, too.
    """
    asked: list[int] = []

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        say(f"{signal.Signals(number).name}: saving, then stopping")

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(asked) or (parent > 0 and os.getppid() != parent)
    except Interrupted as error:
        announce(f"{error}; the same command goes on from there")
        hosts.leave_together()
        sys.exit(INTERRUPTED if signal.SIGINT in asked else STOPPED)
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
        with readable_errors(command), _noticing_loss(command):
            yield
    except BaseException as error:
        if not hosts.are_several():
            raise
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else 1
            message = "" if isinstance(error.code, int) else f"{error.code}\n"
        else:
            code, message = 1, traceback.format_exc()
        _end(message, code)


@contextlib.contextmanager
def _noticing_loss(command: str) -> Iterator[None]:
    try:
        yield
    except (jax.errors.JaxRuntimeError, CheckpointError) as error:
        if hosts.are_several() and any(word in str(error) for word in _TRANSPORTS):
            end_alone(command)
        raise


def end_alone(command: str) -> NoReturn:
    """Ends this process at once because another one of its run is gone."""
    _end(f"{command}: another process of this run is gone, which ends this one; see there\n", 1)


def _end(message: str, code: int) -> NoReturn:
    """Ends this process at once; of several threads that do so, the first one speaks."""
    _last_words.acquire()
    sys.stdout.flush()
    sys.stderr.write(message)
    sys.stderr.flush()
    os._exit(code)


@contextlib.contextmanager
def readable_errors(command: str) -> Iterator[None]:
    """Ends the process with one sentence where something is wrong that a user can mend.

    Args:
      command: the name that the sentence begins with.
    """
    try:
        yield
    except WorkdirBusy as error:
        print(f"{command}: {error}", file=sys.stderr)
        sys.exit(BUSY)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        sys.exit(f"{command}: can't use{where}: {error.strerror or error}")
    except CheckpointError as error:
        print(f"{command}: {error}", file=sys.stderr, flush=True)
        os._exit(1)  # at once: the threads of the failed write would add tracebacks of their own
    except (WorkdirError, NotFiniteError, ValueError, TypeError, ImportError) as error:
        sys.exit(f"{command}: {error}")
