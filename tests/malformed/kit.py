"""Sound files of every kind, small ones, for cases to damage."""

import json
import pathlib
import shutil

import jax
import numpy as np

from hvin_jax._files import write_json
from hvin_jax.models.perception import make_perception
from hvin_jax.planner_files import load_planner, save_planner
from hvin_jax.tasks import MazeLaw, get_mechanism, make_mazes, save_mazes
from hvin_jax.tasks.doom import view_data
from hvin_jax.tasks.doom._compaction import CompactViews
from hvin_jax.visual_planner import save_perception

ROOT = pathlib.Path(__file__).parents[2]
DRAWING = "#######\n#S....#\n#.##..#\n#..#.G#\n#######\n"


def make_kit(folder):
    """Writes a map, a planner, one that sees, mazes, views and a finished run."""
    (folder / "map.txt").write_text(DRAWING)
    save_planner(folder / "planner", load_planner("diffdrive-15"))
    _make_visual(folder / "visual")
    mazes = make_mazes(
        law=MazeLaw((7, 7)), mechanism=get_mechanism("diffdrive"), train=2, valid=1, test=1, seed=0
    )
    save_mazes(folder / "mazes.npz", mazes)
    save_mazes(folder / "baseline.npz", mazes, file_format="npz")
    _make_views(folder / "views", mazes)
    finished = folder / "results/cpu/vin-15-20-seed0"
    finished.mkdir(parents=True)
    for name in ("result.json", "config.json", "metrics.jsonl"):
        shutil.copy(ROOT / "results/cpu/vin-15-20-seed0" / name, finished)
    (folder / "results/paper").mkdir()
    for name in ("cost.json", "first_steps.json"):
        shutil.copy(ROOT / "results/paper" / name, folder / "results/paper")


def _make_visual(folder):
    save_planner(folder / "planner", load_planner("diffdrive-15"))
    settings = {"channels": [2, 2], "features": 2, "hidden": 2}
    views, index = np.zeros((1, 24, 32, 3), np.uint8), np.zeros((1, 3, 3, 4), np.int32)
    params = make_perception(settings).init(jax.random.key(0), views, index)
    save_perception(folder / "perception", settings, params, {})


def _make_views(folder, mazes):
    """Without an engine: of each maze the same view."""
    folder.mkdir()
    save_mazes(folder / "mazes.npz", mazes)
    column, view = np.zeros((1, 24, 3), np.uint8), np.zeros((1, 32), np.uint32)
    part = CompactViews(column, view, np.zeros((7, 7, 4), np.uint32))
    shard = view_data._write_shard(folder, 0, 4 * [part])
    what = {"format": view_data.FORMAT, "version": view_data.VERSION, "seed": 0, "mazes": {}}
    write_json(folder / "views.json", {**what, "total": 4, "shards": [shard]})


def edit_json(path, change):
    """Lets a function change the content of a JSON file in place."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
