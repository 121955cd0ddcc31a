r"""Measures a planner on test maps of every family and several sizes, from all start states.

    python -m experiments.generality --planner=diffdrive-25
    python -m experiments.generality --planner=runs/mine --families=caves,rooms --sizes=15,25

Writes NAME.json (all that was measured), NAME.md with tables, CSV files and a figure into --out.
What is in NAME.json already is not measured again, so the same command goes on after an
interruption. With --card, what a card says under "measured" is put into the planner's own.
"""

import itertools
import pathlib
from typing import Any

from absl import flags

import hvin_jax
from experiments.launch.console import say
from experiments.launch.exits import integers, readable_errors, run_main
from hvin_jax._files import read_json, write_json, write_text
from hvin_jax._saved import checksum, flat_params
from hvin_jax.planner import Planner
from hvin_jax.planner_files import load_planner, planner_folder
from hvin_jax.tasks.datasets import check_request
from hvin_jax.tasks.generation import MapLaw, about_families
from hvin_jax.tasks.generation.mixture import parse_families
from hvin_jax.training.results import card_text, git_commit

_PLANNER = flags.DEFINE_string("planner", None, "Name or folder of the planner.", required=True)
_FAMILIES = flags.DEFINE_list("families", [], "Families of maps, by default all.")
_SIZES = flags.DEFINE_list("sizes", ["15", "25", "35", "51", "101"], "Sides of the maps.")
_MAPS = flags.DEFINE_integer(
    "maps",
    0,
    "Maps of each family and size; 0: 200 up to 35, 50 up to 51, 20 beyond.",
    lower_bound=0,
    upper_bound=100_000,
)
_SEED = flags.DEFINE_integer(
    "seed", 1_000_003, "What the maps are drawn from.", lower_bound=0, upper_bound=2**62
)
_OUT = flags.DEFINE_string("out", "results/generality", "Folder to write to.")
_NAME = flags.DEFINE_string("name", "", "What to call it, by default like the planner.")
_CARD = flags.DEFINE_bool("card", False, "Put the summary into the planner's card.")


def main() -> None:
    """Runs the command."""
    with readable_errors("generality"):
        planner = load_planner(_PLANNER.value)
        families = list(parse_families(",".join(_FAMILIES.value or about_families())))
        maps = {size: _MAPS.value or _maps(size) for size in integers("sizes", _SIZES.value)}
        for size, count in maps.items():
            check_request(
                law=MapLaw((size, size), families[0]),
                mechanism=planner.mechanism,
                counts={"test": count},
                seed=_SEED.value,
            )
        # Here, because matplotlib takes long to import.
        from hvin_jax.report import generality
        from hvin_jax.report.arrangements import about_leaks, can_be_listed
        from hvin_jax.report.page import Page

        data = generality.training_data(planner)
        if data.get("seed") == _SEED.value:
            raise ValueError(f"--seed={_SEED.value} gives maps of its training, take another")
        name = _NAME.value or _name_of(_PLANNER.value)
        page = Page(pathlib.Path(_OUT.value), name, made_by="experiments.generality")
        path = pathlib.Path(_OUT.value) / f"{name}.json"
        cells = _measured_before(path, planner)
        for size, family in itertools.product(maps, families):
            if cells.get((family, size), {}).get("maps") != maps[size]:
                cell = generality.measure(planner, family, size, maps=maps[size], seed=_SEED.value)
                cells[family, size] = cell
                write_json(path, {**_of(planner), "cells": list(cells.values())})
                say(_line(cell))
        trained = generality.trained_on(planner)
        shown = [cells[family, size] for family in families for size in maps]
        about = _about(planner, trained)
        generality.write_page(page, shown, trained=trained, about=about)
        say(str(page.write()))
        if _CARD.value:
            measured = generality.summary(shown, seed=_SEED.value, trained=trained)
            if can_be_listed(planner):
                measured["kernels"] = about_leaks(planner)
            _write_card(measured)


def _maps(size: int) -> int:
    """How many maps of a size are measured unless a number is given."""
    return 200 if size <= 35 else 50 if size <= 51 else 20


def _name_of(path: str) -> str:
    """The last part of a path that says anything."""
    parts = [part for part in pathlib.Path(path).parts if part not in ("planner", "/", "..")]
    return parts[-1] if parts else "planner"


def _of(planner: Planner) -> dict[str, Any]:
    """What numbers belong to."""
    return {
        "planner": planner.name,
        "sha256": checksum({"model": planner.settings}, flat_params(planner.params)),
        "mechanism": planner.mechanism.name,
        "seed": _SEED.value,
    }


def _measured_before(path: pathlib.Path, planner: Planner) -> dict[tuple[str, int], Any]:
    if not path.exists():
        return {}
    content, now = read_json(path), _of(planner)
    for key in ("sha256", "seed"):
        if content.get(key) != now[key]:
            raise ValueError(
                f"{path} was measured with another {'planner' if key == 'sha256' else key}: remove "
                "it, or choose another --name"
            )
    try:
        return {(cell["family"], cell["size"]): cell for cell in content["cells"]}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is not what this command writes: {error!r}") from error


def _line(cell: dict[str, Any]) -> str:
    layers = f", {cell['layers']['median']:.0f} layers" if cell["layers"] else ""
    return (
        f"{cell['family']} {cell['size']}×{cell['size']}, {cell['maps']} maps: "
        f"SR {100 * cell['success_rate']:.2f} %, OR {100 * cell['optimality_rate']:.2f} %{layers}, "
        f"{1000 * cell['seconds_per_map']:.1f} ms a map"
    )


def _about(planner: Planner, trained: list[str]) -> str:
    commit = git_commit(pathlib.Path(hvin_jax.__file__).parent)
    return (
        f"`python -m experiments.generality --planner={_PLANNER.value}`, seed {_SEED.value}, "
        f"commit {commit}: {planner!r}, trained on {', '.join(trained)}. Rates are over all start "
        "states of test maps that it has not seen."
    )


def _write_card(measured: dict[str, Any]) -> None:
    path = planner_folder(_PLANNER.value) / "planner.json"
    content = read_json(path)
    card = {**content.get("card", {}), "measured": measured}
    write_json(path, {**content, "card": card})
    if (to_read := path.with_name("CARD.md")).exists():
        write_text(to_read, card_text(card))
    say(str(path))


if __name__ == "__main__":
    run_main("generality", main)
