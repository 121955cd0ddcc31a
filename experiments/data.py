"""The mazes and views of a configuration: read from a file, or made once and kept."""

import pathlib
import sys
from collections.abc import Mapping

from ml_collections import ConfigDict
from tqdm import tqdm

from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.doom.view_data import (
    SHARD,
    IncompleteError,
    ViewData,
    load_view_data,
    make_view_data,
)
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import SPLITS, MazeSplits
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.devices import usable_cores


def configured_mazes(data: ConfigDict, folder: pathlib.Path) -> MazeSplits:
    """The mazes that a configuration asks for.

    Args:
      data: the part `data` of a configuration, see experiments/configs/base.py.
      folder: where made mazes are kept for the next time.

    Returns:
      The mazes.
    """
    if data.file:
        mazes = load_mazes(data.file)
        if mazes.mechanism.name != data.mechanism:
            raise ValueError(
                f"{data.file} has mazes for {mazes.mechanism.name}, but config.data.mechanism is "
                f"{data.mechanism}"
            )
        return mazes
    path = folder / (
        f"{data.mechanism}-{data.size}-{data.train}-{data.valid}-{data.test}-seed{data.seed}"
        f"-decimation{data.min_decimation:g}to{data.max_decimation:g}.npz"
    )
    if path.exists():
        return load_mazes(path)
    law = MazeLaw((data.size, data.size), (data.min_decimation, data.max_decimation))
    total = data.train + data.valid + data.test
    folder.mkdir(parents=True, exist_ok=True)
    with tqdm(total=total, unit=" mazes", desc="making", disable=not sys.stderr.isatty()) as bar:
        mazes = make_mazes(
            law=law,
            mechanism=get_mechanism(data.mechanism),
            train=data.train,
            valid=data.valid,
            test=data.test,
            seed=data.seed,
            workers=usable_cores(),
            progress=bar.update,
        )
    save_mazes(path, mazes)
    return mazes


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


def configured_views(data: ConfigDict, folder: pathlib.Path) -> ViewData:
    """The mazes and views that a configuration asks for; made once and kept.

    Args:
      data: the part `data` of a configuration; `file` is a folder of views.
      folder: where made ones are kept for the next time.

    Returns:
      The data set.
    """
    if data.mechanism != "diffdrive":
        raise ValueError(
            f"config.data.mechanism is {data.mechanism!r}: in Doom the agent moves by diffdrive"
        )
    if (data.min_decimation, data.max_decimation) != (0.0, 1.0):
        raise ValueError("views are made of mazes with decimation from 0 to 1; leave it so")
    if data.file:
        return load_view_data(data.file)
    path = folder / f"views-{data.size}-{data.train}-{data.valid}-{data.test}-seed{data.seed}"
    try:
        return load_view_data(path)
    except IncompleteError:
        counts = {split: data[split] for split in SPLITS}
        workers = usable_cores()
        make_views(
            path, size=(data.size, data.size), counts=counts, seed=data.seed, workers=workers
        )
        return load_view_data(path)
