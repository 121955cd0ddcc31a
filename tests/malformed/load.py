"""A command for each reader of files: `python -m tests.malformed.load READER PATH`.

A `ValueError` is its one sentence, as in the commands; everything else is a traceback.
"""

import pathlib
import sys

from hvin_jax import load_planner
from hvin_jax.report.runs import Run
from hvin_jax.tasks import load_mazes
from hvin_jax.tasks.doom.view_data import load_view_data
from hvin_jax.tasks.maps.files import read_map
from hvin_jax.visual_planner import load_perception, load_visual_planner

READERS = {
    "load_planner": load_planner,
    "load_perception": load_perception,
    "load_visual_planner": load_visual_planner,
    "load_mazes": load_mazes,
    "load_view_data": load_view_data,
    "read_map": read_map,
    "Run.load": lambda path: Run.load(pathlib.Path(path)),
}


def main():
    reader, path = sys.argv[1:]
    try:
        READERS[reader](path)
    except ValueError as error:
        sys.exit(f"{reader}: {error}")


if __name__ == "__main__":
    main()
