r"""Measures planners on maps of other makers, and on shapes that no family has.

    pip install --no-deps mazelib cython labmaze minigrid gymnasium pygame
    python -m experiments.other_maps --planners=diffdrive,news,moore

None of these maps is used anywhere else. What a package makes that is not installed is left out.
Or measures them on maps of yours, in files of any kind that `hvin plan` reads:

    python -m experiments.other_maps --files=floors/,arena.map --maps=10 --name=floors

Writes NAME.md and its tables into --out.
"""

import functools
import importlib
import itertools
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from absl import flags

import hvin_jax
from experiments.launch.console import say
from experiments.launch.exits import readable_errors, run_main
from hvin_jax.planner import Planner
from hvin_jax.planner_files import load_planner
from hvin_jax.tasks import label_maps
from hvin_jax.tasks.maps.files import read_map, read_maps
from hvin_jax.tasks.maps.own_map import OwnMap
from hvin_jax.tasks.measures import Scores, evaluate, start_states
from hvin_jax.tasks.walls import walled
from hvin_jax.training.results import git_commit

_PLANNERS = flags.DEFINE_list("planners", ["diffdrive", "news", "moore"], "Names or folders.")
_MAPS = flags.DEFINE_integer(
    "maps",
    20,
    "Maps of each kind, where there are so many; with --files, goals on each map.",
    lower_bound=1,
    upper_bound=10_000,
)
_FILES = flags.DEFINE_list("files", [], "Files of maps or folders of them, in place of all others.")
_CELL = flags.DEFINE_integer(
    "cell", 1, "With --files: pixels per cell of images and maps of ROS.", lower_bound=1
)
_THRESHOLD = flags.DEFINE_integer(
    "threshold",
    None,
    "With --files: the level from which pixels of grey images are free.",
    lower_bound=0,
    upper_bound=255,
)
_NAME = flags.DEFINE_string("name", "other_maps", "What the page is called.")
_SEED = flags.DEFINE_integer("seed", 0, "What maps are drawn from.", lower_bound=0)
_OUT = flags.DEFINE_string("out", "results/generality", "Folder to write to.")

Maps = Iterator[np.ndarray]
Rng = np.random.Generator


def main() -> None:
    """Runs the command."""
    with readable_errors("other_maps"):
        planners = [load_planner(name) for name in _PLANNERS.value]
        # Here, because matplotlib takes long to import.
        from hvin_jax.report.page import Page

        page = Page(pathlib.Path(_OUT.value), _NAME.value, made_by="experiments.other_maps")
        header = ["maps", "sizes", "number", "starts", "longest path"]
        table = [[*header, *(f"{planner.name}: SR / OR" for planner in planners)]]
        for name, kind in (_files() or {**_packages(), **_SHAPES}).items():
            rng = np.random.default_rng(_SEED.value)
            maps = [one for _, one in zip(range(_MAPS.value), kind(rng), strict=False)]
            table.append(_row(name, maps, planners))
            say(" | ".join(table[-1]))
        of_images = {"cell": _CELL, "threshold": _THRESHOLD}
        more = "".join(
            f" --{name}={flag.value}" for name, flag in of_images.items() if flag.present
        )
        commit = git_commit(pathlib.Path(hvin_jax.__file__).parent)
        page.text(
            f"`python -m experiments.other_maps --planners={','.join(_PLANNERS.value)} "
            f"--maps={_MAPS.value} --seed={_SEED.value}{more}`, commit {commit}. Rates in % over "
            "all start states, rounded down: at 100.00 none is left. Their number and the longest "
            "path, in actions, are those of the first planner. A map has one goal, drawn at "
            "random; a map in a file has as many, one after another, as the number says."
        )
        page.table(table, "Planners on other maps:", "rates")
        say(str(page.write()))


def _row(name: str, maps: list[np.ndarray], planners: list[Planner]) -> list[str]:
    sizes = sorted({one.shape for one in maps})
    rates, starts, longest = [], 0, 0
    for planner in planners:
        total = Scores.none()
        for number, one in enumerate(maps):
            data = walled(label_maps([one], mechanism=planner.mechanism, seed=number))
            output = planner.policy(data.maze, data.goal)
            total += evaluate(np.asarray(output.logits).argmax(-1).astype(np.uint8), data)
            if planner is planners[0]:
                lengths = data.spl[start_states(data.spl)]
                starts += len(lengths)
                longest = max(longest, int(lengths.max(initial=0)))
        rates.append(" / ".join(map(_percent, (total.success_rate, total.optimality_rate))))
    said = [f"{height}×{width}" for height, width in sizes]
    return [
        name,
        " to ".join(dict.fromkeys([said[0], said[-1]])),
        str(len(maps)),
        f"{starts:,}",
        str(longest),
        *rates,
    ]


