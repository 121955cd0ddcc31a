"""`hvin mazes`: makes a data set of mazes with shortest paths and optimal actions."""

import argparse
import contextlib
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from hvin_jax._files import check_writable, new_folder
from hvin_jax.cli._parser import Parser, at_least
from hvin_jax.tasks.datasets import check_request, make_mazes
from hvin_jax.tasks.files import save_mazes
from hvin_jax.tasks.generation import Law, MapLaw, MazeLaw, about_families
from hvin_jax.tasks.mechanisms import MECHANISMS, get_mechanism

_ABOUT = """\
Makes a data set of distinct mazes with shortest paths and optimal actions.

What the arrays in the file mean: hvin_jax/tasks/files.py. Read it: hvin_jax.tasks.load_mazes."""

_EXAMPLES = """\
The paper's data sets (25,000 / 5,000 / 5,000 mazes, differential drive):
  hvin mazes --size=15 --out=data/mazes15.npz
  hvin mazes --size=25 --out=data/mazes25.npz

Other mazes, in the format that the baseline code reads, with a picture of a few of them:
  hvin mazes --size=9x21 --mechanism=news --train=5000 --valid=1000 --test=1000 --seed=7 \\
      --format=npz --out=data/news.npz --preview=data/news.png

Maps of other kinds, mixed by weights (1 where none is given), a third of them smaller ones:
  hvin mazes --families=caves:2,rooms,fields,bordered:2 --size=25 --out=data/mixed.npz

Families:
"""
_EXAMPLES += "\n".join(f"  {name:15} {about}" for name, about in about_families().items())


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser: Parser = commands.add_parser(
        "mazes", help="make a data set of mazes", description=_ABOUT, epilog=_EXAMPLES
    )
    add = parser.add_argument
    add("--out", required=True, metavar="FILE", help="File to write, by custom *.npz.")
    add("--size", default="15", help="Side of the mazes, or ROWSxCOLUMNS; by default %(default)s.")
    add(
        "--mechanism",
        choices=sorted(MECHANISMS),
        default="diffdrive",
        help="How the agent moves: forward and turns (diffdrive, the default), to 4 neighbours "
        "(news) or to 8 (moore).",
    )
    for split, name, count in (
        ("train", "training", 25000),
        ("valid", "validation", 5000),
        ("test", "test", 5000),
    ):
        add(
            f"--{split}",
            metavar="N",
            type=at_least(0),
            default=count,
            help=f"Number of {name} mazes, by default %(default)s.",
        )
    add(
        "--seed",
        metavar="N",
        type=at_least(0),
        default=0,
        help="The same seed gives the same file, with any number of workers.",
    )
    for name, which, share in (("min", "Lowest", 0.0), ("max", "Highest", 1.0)):
        add(
            f"--{name}_decimation",
            metavar="P",
            type=float,
            default=share,
            help=f"{which} probability that a maze frees a cell, by default %(default)s.",
        )
    add(
        "--families",
        metavar="NAME:WEIGHT,...",
        help="Maps of these families, mixed by weights, in place of the protocol's mazes; they are "
        "listed below.",
    )
    add(
        "--costs",
        metavar="LOW:HIGH",
        default="",
        help="Entering a cell costs a number drawn between these two, such as 1:9.",
    )
    add(
        "--goals",
        metavar="N",
        type=at_least(1),
        default=1,
        help="Goals of a maze, any of which counts; by default %(default)s.",
    )
    add(
        "--any_orientation",
        action="store_true",
        help="It does not matter how the agent faces at a goal.",
    )
    add(
        "--format",
        choices=["compact", "npz"],
        default="compact",
        help="compact (the default): ours, with shortest path lengths and all optimal actions. "
        "npz: arr_0 to arr_8 as the baseline code reads and writes them.",
    )
    add("--preview", metavar="FILE", help="Picture of some of the mazes to write, *.png.")
    add(
        "--workers",
        metavar="N",
        type=at_least(1),
        help="Number of processes that make mazes, by default one for each core.",
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(arguments: argparse.Namespace) -> int:
    law = _law(arguments)
    counts = {split: getattr(arguments, split) for split in ("train", "valid", "test")}
    workers = arguments.workers or _cores()
    check_request(
        law=law,
        mechanism=get_mechanism(arguments.mechanism),
        counts=counts,
        seed=arguments.seed,
        workers=workers,
        costs=parse_costs(arguments.costs),
        goals=arguments.goals,
    )
    if arguments.preview and pathlib.Path(arguments.preview).suffix.lower() != ".png":
        raise ValueError(f"--preview={arguments.preview} does not end in .png")
    files = [path for path in (arguments.out, arguments.preview) if path]
    with contextlib.ExitStack() as stack:
        for path in files:
            stack.enter_context(new_folder(pathlib.Path(path).parent))
            check_writable(path)
        _make(arguments, law, counts, workers)
    return 0


def _law(arguments: argparse.Namespace) -> Law:
    decimation = (arguments.min_decimation, arguments.max_decimation)
    size = parse_size(arguments.size)
    if arguments.families is None:
        return MazeLaw(size, decimation)
    if decimation != (0.0, 1.0):
        raise ValueError("decimation is for the protocol's mazes; leave it out with --families")
    return MapLaw(size, arguments.families)


def _make(arguments: argparse.Namespace, law: Law, counts: dict[str, int], workers: int) -> None:
    if arguments.preview:
        # Before the work, so that a missing package shows now; here, because it takes its time.
        from hvin_jax.tasks.drawing import mazes_figure, save_figure
    began = time.perf_counter()
    with _progress(sum(counts.values())) as progress:
        mazes = make_mazes(
            law=law,
            mechanism=get_mechanism(arguments.mechanism),
            train=counts["train"],
            valid=counts["valid"],
            test=counts["test"],
            seed=arguments.seed,
            costs=parse_costs(arguments.costs),
            goals=arguments.goals,
            any_orientation=arguments.any_orientation,
            workers=workers,
            progress=progress,
        )
    save_mazes(arguments.out, mazes, file_format=arguments.format)
    what = f"{law.size[0]}×{law.size[1]}, {arguments.mechanism}, seed {arguments.seed}"
    if arguments.families:
        what = f"{arguments.families}, {what}"
    print(
        f"{arguments.out}: {' + '.join(map(str, counts.values()))} mazes of {what}, "
        f"{os.path.getsize(arguments.out) / 1e6:.1f} MB in {time.perf_counter() - began:.1f} s"
    )
    if arguments.preview:
        largest = max((mazes.train, mazes.valid, mazes.test), key=len)
        save_figure(mazes_figure(largest[:12], title=what), arguments.preview)
        print(f"{arguments.preview}: {min(12, len(largest))} of them")


def _cores() -> int:
    from hvin_jax.training.devices import usable_cores  # here, since training brings much along

    return usable_cores()


def parse_size(text: str) -> tuple[int, int]:
    """Rows and columns from the option `--size` of the commands that make data."""
    match = re.fullmatch(r"([0-9]{1,20})(?:x([0-9]{1,20}))?", text)
    if not match:
        shown = text if len(text) <= 20 else f"{text[:17]}..."
        raise ValueError(f"--size={shown} is neither a side, such as 15, nor ROWSxCOLUMNS")
    return int(match[1]), int(match[2] or match[1])


def parse_costs(text: str) -> tuple[float, float] | None:
    """The lowest and the highest cost from LOW:HIGH; None of nothing."""
    if not text:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise ValueError(f"costs are {text[:40]!r}, expected LOW:HIGH, such as 1:9") from error
    return low, high


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None] | None]:
    """Shows on a terminal how many of the mazes there are; elsewhere, nothing."""
    if not sys.stderr.isatty():
        yield None
        return
    done, shown = 0, 0.0

    def add(count: int) -> None:
        nonlocal done, shown
        done += count
        if (now := time.monotonic()) - shown > 0.1:
            shown = now
            sys.stderr.write(f"\r{done:,} of {total:,} mazes")
            sys.stderr.flush()

    try:
        yield add
    finally:
        sys.stderr.write("\r\033[K")  # clears the line
        sys.stderr.flush()
