"""The command `hvin`: plan on a map of your own, make mazes, a data set of maps, or play.

Each mistake of a user ends it with one sentence and exit code 2.
"""

import os
import signal
import sys
from collections.abc import Sequence

import hvin_jax
from hvin_jax._extras import MissingExtraError
from hvin_jax.cli import label, mazes, plan, play
from hvin_jax.cli._parser import Parser, near_name

__all__ = ["main"]

_ABOUT = """\
Plans paths with highway value iteration networks, and makes mazes to train them on.

  hvin plan my_maze.txt
  hvin mazes --size=15 --out=data/mazes15.npz
  hvin label --maps=floors/ --out=data/floors.npz
  hvin play

hvin plan --help and the like tell more."""


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command, and exits.

    Args:
      argv: the words after `hvin`; by default those that the process was started with.
    """
    parser = Parser(prog="hvin", description=_ABOUT)
    version = f"hvin_jax {hvin_jax.__version__}"
    parser.add_argument(
        "--version", action="version", version=version, help="show the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in (plan, mazes, label, play):
        command.add_parser(commands)
    arguments, unknown = parser.parse_known_args(argv)
    chosen: Parser | None = getattr(arguments, "parser", None)
    if chosen is None:
        if unknown:
            parser.error(_unknown(unknown[0], parser))
        parser.error("say what to do: hvin plan, mazes, label or play, see hvin --help")
    if unknown:
        chosen.error(_unknown(unknown[0], chosen))
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        sys.exit(code)
    except BrokenPipeError:  # whoever read what was printed has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        chosen.error(f"can't use{where}: {error.strerror or error}")
    except (ValueError, MissingExtraError) as error:
        chosen.error(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _unknown(word: str, parser: Parser) -> str:
    if not word.startswith("-"):
        return f"unexpected argument {word!r}: options begin with --, see {parser.prog} --help"
    name = word.partition("=")[0]
    return f"there is no option {name}{near_name(name, parser.options)}"
