"""`hvin play`: a page in the browser to draw maps on and watch planners think."""

import argparse
import sys
import webbrowser
from typing import Any

from hvin_jax.cli._parser import Parser, at_least
from hvin_jax.planner_files import shipped_planners

_ABOUT = """\
Opens a page in the browser, served on this machine alone: draw a map, drag start and goal, and
watch planners think, layer by layer, one or two side by side. Ctrl-C ends it."""

_EXAMPLES = """\
examples:
  hvin play
  hvin play --planner=runs/quickstart
  hvin play --planner=runs/vin --planner=runs/highway
  hvin play --port=8080 --no-browser"""

_MOST_PORT = 65535


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser: Parser = commands.add_parser(
        "play", help="watch planners think, in the browser", description=_ABOUT, epilog=_EXAMPLES
    )
    parser.add_argument(
        "--planner",
        metavar="NAME",
        action="append",
        default=[],
        help="Folder of a run or planner to choose from besides those that come with the package, "
        f"or which of these comes first: {', '.join(shipped_planners())}. May be given repeatedly.",
    )
    parser.add_argument(
        "--port", metavar="N", type=at_least(0), default=0, help="By default, any that is free."
    )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="Where to listen. Other than by default, everybody who reaches it may use the page.",
    )
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="Only say where the page is."
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.port > _MOST_PORT:
        raise ValueError(f"--port={arguments.port}: expected {_MOST_PORT} at most")
    from hvin_jax.play.answers import Answers
    from hvin_jax.play.server import PlayServer

    planners = Answers(arguments.planner)
    try:
        server = PlayServer(arguments.host, arguments.port, planners)
    except OSError as error:
        where = f"{arguments.host}, port {arguments.port}"
        raise ValueError(f"can't listen at {where}: {error.strerror or error}") from error
    print(f"{server.address}  (Ctrl-C ends it)", flush=True)
    if arguments.browser and not webbrowser.open(server.address):
        print("no browser was found here: open that address in one", file=sys.stderr)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
    return 0
