"""The tasks to plan in: mazes made, solved, walked, measured, stored and drawn.

Pictures are in `hvin_jax.tasks.drawing` (extra `draw`), the 3D task is in `hvin_jax.tasks.doom`
(extra `vizdoom`); what is exported here needs neither.
"""

from hvin_jax.tasks._npz import MazeFileError
from hvin_jax.tasks.cheapest_paths import cheapest_paths
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.exact_mdp import conv_mdp, tabular_mdp
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import FAMILIES, Law, MapLaw, MazeLaw, draw_mazes
from hvin_jax.tasks.labelling import label_maps, split_mazes
from hvin_jax.tasks.maps.files import read_map
from hvin_jax.tasks.maps.images import from_png, to_png
from hvin_jax.tasks.maps.own_map import OwnMap, from_array
from hvin_jax.tasks.maps.robots import from_ros
from hvin_jax.tasks.maps.texts import from_table, from_text, to_text
from hvin_jax.tasks.maze_data import (
    SPLITS,
    UNREACHABLE,
    MazeData,
    MazeSplits,
    action_sets,
    goal_maps,
)
from hvin_jax.tasks.measures import (
    SPL_RANGES,
    RangeScore,
    Scores,
    evaluate,
    farthest_start,
    one_start,
    start_states,
)
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, get_mechanism, transition_table
from hvin_jax.tasks.rollouts import path_costs, path_lengths, path_of
from hvin_jax.tasks.shortest_paths import label_mazes, shortest_paths
from hvin_jax.tasks.symmetries import Symmetries, symmetries

__all__ = [
    "FAMILIES",
    "MECHANISMS",
    "SPLITS",
    "SPL_RANGES",
    "UNREACHABLE",
    "Law",
    "MapLaw",
    "MazeData",
    "MazeFileError",
    "MazeLaw",
    "MazeSplits",
    "Mechanism",
    "OwnMap",
    "RangeScore",
    "Scores",
    "Symmetries",
    "action_sets",
    "cheapest_paths",
    "conv_mdp",
    "draw_mazes",
    "evaluate",
    "farthest_start",
    "from_array",
    "from_png",
    "from_ros",
    "from_table",
    "from_text",
    "get_mechanism",
    "goal_maps",
    "label_maps",
    "label_mazes",
    "load_mazes",
    "make_mazes",
    "one_start",
    "path_costs",
    "path_lengths",
    "path_of",
    "read_map",
    "save_mazes",
    "shortest_paths",
    "split_mazes",
    "start_states",
    "symmetries",
    "tabular_mdp",
    "to_png",
    "to_text",
    "transition_table",
]