def _percent(rate: float) -> str:
    return f"{math.floor(10_000 * rate) / 100:.2f}"


def _files() -> dict[str, Callable[[Rng], Maps]]:
    """Maps of one's own: each again and again, for one goal after another."""
    of_images: dict[str, Any] = {"cell": _CELL.value, "threshold": _THRESHOLD.value}
    maps: list[OwnMap] = []
    for path in map(pathlib.Path, _FILES.value):
        maps += read_maps(path, **of_images) if path.is_dir() else [read_map(path, **of_images)]
    names = [pathlib.Path(own.name).name for own in maps]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two of --files are called {min(twice)}")
    kinds = (functools.partial(_again, own.maze) for own in maps)
    return dict(zip(names, kinds, strict=True))


def _again(maze: np.ndarray, rng: Rng) -> Maps:
    del rng
    return itertools.repeat(maze)


def _packages() -> dict[str, Callable[[Rng], Maps]]:
    """What installed packages make."""
    makers: dict[str, dict[str, Callable[[Rng], Maps]]] = {
        "mazelib": {
            f"mazelib {name}": functools.partial(_mazelib, name)
            for name in ("Prims", "Kruskal", "BinaryTree", "Sidewinder", "Division", "Wilsons",
                         "HuntAndKill", "CellularAutomaton", "DungeonRooms")
        },
        "labmaze": {"labmaze RandomMaze": _labmaze},
        "minigrid": {
            f"minigrid {name}": functools.partial(_minigrid, name)
            for name in ("FourRoomsEnv", "MultiRoomEnv", "CrossingEnv")
        },
    }  # fmt: skip
    found: dict[str, Callable[[Rng], Maps]] = {}
    for package, of_package in makers.items():
        try:
            importlib.import_module(package)
        except ImportError:
            say(f"{package} is not installed: its maps are left out")
            continue
        found |= of_package
    return found


def _mazelib(name: str, rng: Rng) -> Maps:
    maze_type = importlib.import_module("mazelib").Maze
    maker = getattr(importlib.import_module(f"mazelib.generate.{name}"), name)
    while True:
        maze = maze_type(int(rng.integers(2**31)))
        height, width = rng.integers(4, 31, size=2)
        maze.generator = maker(int(height), int(width))
        maze.generate()
        yield 1 - np.asarray(maze.grid, np.uint8)


