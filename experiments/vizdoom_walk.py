r"""Lets a trained planner drive the agent through a running Doom engine, from start to goal.

    python -m experiments.vizdoom_walk --out=walk.gif
    python -m experiments.vizdoom_walk --run=runs/vizdoom-cpu-highway_vin-100 --map=my_maze.txt

The level is photographed from every cell, perception makes a map of the views, the planner a policy
of the map, and the agent follows it by real pushes and turns, with collisions. Success is what the
engine says about the agent's place at the end. Mazes are new ones, drawn from --seed, or a drawing
of your own (# wall, . free, S start, G goal, both facing north). Exit code 0 if every goal was
reached, 1 if not. Needs the Doom engine: pip install 'hvin_jax[vizdoom]'.
"""

import pathlib
import sys
import tempfile

import numpy as np
from absl import flags

from experiments.launch.exits import readable_errors, run_main
from hvin_jax.report.walks import Film
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.doom import MissingExtraError, compact, expand
from hvin_jax.tasks.doom.camera import maze_views
from hvin_jax.tasks.doom.engine import Engine, EngineError
from hvin_jax.tasks.doom.levels import Look, draw_looks, write_levels
from hvin_jax.tasks.doom.walking import Walk, walk
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maps.files import read_map
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.measures import farthest_start
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.tasks.shortest_paths import shortest_paths
from hvin_jax.visual_planner import VIEWS, VisualPlanner, load_visual_planner

_RUN = flags.DEFINE_string(
    "run", VIEWS, "Folder of a finished run from views; by default what comes with the package."
)
_MAP = flags.DEFINE_string("map", None, "A drawing with S and G; by default new mazes are drawn.")
_SIZE = flags.DEFINE_integer("size", 15, "Side of new mazes.", lower_bound=5)
_WALKS = flags.DEFINE_integer("walks", 1, "How many new mazes to walk through.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 1, "Of new mazes and of the levels' looks.", lower_bound=0)
_OUT = flags.DEFINE_string("out", "walk.gif", "GIF of the first walk to write; '' for none.")

State = tuple[int, int, int]


def main() -> None:
    """Runs the command."""
    try:
        with readable_errors("vizdoom_walk"):
            reached = _walk_all()
    except (EngineError, MissingExtraError) as error:
        sys.exit(f"vizdoom_walk: {error}")
    sys.exit(0 if reached else 1)


def _walk_all() -> bool:
    if _OUT.value and pathlib.Path(_OUT.value).suffix.lower() != ".gif":
        raise ValueError(f"--out={_OUT.value} does not end in .gif")
    trained = load_visual_planner(_RUN.value)
    tasks = [_own_task(_MAP.value)] if _MAP.value else _new_tasks()
    looks = draw_looks(_SEED.value, len(tasks))
    successes = 0
    for number, ((maze, start, goal), look) in enumerate(zip(tasks, looks, strict=True)):
        out = _OUT.value if number == 0 else ""
        successes += _walk_one(trained, maze, start, goal, look, out).reached
    if len(tasks) > 1:
        print(f"{successes} of {len(tasks)} goals were reached")
    return successes == len(tasks)


def _walk_one(
    trained: VisualPlanner, maze: np.ndarray, start: State, goal: State, look: Look, out: str
) -> Walk:
    with tempfile.TemporaryDirectory() as folder:
        wad = pathlib.Path(folder) / "level.wad"
        (name,) = write_levels(wad, [maze], [look])
        with Engine(wad, first_map=name) as camera:
            seen = compact(maze_views(camera, name, maze.shape))
        decision = trained.decide(expand(seen.columns, seen.views), seen.index, goal)
        predicted = decision.free > 0.5
        film = Film(maze, predicted, goal)
        with Engine(wad, first_map=name, resolution=(320, 240)) as engine:
            walked = walk(
                engine,
                decision.policy,
                start=start,
                goal=goal,
                watch=film if out else lambda _: None,
            )
    mechanism = trained.planner.mechanism
    spl, _ = shortest_paths(maze[None], np.array([goal]), mechanism=mechanism)
    print(_sentence(walked, int(spl[0][start]), int((predicted != (maze != 0)).sum())))
    if out:
        film.save(out)
        print(out)
    return walked


def _sentence(walked: Walk, shortest: int, wrong: int) -> str:
    if walked.reached:
        how = f"reached the goal in {walked.length} actions"
    elif walked.bumped:
        how = f"walked into a wall after {walked.length} actions"
    else:
        how = f"went round in circles after {walked.length} actions"
    best = "there is no path" if shortest == UNREACHABLE else f"a shortest path has {shortest}"
    return f"the agent {how} ({best}); {len(walked.track)} tics, {wrong} cells of the map wrong"


def _own_task(path: str) -> tuple[np.ndarray, State, State]:
    own = read_map(path)
    if own.start is None or own.goal is None:
        raise ValueError(f"{path} has no start S or no goal G")
    # Planners are trained on maps that end in walls.
    maze = np.pad(own.maze, 1)
    start, goal = ((row + 1, column + 1, 0) for row, column in (own.start, own.goal))
    return maze, start, goal


def _new_tasks() -> list[tuple[np.ndarray, State, State]]:
    data = make_mazes(
        law=MazeLaw((_SIZE.value, _SIZE.value)),
        mechanism=get_mechanism("diffdrive"),
        train=0,
        valid=0,
        test=_WALKS.value,
        seed=_SEED.value,
    ).test
    return [
        (maze, farthest_start(spl), (int(goal[0]), int(goal[1]), int(goal[2])))
        for maze, spl, goal in zip(data.maze, data.spl, data.goal, strict=True)
    ]


if __name__ == "__main__":
    run_main("vizdoom_walk", main)
