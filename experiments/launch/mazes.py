"""The mazes of a configuration: read from a file, or made once and kept."""

import pathlib
import sys

from ml_collections import ConfigDict
from tqdm import tqdm

from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maze_data import MazeSplits
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
