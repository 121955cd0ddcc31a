"""Planners on disk: those of one's own, and those that come with the package.

A planner is a folder of two files:

    planner.json   what it is: mechanism, kind and settings of the model, and a card about its
                   training (configuration, data, scores), and a checksum
    weights.npz    its parameters, see `hvin_jax._saved`; a planner can use those of one beside it

A run also writes `CARD.md` there, the card to read.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hvin_jax._saved import load_folder, save_folder
from hvin_jax.models import make_model
from hvin_jax.planner import Planner, expected_params
from hvin_jax.tasks.mechanisms import MECHANISMS, Mechanism, get_mechanism

# Planners that come with the package, named after their mechanism: the one for all maps by that
# alone, others with the side of the largest maps for them.
SHIPPED = pathlib.Path(__file__).parent / "weights"
# What a planner says of the goals that it was trained for.
_TRAINED_FOR = ("any_orientation", "several_goals")


def save_planner(folder: str | pathlib.Path, planner: Planner) -> None:
    """Writes a planner to a folder; each of its files appears when it is complete."""
    content = {
        "mechanism": planner.mechanism.to_json(),
        "model": planner.settings,
        "card": planner.card,
    }
    for name in _TRAINED_FOR:
        if getattr(planner, name):
            content[name] = True
    save_folder(folder, "planner", planner.params, content)


def load_planner(
    path: str | pathlib.Path | None = None,
    *,
    size: int | Sequence[int] | None = None,
    mechanism: str | Mechanism | None = None,
) -> Planner:
    """Loads a planner of yours, or one that comes with the package.

    Args:
      path: a folder with a `planner.json`, the folder of a training run, or the name of a planner
        that comes with the package; `shipped_planners()` lists those.
      size: without a path, the side of your maps or their (height, width).
      mechanism: without a path, how the agent moves: "diffdrive", which is the default, "news" or
        "moore". The planner is the one that comes with the package for it, and for maps of that
        size if there is none for all of them, see `shipped_planner_for`; its name says which.

    Returns:
      The planner.
    """
    if path is None:
        path = shipped_planner_for(size, mechanism or "diffdrive")
    elif size is not None or mechanism is not None:
        what, value = ("size", size) if mechanism is None else ("mechanism", mechanism)
        raise ValueError(f"both a path, {path}, and a {what}, {value}: a {what} chooses the path")
    folder = planner_folder(path)
    name = folder.name if folder.parent == SHIPPED else str(path)

    def expect(content: dict[str, Any]) -> Any:
        for entry in ("model", "card"):
            if not isinstance(content.get(entry, {}), dict):
                raise ValueError(f"its {entry} is {content[entry]!r}, expected a JSON object")
        model = make_model(**content["model"])
        return expected_params(model, Mechanism.from_json(content["mechanism"]))

    def make(content: dict[str, Any], params: Any) -> Planner:
        return Planner(
            content["model"],
            params,
            Mechanism.from_json(content["mechanism"]),
            content.get("card"),
            name=name,
            **{entry: bool(content.get(entry)) for entry in _TRAINED_FOR},
        )

    return load_folder(folder, "planner", expect, make)


def shipped_planners() -> list[str]:
    """The names of the planners that come with the package."""
    return sorted(x.parent.name for x in SHIPPED.glob("*/planner.json"))


def shipped_planner_for(
    size: int | Sequence[int] | None = None, mechanism: str | Mechanism = "diffdrive"
) -> str:
    """The name of the planner that comes with the package for a mechanism and maps of a size.

    It is the one for all maps, which is called like the mechanism. Where there is none, it is the
    one for the smallest maps that are as large as the size, or for the largest.

    Args:
      size: the side of the maps, or (height, width); None: the largest.
      mechanism: how the agent moves.
    """
    if isinstance(mechanism, Mechanism):
        if MECHANISMS.get(mechanism.name) != mechanism:
            raise ValueError(
                f"{mechanism.name} is a mechanism of your own, and none of the planners that come "
                "with the package is for it; train one, see docs/own_moves.md"
            )
        mechanism = mechanism.name
    get_mechanism(mechanism)
    sides = () if size is None else tuple(np.ravel(size))
    if len(sides) > 2 or not all(isinstance(x, int | np.integer) and x > 0 for x in sides):
        raise ValueError(f"size is {size!r}, expected the side of maps, or their (height, width)")
    names = [name for name in shipped_planners() if name.partition("-")[0] == mechanism]
    if mechanism in names:
        return mechanism
    if not names:
        raise ValueError(
            f"no planner for {mechanism} comes with the package, which has: "
            f"{', '.join(shipped_planners())}; train one, see docs/train.md"
        )
    by_side = {int(name.rpartition("-")[2]): name for name in names}
    needed = max(sides, default=max(by_side))
    return by_side[min((side for side in by_side if side >= needed), default=max(by_side))]


def planner_folder(path: str | pathlib.Path) -> pathlib.Path:
    """The folder with the `planner.json` that `load_planner(path)` reads."""
    for folder in (pathlib.Path(path), pathlib.Path(path) / "planner", SHIPPED / str(path)):
        if (folder / "planner.json").is_file():
            return folder
    raise ValueError(
        f"{path}: no planner there (a folder with planner.json, or one of a training run), and "
        f"none of that name comes with the package, which has: {', '.join(shipped_planners())}"
    )
