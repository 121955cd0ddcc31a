"""The 3D task: mazes as Doom levels, seen and walked through in the ViZDoom engine.

Importing it needs nothing but numpy; starting an `Engine` needs the extra `hvin_jax[vizdoom]`.
"""

from hvin_jax._extras import MissingExtraError
from hvin_jax.tasks.doom._compaction import CompactViews, compact, expand
from hvin_jax.tasks.doom.camera import DIRECTIONS, VIEW_SHAPE, maze_views
from hvin_jax.tasks.doom.engine import Engine, EngineError, Pose
from hvin_jax.tasks.doom.levels import LOOKS, Look, draw_looks, write_levels
from hvin_jax.tasks.doom.rendering import render_mazes
from hvin_jax.tasks.doom.view_data import IncompleteError, ViewData, load_view_data, make_view_data
from hvin_jax.tasks.doom.walking import Walk, walk

__all__ = [
    "DIRECTIONS",
    "LOOKS",
    "VIEW_SHAPE",
    "CompactViews",
    "Engine",
    "EngineError",
    "IncompleteError",
    "Look",
    "MissingExtraError",
    "Pose",
    "ViewData",
    "Walk",
    "compact",
    "draw_looks",
    "expand",
    "load_view_data",
    "make_view_data",
    "maze_views",
    "render_mazes",
    "walk",
    "write_levels",
]
