"""Maps of many kinds: the families by name, and the law that mixes them by weights."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hvin_jax.tasks.generation import chambers, corridors, obstacles
from hvin_jax.tasks.generation.components import largest_components
from hvin_jax.tasks.generation.family import Family, Rng, Size
from hvin_jax.tasks.generation.law import check_paths

FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        corridors.protocol,
        corridors.perfect,
        corridors.braided,
        corridors.wide_corridors,
        corridors.thick_walls,
        corridors.spirals,
        corridors.detours,
        chambers.rooms,
        chambers.dungeons,
        chambers.caves,
        chambers.tunnels,
        obstacles.obstacles,
        obstacles.fields,
        obstacles.blocks,
        obstacles.barriers,
        obstacles.slants,
        obstacles.pillars,
        obstacles.bug_traps,
    )
}
# Not a family of its own, but named like one.
BORDERED = "bordered"
# The least side of maps, smaller ones in a border included.
SMALLEST = 7
# The least part of a map that is connected: of its cells, and in cells.
LEAST_SHARE, LEAST_CELLS = 0.05, 3
# So many bordered maps share a size: drawing several at once is faster.
_GROUP = 16


@dataclasses.dataclass(frozen=True)
class MapLaw:
    """Maps of families, mixed by weights.

    Every map ends in walls. A map whose largest connected part (by moves to the four neighbours)
    has less than 5 % of its cells, or fewer than 3, is drawn again. The goal is one of the cells
    of that part, all being equally likely; free cells elsewhere have no path to it, except along
    diagonals (`moore`).

    Attributes:
      size: `(H, W)`, at least 7 each.
      families: names of `FAMILIES` with their weights, such as "caves:2,rooms:1"; a weight of 1 may
        be left out. "bordered" stands for smaller maps, of any size from 7 on, of the others that
        are named (of all, if none is): each lies somewhere in the larger one, with walls around.
    """

    size: Size
    families: str

    def __post_init__(self) -> None:
        height, width = self.size
        if min(self.size) < SMALLEST:
            raise ValueError(
                f"families have no maps of {height}×{width}: both sides must be at least {SMALLEST}"
            )
        check_paths(self.size)
        parse_families(self.families)

    @property
    def about(self) -> str:
        """What maps these are, for messages."""
        return f"maps of {self.families}"

    @property
    def kept(self) -> Mapping[str, Any]:
        """What a data set keeps of the law."""
        return {"families": self.families}

    def draw(self, n: int, *, num_orientations: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        """See `hvin_jax.tasks.draw_mazes`."""
        weights = parse_families(self.families)
        maze = np.empty((n, *self.size), np.uint8)
        for name, place in _dealt(n, weights, rng):
            if name == BORDERED:
                others = {other: w for other, w in weights.items() if other != BORDERED}
                maze[place] = _bordered(
                    len(place), self.size, others or dict.fromkeys(FAMILIES, 1.0), rng
                )
            else:
                maze[place] = _usable(FAMILIES[name], len(place), self.size, rng)
        cell = _any_cell(largest_components(maze), rng)
        orientation = rng.integers(0, num_orientations, size=n)
        goal = np.stack([*np.divmod(cell, self.size[1]), orientation], axis=1)
        return maze, goal.astype(np.int32)


def parse_families(text: str) -> dict[str, float]:
    """The weights by name of a text such as "caves:2,rooms:1".

    Raises:
      ValueError: there is no such family, or a weight is none.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, written = part.partition(":")
        name = name.strip()
        if name not in (*FAMILIES, BORDERED):
            known = ", ".join(sorted((*FAMILIES, BORDERED)))
            raise ValueError(f"unknown family {name[:20]!r}: expected one of {known}")
        if name in weights:
            raise ValueError(f"families has {name} twice, expected each at most once")
        try:
            weights[name] = float(written) if ":" in part else 1.0
        except ValueError:
            weights[name] = math.nan
        if not 0 < weights[name] <= 1e9:
            raise ValueError(
                f"the weight of {name} is {written[:20]!r}, expected a number above 0, such as 2"
            )
    return weights


def about_families() -> dict[str, str]:
    """What each family is, in a line, by name."""
    lines = {name: (family.__doc__ or name).splitlines()[0] for name, family in FAMILIES.items()}
    lines[BORDERED] = (
        "Smaller maps, from 7×7 on, of the other families named, anywhere within walls."
    )
    return lines


def _dealt(n: int, weights: Mapping[str, float], rng: Rng) -> list[tuple[str, np.ndarray]]:
    """Which of `n` maps are of which family."""
    share = np.array([*weights.values()])
    which = rng.choice(len(share), size=n, p=share / share.sum())
    places = [(name, np.flatnonzero(which == i)) for i, name in enumerate(weights)]
    return [(name, place) for name, place in places if len(place)]


def _usable(family: Family, n: int, size: Size, rng: Rng) -> np.ndarray:
    """Maps of a family that have a part to plan in."""
    maze = np.empty((n, *size), np.uint8)
    least = max(LEAST_CELLS, LEAST_SHARE * size[0] * size[1])
    todo = np.arange(n)
    while len(todo):
        maze[todo] = family(len(todo), size, rng)
        todo = todo[largest_components(maze[todo]).sum(axis=(1, 2)) < least]
    return maze


def _bordered(n: int, size: Size, weights: Mapping[str, float], rng: Rng) -> np.ndarray:
    """Maps that are smaller than the size, in walls."""
    maze = np.zeros((n, *size), np.uint8)
    for start in range(0, n, _GROUP):
        group = maze[start : start + _GROUP]
        inner = tuple(rng.integers(SMALLEST, np.array(size) + 1).tolist())
        room = np.array(size) - inner + 1
        for name, place in _dealt(len(group), weights, rng):
            maps = _usable(FAMILIES[name], len(place), inner, rng)
            for index, small in zip(place, maps, strict=True):
                row, column = rng.integers(0, room)
                group[index, row : row + inner[0], column : column + inner[1]] = small
    return maze


def _any_cell(mask: np.ndarray, rng: Rng) -> np.ndarray:
    """One cell of each mask `[n, H, W]`, all being equally likely: flat indices `[n]`."""
    rank = mask.reshape(len(mask), -1).cumsum(axis=1)
    chosen = (rng.random(len(mask)) * rank[:, -1]).astype(int)
    return (rank > chosen[:, None]).argmax(axis=1)
