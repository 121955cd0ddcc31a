r"""Plans a path on a map of your own with a trained planner.

    python -m experiments.plan --map=my_maze.txt
    python -m experiments.plan --map=plan.png --cell=8 --start=1,1 --goal=9,14,E --out=path.png

A map is a drawing (`.txt`: # wall, . free, S start, G goal), a black-and-white image (`.png`) or an
array of 0 and 1 (`.npy`). The planner is one that comes with the package, chosen by the size of the
map, or of a run of yours: --planner=runs/quickstart. Exit code 0 if the planner reaches the goal, 1
if not.
"""

import sys

from absl import app, flags

from experiments.console import quiet_libraries
from hvin_jax.planner import Planner, load_planner, shipped_planner_for, shipped_planners
from hvin_jax.report.plans import plan_figure
from hvin_jax.tasks.drawing import save_figure
from hvin_jax.tasks.own_maps import OwnMap, read_map, to_text

_MAP = flags.DEFINE_string("map", None, "The map: .txt, .png or .npy.", required=True)
_CELL = flags.DEFINE_integer("cell", 1, "For images: pixels per cell.", lower_bound=1)
_PLANNER = flags.DEFINE_string(
    "planner",
    None,
    "Folder of a run or planner, or the name of one that comes with the package: "
    f"{', '.join(shipped_planners())}; by default, of these the one for the size of the map.",
)
_START = flags.DEFINE_string(
    "start", None, "ROW,COLUMN or ROW,COLUMN,ORIENTATION; by default S of the drawing."
)
_GOAL = flags.DEFINE_string(
    "goal", None, "The same for the goal, by default G. Without an orientation, the best one."
)
_OUT = flags.DEFINE_string("out", "plan.png", "Picture to write, *.png or *.svg; '' for none.")


def main(argv: list[str]) -> None:
    """Runs the command; mistakes of the user end it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"plan: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    quiet_libraries()
    try:
        reached = _plan()
    except OSError as error:
        sys.exit(f"plan: can't use {error.filename}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"plan: {error}")
    sys.exit(0 if reached else 1)


def _plan() -> bool:
    own_map = read_map(_MAP.value, cell=_CELL.value)
    planner = load_planner(_PLANNER.value or shipped_planner_for(own_map.maze.shape))
    start = _state("start", _START.value, own_map.start, planner)
    goal = _state("goal", _GOAL.value, own_map.goal, planner)
    plan = planner.plan(own_map.maze, goal, start)
    shown = OwnMap(own_map.maze, plan.start[:2], plan.goal[:2])
    print(to_text(shown, path=plan.path))
    print(plan.summary())
    if _OUT.value:
        figure = plan_figure(plan, own_map.maze, mechanism=planner.mechanism)
        save_figure(figure, _OUT.value)
        print(_OUT.value)
    return plan.reached


def _state(
    name: str, text: str | None, drawn: tuple[int, int] | None, planner: Planner
) -> tuple[int, ...]:
    if text is None:
        if drawn is None:
            raise ValueError(
                f"the map has no {name[0].upper()}: say where the {name} is by --{name}=ROW,COLUMN"
            )
        return drawn
    names = planner.mechanism.orientations
    parts = text.replace(" ", "").split(",")
    numbers = [str(names.index(part)) if part in names else part for part in parts]
    if len(numbers) not in (2, 3) or not all(number.lstrip("-").isdigit() for number in numbers):
        raise ValueError(
            f"--{name}={text} is not ROW,COLUMN or ROW,COLUMN,ORIENTATION "
            f"(orientations: {', '.join(names)})"
        )
    return tuple(int(number) for number in numbers)


if __name__ == "__main__":
    app.run(main)
