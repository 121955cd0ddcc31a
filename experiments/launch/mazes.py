"""The mazes of a configuration: read from a file, or made once and kept."""

import hashlib
import pathlib
import sys

from ml_collections import ConfigDict
from tqdm import tqdm

from hvin_jax._files import new_folder
from hvin_jax.cli.mazes import parse_costs
from hvin_jax.tasks.datasets import check_request, make_mazes
from hvin_jax.tasks.files import load_mazes, read_kind, save_mazes
from hvin_jax.tasks.generation import Law, MapLaw, MazeLaw
from hvin_jax.tasks.maze_data import SPLITS, MazeSplits
from hvin_jax.tasks.mechanisms import Mechanism, get_mechanism
from hvin_jax.training.devices import usable_cores


def check_same_moves(path: str, mazes: Mechanism, planner: Mechanism) -> None:
    """Raises if the mazes of a file are for another agent than the planner that is to be tested."""
    if mazes != planner:
        raise ValueError(f"{path} has mazes for {mazes.name}, the planner is for {planner.name}")


def check_mazes(data: ConfigDict) -> None:
    """Raises if there can't be such mazes, before anything is begun.

    Args:
      data: the part `data` of a configuration.
    """
    if data.file:
        return
    check_request(
        law=_law(data),
        mechanism=get_mechanism(data.mechanism),
        counts={split: data[split] for split in SPLITS},
        seed=data.seed,
        costs=parse_costs(data.get("costs", "")),
        goals=1 + data.get("more_goals", 0),
    )
    for split in ("valid", "test"):
        if not data[split]:
            raise ValueError(
                f"config.data.{split} is 0: a run selects its model on valid and measures it on "
                "test mazes"
            )


def settle_data(data: ConfigDict) -> tuple[Mechanism, bool]:
    """How the agent moves in the mazes of a configuration, and whether their cells have costs.

    A file knows both. What it is then stands in the configuration, too, with a checksum: a run does
    not go on with a file that has changed.
    """
    if not data.file:
        return get_mechanism(data.mechanism), bool(data.get("costs"))
    kind = read_kind(data.file)
    with open(data.file, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    with data.unlocked():
        data.update(
            {**kind.counts, "mechanism": kind.mechanism.name, "size": max(kind.size)},
            families="",
            digest=digest,
        )
    return kind.mechanism, kind.has_costs


def configured_mazes(data: ConfigDict, folder: pathlib.Path) -> MazeSplits:
    """The mazes that a configuration asks for.

    Args:
      data: the part `data` of a configuration, see experiments/configs/base.py.
      folder: where made mazes are kept for the next time.

    Returns:
      The mazes.
    """
    if data.file:
        return load_mazes(data.file)
    kind = f"decimation{data.min_decimation:g}to{data.max_decimation:g}"
    if data.get("families"):  # whose names and weights may be too long for a file's
        kind = f"families-{hashlib.sha256(data.families.encode()).hexdigest()[:12]}"
    costs, goals = data.get("costs", ""), 1 + data.get("more_goals", 0)
    any_orientation = data.get("any_orientation", False)
    kind += f"-costs{costs.replace(':', 'to')}" if costs else ""
    kind += f"-goals{goals}" if goals > 1 else ""
    kind += "-any_orientation" if any_orientation else ""
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
            costs=parse_costs(costs),
            goals=goals,
            any_orientation=any_orientation,
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
