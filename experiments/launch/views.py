"""The views of a configuration: read from a folder, or made once and kept."""

import pathlib
import sys
from collections.abc import Mapping

from ml_collections import ConfigDict
from tqdm import tqdm

from experiments.launch.mazes import check_mazes
from hvin_jax.tasks.datasets import check_request, make_mazes
from hvin_jax.tasks.doom.view_data import (
    SHARD,
    IncompleteError,
    ViewData,
    load_view_data,
    make_view_data,
)
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import SPLITS
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.devices import usable_cores


def make_views(
    folder: str | pathlib.Path,
    *,
    size: tuple[int, int],
    counts: Mapping[str, int],
    seed: int,
    workers: int,
    shard: int = SHARD,
) -> None:
    """Makes mazes and their views, or goes on making them, with a progress bar.

    Args:
      folder: where to, see `hvin_jax.tasks.doom.view_data`.
      size: rows and columns.
      counts: number of mazes in each split.
      seed: of mazes and looks.
      workers: number of processes.
      shard: mazes in one file.
    """
    law, mechanism = MazeLaw(size), get_mechanism("diffdrive")
    check_request(law=law, mechanism=mechanism, counts=counts, seed=seed, workers=workers)
    with tqdm(
        total=sum(counts.values()), unit=" mazes", desc="views", disable=not sys.stderr.isatty()
    ) as bar:
        make_view_data(
            folder,
            lambda: make_mazes(
                law=law,
                mechanism=mechanism,
                train=counts["train"],
                valid=counts["valid"],
                test=counts["test"],
                seed=seed,
                workers=workers,
            ),
            settings={"size": list(law.size), "mechanism": mechanism.name, **counts},
            seed=seed,
            workers=workers,
            shard=shard,
            progress=bar.update,
        )


def check_views(data: ConfigDict) -> None:
    """Raises for what views can't be: mazes of other mechanisms or densities."""
    if data.mechanism != "diffdrive":
        raise ValueError(
            f"config.data.mechanism is {data.mechanism!r}: in Doom the agent moves by diffdrive"
        )
    if (data.min_decimation, data.max_decimation) != (0.0, 1.0):
        raise ValueError("views are made of mazes with decimation from 0 to 1; leave it so")
    if data.get("families"):
        raise ValueError("views are made of the protocol's mazes; leave config.data.families empty")
    check_mazes(data)


def configured_views(data: ConfigDict, folder: pathlib.Path) -> ViewData:
    """The mazes and views that a configuration asks for; made once and kept.

    Args:
      data: the part `data` of a configuration; `file` is a folder of views.
      folder: where made ones are kept for the next time.

    Returns:
      The data set.
    """
    if data.file:
        return load_view_data(data.file)
    path = folder / f"views-{data.size}-{data.train}-{data.valid}-{data.test}-seed{data.seed}"
    try:
        return load_view_data(path)
    except IncompleteError:
        counts = {split: data[split] for split in SPLITS}
        size = (data.size, data.size)
        make_views(path, size=size, counts=counts, seed=data.seed, workers=usable_cores())
        return load_view_data(path)
