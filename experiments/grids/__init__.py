"""Grids of runs: what a sweep or a study consists of, and what carries it out."""

from experiments.grids.sweep import Sweep, jobs_of

__all__ = ["Sweep", "jobs_of"]
