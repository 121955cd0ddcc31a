"""The mazes of a configuration: read from a file, or made once and kept."""

import hashlib
import pathlib
import sys

from ml_collections import ConfigDict
from tqdm import tqdm

from hvin_jax._files import new_folder
from hvin_jax.tasks.datasets import check_request, make_mazes
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import Law, MapLaw, MazeLaw
from hvin_jax.tasks.maze_data import SPLITS, MazeSplits
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.training.devices import usable_cores


def check_mazes(data: ConfigDict) -> None:
    """Raises if there can't be such mazes, before anything is begun.

    Args:
      data: the part `data` of a configuration.
    """
    mechanism = get_mechanism(data.mechanism)
    if data.file:
        return
    check_request(
        law=_law(data),
        mechanism=mechanism,
        counts={split: data[split] for split in SPLITS},
        seed=data.seed,
    )
    for split in ("valid", "test"):
        if not data[split]:
            raise ValueError(
                f"config.data.{split} is 0: a run selects its model on valid and measures it on "
                "test mazes"
            )


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
    kind = f"decimation{data.min_decimation:g}to{data.max_decimation:g}"
    if data.get("families"):  # whose names and weights may be too long for a file's
        kind = f"families-{hashlib.sha256(data.families.encode()).hexdigest()[:12]}"
    path = folder / (
        f"{data.mechanism}-{data.size}-{data.train}-{data.valid}-{data.test}-seed{data.seed}"
        f"-{kind}.npz"
    )
    if path.exists():
        return load_mazes(path)
    total = data.train + data.valid + data.test
    with (
        new_folder(folder),
        tqdm(total=total, unit=" mazes", desc="making", disable=not sys.stderr.isatty()) as bar,
    ):
        mazes = make_mazes(
            law=_law(data),
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


def _law(data: ConfigDict) -> Law:
    size, decimation = (data.size, data.size), (data.min_decimation, data.max_decimation)
    if not data.get("families"):  # also in configurations of before there were any
        return MazeLaw(size, decimation)
    if decimation != (0.0, 1.0):
        raise ValueError(
            f"config.data has decimation from {decimation[0]} to {decimation[1]} and families: "
            "decimation is for the protocol's mazes, leave it at 0 to 1"
        )
    return MapLaw(size, data.families)
