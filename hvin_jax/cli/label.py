"""`hvin label`: makes a data set of maps of your own."""

import argparse
import pathlib
from typing import Any

import numpy as np

from hvin_jax._files import check_file, check_writable, new_folder, read_json
from hvin_jax.cli._parser import Parser, at_least, near_name
from hvin_jax.tasks._npz import NpzReader
from hvin_jax.tasks.files import save_mazes
from hvin_jax.tasks.labelling import label_maps, split_mazes
from hvin_jax.tasks.maps.files import read_array, read_map, read_maps
from hvin_jax.tasks.maps.own_map import OwnMap
from hvin_jax.tasks.maze_data import MazeSplits
from hvin_jax.tasks.measures import start_states
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, get_mechanism

_ABOUT = """\
Makes a data set of maps of your own: finds shortest (or cheapest) paths and labels every state with
its optimal actions. Training takes it by --config.data.file.

Maps are a folder of drawings (.txt), maps of the MovingAI benchmarks (.map) and of ROS (.yaml),
images (.png), arrays (.npy) and tables (.csv), in the order of their names; one of these; an array
[n, H, W] of 0 and 1 (.npy); or a file of arrays (.npz) with maze [n, H, W] and, if you like, goal
(as --goals has it) and cost [n, H, W]. Goals and costs that are drawn on a map count. Where a map
has no goal, goals are chosen at random."""

_EXAMPLES = """\
examples:
  hvin label --maps=maps.npy --mechanism=news --out=mine.npz
  hvin label --maps=floors/ --per_map=50 --pad --out=mine.npz --preview=mine.png
  hvin label --maps=train/ --valid_maps=valid/ --test_maps=test/ --out=mine.npz
then train on it:
  python -m experiments.maze --config=experiments/configs/quickstart.py \\
      --config.data.file=mine.npz"""

_ARRAYS = ("maze", "goal", "cost")


def add_parser(commands: Any) -> None:
    """Adds the subcommand."""
    parser: Parser = commands.add_parser(
        "label", help="make a data set of your own maps", description=_ABOUT, epilog=_EXAMPLES
    )
    add = parser.add_argument
    add("--maps", required=True, metavar="PATH", help="A folder or a file, see above.")
    add("--out", required=True, metavar="FILE", help="File to write, by custom *.npz.")
    add(
        "--mechanism",
        metavar="NAME",
        default="diffdrive",
        help=f"How the agent moves: {', '.join(sorted(MECHANISMS))}, or a .json file with a "
        "mechanism of your own, see docs/own_moves.md; by default %(default)s.",
    )
    add(
        "--goals",
        metavar="FILE",
        help="Goals, an array [n, 2 or 3] or [n, K, 2 or 3] (.npy): row, column and orientation; "
        "-1: any.",
    )
    add("--costs", metavar="FILE", help="What entering a cell costs, an array [n, H, W] (.npy).")
    add(
        "--per_map",
        metavar="N",
        type=at_least(1),
        default=1,
        help="Goals to draw for each map that has none, by default %(default)s.",
    )
    add(
        "--any_orientation",
        action="store_true",
        help="It does not matter how the agent faces at goals that are drawn.",
    )
    add("--pad", action="store_true", help="Maps may have different sizes.")
    add(
        "--split",
        metavar="T,V,T",
        default="0.8,0.1,0.1",
        help="Shares of maps for training, validation and test, by default %(default)s.",
    )
    for name in ("valid", "test"):
        add(f"--{name}_maps", metavar="PATH", help=f"Maps for {name}, instead of a share.")
    add("--seed", metavar="N", type=at_least(0), default=0, help="Of goals, labels and splits.")
    add("--cell", metavar="N", type=at_least(1), default=1, help="Pixels per cell of images.")
    add("--threshold", metavar="N", type=at_least(0), help="Level from which grey pixels are free.")
    add("--preview", metavar="FILE", help="Picture of some of the maps to write, *.png.")
    parser.set_defaults(run=_run, parser=parser)


