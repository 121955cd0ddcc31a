"""`hvin plan`: plans a path on a map of your own with a trained planner."""

import argparse
import dataclasses
import pathlib
import re
import sys
import warnings
from typing import Any

from hvin_jax._extras import MissingExtraError
from hvin_jax._files import check_writable
from hvin_jax.cli._parser import Parser, at_least
from hvin_jax.plan import Plan
from hvin_jax.planner import Planner, UnmeasuredWarning
from hvin_jax.planner_files import load_planner, shipped_planners
from hvin_jax.tasks.maps.files import KINDS, read_array, read_map
from hvin_jax.tasks.maps.own_map import MOST_CELLS, OwnMap
from hvin_jax.tasks.maps.texts import from_text, to_text
from hvin_jax.tasks.mechanisms import MECHANISMS

# What a plan can be drawn to.
_PICTURES = (".png", ".svg", ".pdf", ".jpg")
_ABOUT = """\
Plans a path on a map of your own with a trained planner, draws it and says how it compares with a
shortest one.

A map is a drawing (.txt: # wall, . or a blank free, S start, G goal, 1 to 9 what entering a cell
costs), a map of the MovingAI benchmarks (.map) or of ROS (.yaml), a black-and-white image (.png),
or an array (.npy) or table (.csv) of 0 and 1, 1 for free; - reads a drawing from the standard
input. Of several goals any counts. Costs need a planner that was trained with them."""

_EXAMPLES = """\
examples:
  hvin plan my_maze.txt
  hvin plan plan.png --cell=8 --start=1,1 --goal=9,14,E --out=path.png
  hvin plan my_maze.txt --planner=runs/quickstart
  hvin plan my_maze.txt --mechanism=news
  printf '#####\\n#S.G#\\n#####\\n' | hvin plan - --out=

exit code: 0 if the planner reaches the goal, 1 if not, 2 after a mistake"""


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser: Parser = commands.add_parser(
        "plan", help="plan a path on a map of your own", description=_ABOUT, epilog=_EXAMPLES
    )
    parser.add_argument("map", metavar="MAP", nargs="?", help=f"The map: {', '.join(KINDS)} or -.")
    parser.add_argument("--map", dest="map_option", help=argparse.SUPPRESS)  # as it was once given
    parser.add_argument(
        "--start", metavar="R,C[,O]", help="Row and column from 0 on, by default S of the drawing."
    )
    parser.add_argument(
        "--goal",
        metavar="R,C[,O]",
        help="The same for the goal, by default G. Without an orientation (N, E, W, S), the best.",
    )
    parser.add_argument(
        "--planner",
        metavar="NAME",
        help="Folder of a run or planner, or the name of one that comes with the package: "
        f"{', '.join(shipped_planners())}; by default, of these the one for the mechanism.",
    )
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        type=_mechanism,
        help="How the agent moves: forward and turns (diffdrive, the default), to 4 neighbours "
        "(news) or to 8 (moore). Without --planner.",
    )
    parser.add_argument(
        "--cell",
        metavar="N",
        type=at_least(1),
        default=1,
        help="For images and maps of ROS: how many pixels wide a cell is, by default 1.",
    )
    parser.add_argument(
        "--threshold",
        metavar="LEVEL",
        type=at_least(0),
        help="For images in grey: pixels from this level on, 0 to 255, are free, and cells all of "
        "whose pixels are.",
    )
    parser.add_argument(
        "--cost",
        metavar="FILE",
        help="What it costs to enter each cell: an array of numbers (.npy) of the map's shape.",
    )
    parser.add_argument(
        "--out", default="plan.png", help="Picture to write, *.png or *.svg; '' for none."
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(arguments: argparse.Namespace) -> int:
    own_map = _read(arguments)
    if arguments.cost:
        own_map = dataclasses.replace(own_map, cost=read_array(arguments.cost))
    if arguments.out:
        if pathlib.Path(arguments.out).suffix.lower() not in _PICTURES:
            raise ValueError(f"--out={arguments.out} does not end in {' or '.join(_PICTURES)}")
        check_writable(arguments.out)
    planner = _planner(arguments, own_map)
    start = _state("start", arguments.start, own_map.start)
    several = arguments.goal is None and len(own_map.goals) > 1
    goal = own_map.goals if several else _state("goal", arguments.goal, own_map.goal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmeasuredWarning)
        plan: Plan = planner.plan(own_map.maze, goal, start, cost=own_map.cost)
    if caution := planner.caution(own_map.maze.shape):
        print(f"{arguments.parser.prog}: {caution}", file=sys.stderr)
    shown = OwnMap(own_map.maze, plan.start[:2], plan.goal[:2], own_map.cost)
    print(to_text(shown, path=None if plan.shortest is None else plan.path))
    print(f"{planner.name}: {plan.summary()}")
    if arguments.out:
        _draw(plan, own_map, planner, arguments.out)
    return 0 if plan.reached else 1


def _mechanism(name: str) -> str:
    """A type of arguments: the name of a mechanism that has planners in the package."""
    if name not in MECHANISMS:
        raise argparse.ArgumentTypeError(
            f"{name[:40]!r} is none of {', '.join(sorted(MECHANISMS))}; a mechanism of your own "
            "comes with the planner that was trained for it, by --planner"
        )
    return name


def _planner(arguments: argparse.Namespace, own_map: OwnMap) -> Planner:
    if not arguments.planner:
        return load_planner(size=own_map.maze.shape, mechanism=arguments.mechanism)
    planner = load_planner(arguments.planner)
    if arguments.mechanism not in (None, planner.mechanism.name):
        raise ValueError(
            f"--planner={arguments.planner} is for {planner.mechanism.name}, not for "
            f"--mechanism={arguments.mechanism}"
        )
    return planner


def _read(arguments: argparse.Namespace) -> OwnMap:
    given = [x for x in (arguments.map, arguments.map_option) if x is not None]
    if len(given) != 1:
        raise ValueError("say which MAP to plan on, one at a time, see hvin plan --help")
    if given[0] == "-":
        text = sys.stdin.read(MOST_CELLS + 1)
        if any("\ud800" <= character <= "\udfff" for character in text):  # as undecoded bytes are
            raise ValueError("the standard input is not a text in UTF-8, as a drawing is")
        return from_text(text)
    return read_map(given[0], cell=arguments.cell, threshold=arguments.threshold)


def _state(name: str, text: str | None, drawn: tuple[int, int] | None) -> tuple[int | str, ...]:
    """A state as `Planner.plan` takes it, which also checks it."""
    if text is not None:
        parts = text.replace(" ", "").split(",")
        numbers = re.compile(r"-?[0-9]{1,20}")
        return tuple(int(part) if numbers.fullmatch(part) else part for part in parts)
    if drawn is None:
        raise ValueError(
            f"the map has no {name[0].upper()}: say where the {name} is by --{name}=ROW,COLUMN"
        )
    return drawn


def _draw(plan: Plan, own_map: OwnMap, planner: Planner, out: str) -> None:
    try:
        from hvin_jax.report.plans import plan_figure
        from hvin_jax.tasks.drawing import save_figure
    except MissingExtraError as error:
        print(f"no picture was drawn, since {error}")
        return
    figure = plan_figure(plan, own_map.maze, mechanism=planner.mechanism, cost=own_map.cost)
    save_figure(figure, out)
    print(out)