def _labmaze(rng: Rng) -> Maps:
    labmaze = importlib.import_module("labmaze")
    while True:
        side = 2 * int(rng.integers(7, 30)) + 1
        seed = int(rng.integers(2**31))
        maze = labmaze.RandomMaze(side, side, max_rooms=side // 4, random_seed=seed)
        yield (np.array(maze.entity_layer) != "*").astype(np.uint8)


def _minigrid(name: str, rng: Rng) -> Maps:
    maker = getattr(importlib.import_module("minigrid.envs"), name)
    options = {
        "FourRoomsEnv": {},
        "MultiRoomEnv": {"minNumRooms": 6, "maxNumRooms": 12},
        "CrossingEnv": {
            "size": 25,
            "num_crossings": 8,
            "obstacle_type": importlib.import_module("minigrid.core.world_object").Wall,
        },
    }[name]
    env = maker(**options)
    while True:
        env.reset(seed=int(rng.integers(2**31)))
        cells = [cell is None or cell.type != "wall" for cell in env.unwrapped.grid.grid]
        grid = np.array(cells, np.uint8)
        yield grid.reshape(env.unwrapped.height, env.unwrapped.width)


def _islands(rng: Rng) -> Maps:
    """Smooth noise, above a level: islands and lakes."""
    while True:
        side = int(rng.integers(15, 80))
        row, column = np.indices((side, side))
        total = np.zeros((side, side))
        for octave in (1, 2, 4, 8):
            angle, phase = rng.uniform(0, np.pi, 6), rng.uniform(0, 2 * np.pi, 6)
            way = row[..., None] * np.sin(angle) + column[..., None] * np.cos(angle)
            total += np.sin(octave * way * 6 / side + phase).sum(-1) / octave
        yield (total > np.quantile(total, rng.uniform(0.2, 0.55))).astype(np.uint8)


def _city(rng: Rng) -> Maps:
    """Streets of different widths around houses with yards, no wall around."""
    while True:
        side = int(rng.integers(20, 70))
        maze = np.ones((side, side + 7), np.uint8)
        row = 0
        while row < side:
            height, column = int(rng.integers(3, 9)), 0
            while column < side + 7:
                width = int(rng.integers(3, 9))
                maze[row : row + height, column : column + width] = 0
                maze[row + 1 : row + height - 1, column + 1 : column + width] = rng.random() < 0.4
                column += width + int(rng.integers(1, 3))
            row += height + int(rng.integers(1, 3))
        yield maze


def _comb(rng: Rng) -> Maps:
    """Long teeth, open at one end."""
    while True:
        height, width = rng.integers(9, 60, size=2)
        maze = np.ones((height, width), np.uint8)
        maze[1:, 1::2] = 0
        yield maze if rng.random() < 0.5 else np.ascontiguousarray(maze.T)


def _serpentine(rng: Rng) -> Maps:
    """One lane to and fro over the whole map, up to 101×101."""
    for side in (101, 75, 51, 31, 15):
        for width in (1, 2):
            maze = np.zeros((side, side), np.uint8)
            rows = range(1, side - 1, width + 1)
            for number, row in enumerate(rows):
                maze[row : min(row + width, side - 1), 1:-1] = 1
                if row != rows[-1]:
                    maze[row + width, -2 if number % 2 == 0 else 1] = 1
            yield maze if rng.random() < 0.5 else np.ascontiguousarray(maze.T)


def _checkerboard(rng: Rng) -> Maps:
    """Every other cell is a wall in every other row, or in all, then with some cells freed."""
    while True:
        side = int(rng.integers(9, 60))
        row, column = np.indices((side, side))
        maze = ((row + column) % 2 == 0) if rng.random() < 0.5 else ~((row % 2) & (column % 2) > 0)
        yield (maze | (rng.random((side, side)) < rng.uniform(0.2, 0.5))).astype(np.uint8)


def _corridor(rng: Rng) -> Maps:
    """One row of cells, nothing around it."""
    for length in (2, 3, 5, 20, 101, 200):
        one = np.ones((1, length), np.uint8)
        yield one if rng.random() < 0.5 else np.ascontiguousarray(one.T)


def _open_field(rng: Rng) -> Maps:
    """Nothing but free cells, up to 101×101, no wall around."""
    del rng
    for size in ((101, 101), (9, 60), (60, 9), (2, 2), (33, 33)):
        yield np.ones(size, np.uint8)


def _long(rng: Rng) -> Maps:
    """Noise of 9×60 and 60×9 cells, no wall around."""
    while True:
        size = (9, 60) if rng.random() < 0.5 else (60, 9)
        yield (rng.random(size) > rng.uniform(0.1, 0.4)).astype(np.uint8)


def _hexagons(rng: Rng) -> Maps:
    """A lattice like bricks or honeycombs, with cells missing at random."""
    while True:
        side = int(rng.integers(15, 61))
        row, column = np.indices((side, side))
        wall = (row % 4 == 0) | ((column + 3 * (row // 4 % 2)) % 6 == 0)
        yield (~wall | (rng.random((side, side)) < rng.uniform(0.1, 0.5))).astype(np.uint8)


def _dense_noise(rng: Rng) -> Maps:
    """Noise near the share of walls where what is connected ends, no wall around."""
    while True:
        side = int(rng.integers(15, 102))
        yield (rng.random((side, side)) > rng.uniform(0.36, 0.44)).astype(np.uint8)


_SHAPES: dict[str, Callable[[Rng], Maps]] = {
    "islands": _islands,
    "city blocks": _city,
    "combs": _comb,
    "serpentines": _serpentine,
    "checkerboards": _checkerboard,
    "corridors of one row": _corridor,
    "open fields": _open_field,
    "9×60 of noise": _long,
    "honeycombs": _hexagons,
    "dense noise": _dense_noise,
}


if __name__ == "__main__":
    run_main("other_maps", main)