def _run(arguments: argparse.Namespace) -> int:
    shares = _shares(arguments.split)
    mechanism = _mechanism(arguments.mechanism)
    others = (arguments.valid_maps, arguments.test_maps)
    if any(others) and not all(others):
        raise ValueError("--valid_maps and --test_maps go together")
    if all(others) and len({pathlib.Path(path).resolve() for path in others}) == 1:
        raise ValueError(
            f"--valid_maps and --test_maps are both {others[0]}: a planner is tested on other maps "
            "than it is chosen by"
        )
    if any(others) and (arguments.goals or arguments.costs):
        raise ValueError("--goals and --costs are for --maps alone; put them into .npz files")
    if arguments.preview and pathlib.Path(arguments.preview).suffix.lower() != ".png":
        raise ValueError(f"--preview={arguments.preview} does not end in .png")
    paths = [arguments.maps, *(path for path in others if path)]
    sets = [_read(path, arguments) for path in paths]
    largest = np.max([one.maze.shape for maps, *_ in sets for one in maps], axis=0)
    data = [
        label_maps(
            maps,
            goals,
            mechanism=mechanism,
            costs=costs,
            per_map=arguments.per_map,
            any_orientation=arguments.any_orientation,
            pad=arguments.pad,
            size=tuple(largest.tolist()) if arguments.pad else None,
            seed=arguments.seed + number,
        )
        for number, (maps, goals, costs) in enumerate(sets)
    ]
    if len(data) == 1:
        mazes = split_mazes(data[0], shares, seed=arguments.seed)
    else:
        train, valid, test = data
        mazes = MazeSplits(train, valid, test)
    for path in (arguments.out, arguments.preview):
        if path:
            with new_folder(pathlib.Path(path).parent):
                check_writable(path)
    save_mazes(arguments.out, mazes)
    counts = [len(part) for part in (mazes.train, mazes.valid, mazes.test)]
    height, width = mazes.train.size
    print(
        f"{arguments.out}: {' + '.join(map(str, counts))} mazes of {height}×{width}, "
        f"{mechanism.name}, longest path {_longest(mazes)} actions"
    )
    if arguments.preview:
        from hvin_jax.tasks.drawing import mazes_figure, save_figure

        save_figure(mazes_figure(mazes.train[:12]), arguments.preview)
        print(arguments.preview)
    return 0


def _longest(mazes: MazeSplits) -> int:
    parts = (mazes.train, mazes.valid, mazes.test)
    return max(int(data.spl[start_states(data.spl)].max(initial=0)) for data in parts)


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ValueError(f"--split={text[:40]} is not three numbers, such as 8,1,1") from error


def _mechanism(name: str) -> Mechanism:
    if pathlib.Path(name).suffix != ".json":
        return get_mechanism(name)
    try:
        return Mechanism.from_json(read_json(name))
    except ValueError as error:
        raise ValueError(f"{name}: {error}".replace(f"{name}: {name}", name)) from error


def _read(path: str, arguments: argparse.Namespace) -> tuple[list[OwnMap], Any, Any]:
    """Maps, goals and costs; the latter two None where there are none."""
    place = pathlib.Path(path)
    goals: Any = None if arguments.goals is None else read_array(arguments.goals)
    costs = None if arguments.costs is None else read_array(arguments.costs)
    of_images = {"cell": arguments.cell, "threshold": arguments.threshold}
    if place.is_dir():
        return read_maps(place, **of_images), goals, costs
    check_file(place)
    if place.suffix == ".npz":
        arrays = _arrays(place)
        goals = arrays.get("goal") if goals is None else goals
        costs = arrays.get("cost") if costs is None else costs
        return _each(arrays["maze"], path), goals, costs
    if place.suffix == ".npy":
        return _each(read_array(place), path), goals, costs
    return [read_map(place, **of_images)], goals, costs


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """What a `.npz` file has of maps, goals and costs; maps at least, and nothing else."""
    with NpzReader(path) as reader:
        for name in sorted(reader.names.difference(_ARRAYS)):
            raise reader.fail(name, f"is none of {', '.join(_ARRAYS)}{near_name(name, _ARRAYS)}")
        return {name: reader.read(name) for name in _ARRAYS if name in reader.names | {"maze"}}


def _each(maze: np.ndarray, path: str) -> list[OwnMap]:
    if maze.ndim == 2:
        maze = maze[None]
    if maze.ndim != 3 or not len(maze):
        raise ValueError(f"{path} has shape {maze.shape}, expected one map or more, [n, H, W]")
    return [_named(one, f"map {number} of {path}") for number, one in enumerate(maze)]


def _named(maze: np.ndarray, name: str) -> OwnMap:
    try:
        return OwnMap(maze, name=name)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
