"""Random maps: the protocol's mazes, and families of other kinds, mixed by weights."""

from hvin_jax.tasks.generation.components import largest_components
from hvin_jax.tasks.generation.law import Law, draw_mazes
from hvin_jax.tasks.generation.mazes import MazeLaw, carve
from hvin_jax.tasks.generation.mixture import FAMILIES, SMALLEST, MapLaw, about_families

__all__ = [
    "FAMILIES",
    "SMALLEST",
    "Law",
    "MapLaw",
    "MazeLaw",
    "about_families",
    "carve",
    "draw_mazes",
    "largest_components",
]
