"""Families of corridors: mazes of all widths, spirals, detours."""

import functools

import numpy as np

from hvin_jax.tasks.generation.family import Rng, Size, one_by_one
from hvin_jax.tasks.generation.lanes import (
    Plan,
    braid,
    breach,
    draw_grain,
    lay_out,
    serpentine,
    spanning_tree,
    spiral,
    turned,
)
from hvin_jax.tasks.generation.mazes import decimated


def protocol(n: int, size: Size, rng: Rng) -> np.ndarray:
    """The protocol's mazes: carved depth first, cells freed with a probability of 0 to 1."""
    return decimated(n, size=size, decimation=(0.0, 1.0), rng=rng)


@one_by_one
def perfect(size: Size, rng: Rng) -> np.ndarray:
    """Mazes without loops, from long winding corridors to many short dead ends."""
    return lay_out(_tree(rng), size, (1, 1), rng, widen="walls")


@one_by_one
def braided(size: Size, rng: Rng) -> np.ndarray:
    """Mazes with loops: 30 to 100 % of the dead ends are opened."""
    return lay_out(_tree(rng, rng.uniform(0.3, 1)), size, (1, 1), rng, widen="walls")


@one_by_one
def wide_corridors(size: Size, rng: Rng) -> np.ndarray:
    """Mazes with corridors of 2 cells and more, half of them with loops."""
    grain = draw_grain(size, rng, corridors=range(2, 5))
    return lay_out(_tree(rng, _often_none(rng)), size, grain, rng, widen="corridors", loose=True)


@one_by_one
def thick_walls(size: Size, rng: Rng) -> np.ndarray:
    """Mazes with walls of 2 cells and more, corridors of 1 to 3; half of them with loops."""
    grain = draw_grain(size, rng, corridors=range(1, 4), walls=range(2, 6))
    return lay_out(_tree(rng, _often_none(rng)), size, grain, rng, widen="walls", loose=True)


@one_by_one
def spirals(size: Size, rng: Rng) -> np.ndarray:
    """One corridor that winds inwards, 1 to 4 cells wide, walls of 1 to 3; 0 to 2 breaches."""
    grain = draw_grain(size, rng, corridors=range(1, 5), walls=range(1, 4), cells=3)
    breaches = int(rng.integers(0, 3))

    def plan(rows: int, columns: int) -> np.ndarray:
        return breach(spiral(rows, columns), breaches, rng)

    return lay_out(turned(plan, rng), size, grain, rng)


@one_by_one
def detours(size: Size, rng: Rng) -> np.ndarray:
    """Walls across the map with one gap each, mostly at alternate ends; lanes of any width."""
    grain = draw_grain(size, rng, corridors=range(1, 4), walls=range(1, 4))
    plan = turned(functools.partial(serpentine, rng=rng), rng)
    return lay_out(plan, size, grain, rng, loose=True)


def _tree(rng: Rng, loops: float = 0.0) -> Plan:
    newest = rng.random()

    def plan(rows: int, columns: int) -> np.ndarray:
        return braid(spanning_tree(rows, columns, rng, newest=newest), loops, rng)

    return plan


def _often_none(rng: Rng) -> float:
    """Nothing in half of the cases, a share of 0 to 1 in the others."""
    return max(0.0, rng.uniform(-1, 1))
