r"""Turns the finished runs of a study into tables and figures.

    python -m experiments.report --name=depths --scale=cpu
    python -m experiments.report --name=all

Whatever has finished is used; a table says which runs its numbers come from. Writes NAME.md,
NAME*.csv and NAME*.png into results/SCALE/report; what was written into a page by hand stays. Pages
for which planners plan again stay as they are where the weights of one are gone.
"""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict

from experiments.grids.studies import MODELS, NAMES, SCALES, study_jobs
from experiments.launch.console import say
from experiments.launch.exits import integers, readable_errors, run_main
from experiments.launch.mazes import configured_mazes
from hvin_jax._files import read_json
from hvin_jax.planner_files import load_planner
from hvin_jax.report.comparisons import examples_figure, value_maps_figure
from hvin_jax.report.entropy import latent_action_entropy
from hvin_jax.report.figures import spl_figure
from hvin_jax.report.page import Page, depths, finished_groups, provenance
from hvin_jax.report.paper_numbers import TITLES, paper_quantity, paper_rate
from hvin_jax.report.runs import Group, Run, mean_and_std
from hvin_jax.report.tables import spread
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import SPL_RANGES

_NAME = flags.DEFINE_list(
    "name",
    ["all"],
    f"Which of {', '.join((*NAMES, 'cost', 'first_steps', 'dtvin'))}; all: the studies with "
    "finished runs.",
)
_SCALE = flags.DEFINE_enum("scale", "cpu", SCALES, "Full size, or a size for CPUs.")
_SEEDS = flags.DEFINE_list("seeds", ["0", "1", "2"], "Runs of which seeds to use.")
_RESULTS = flags.DEFINE_string("results", "results", "Where the folders of the runs are.")
_DATA_DIR = flags.DEFINE_string("data_dir", "data", "Where mazes are kept once they are made.")


def best_depth(page: Page, groups: Sequence[Group]) -> None:
    """Success rates over SPL: each model at its best depth, and all depths of each model."""
    sizes = sorted({group.size for group in groups})
    best: dict[str, list[Group]] = {}
    every: dict[str, list[Group]] = {}
    for size in sizes:
        of_size = sorted((x for x in groups if x.size == size), key=lambda group: group.depth)
        by_model = {model: [group for group in of_size if group.model == model] for model in MODELS}
        chosen = [max(x, key=lambda group: group.long_path_rate) for x in by_model.values() if x]
        best[f"{size}×{size}, each model at its best depth"] = chosen
        every |= {f"{TITLES[model]}, {size}×{size}": x for model, x in by_model.items() if x}
    page.figure(spl_figure(best, by_model=True), "best depths", "best")
    page.figure(spl_figure(every, by_model=False), "all depths", "all")


def variants(page: Page, groups: Sequence[Group]) -> None:
    """With and without a part of the model: rates by range and curves over SPL."""
    depths(page, groups)
    panels = {
        f"{size}×{size}, N = {depth}": [g for g in groups if (g.size, g.depth) == (size, depth)]
        for size, depth in sorted({(group.size, group.depth) for group in groups})
    }
    page.figure(spl_figure(panels, by_model=False), "with and without", "curves")


def entropy(page: Page, groups: Sequence[Group]) -> None:
    """The entropy of the latent actions, ours and the paper's."""
    table = [["model", "maze", "N", "latent actions", "seeds", "entropy (nats)", "paper"]]
    for group in groups:
        planners = [load_planner(run.folder) for run in group.runs]
        data = test_mazes(group.runs[0], 64)
        value = mean_and_std(latent_action_entropy(planner, data) for planner in planners)
        paper = paper_quantity("latent_action_entropy", group.model, group.size, group.depth)
        table.append(
            [
                TITLES[group.model],
                f"{group.size}×{group.size}",
                str(group.depth),
                str(planners[0].model.latent_actions),
                str(len(planners)),
                spread(value),
                "–" if paper is None else f"{paper:.2f}",
            ]
        )
    page.text(
        "Per state, the entropy of the latent actions that all layers choose, exploration on; "
        "mean over the states of 64 test mazes, ± std over seeds. "
        "The paper's number of latent actions is not known."
    )
    page.table(table, "Entropy:", "table")


def value_maps(page: Page, groups: Sequence[Group]) -> None:
    """Learned value maps of each model, on one maze of each size."""
    for size in sorted({group.size for group in groups}):
        of_size = [group for group in groups if group.size == size]
        data = test_mazes(of_size[0].runs[0], 500)
        planners = {group.label: load_planner(group.runs[0].folder) for group in of_size}
        page.figure(value_maps_figure(planners, data), f"value maps, {size}×{size}", f"{size}")


def examples(page: Page, groups: Sequence[Group]) -> None:
    """Mazes where the highway VIN reaches the goal and the others do not."""
    heroes = [group.label for group in groups if group.model == "highway_vin"]
    if not heroes:
        page.text("These are successes of a highway VIN, and none has finished.")
        return
    data = test_mazes(groups[0].runs[0], 500)
    planners = {group.label: load_planner(group.runs[0].folder) for group in groups}
    page.figure(examples_figure(planners, data, hero=heroes[0]), "examples", "mazes")


def cost(page: Page, measured: Mapping[str, Any]) -> None:
    """Memory and time of full-size training steps, ours and the paper's."""
    header = ["model", "maze", "N", "memory (GB)", "paper (GB)", "step (s)", "compile (s)"]
    table = [[*header, "devices", "commit"]]
    for cell, row in measured.items():
        model, size, depth = cell.split("-")
        paper = paper_quantity("gpu_memory", model, int(size), int(depth))
        table.append(
            [
                TITLES[model],
                f"{size}×{size}",
                depth,
                f"{row['memory_gb']:.2f}",
                "–" if paper is None else f"{paper:.1f}",
                f"{row['step_seconds']:.2f}",
                f"{row['compile_seconds']:.0f}",
                f"{row['device']['count']} {row['device']['platform']}",
                str(row["commit"]),
            ]
        )
    page.text(
        "Training steps of the paper's configurations (batch 32, 100 latent actions or 150 hidden "
        "units). Memory is what the compiler reserves for temporaries, for the whole batch on one "
        "device; the step is split over all devices."
    )
    page.table(table, "Cost of a training step:", "table")


def first_steps(page: Page, measured: Mapping[str, Any]) -> None:
    """How large gradients get in the first full-size steps, and whose parameters stand still."""
    header = ["model", "maze", "N", "latent actions", "largest norm", "stands still from step"]
    cells: dict[tuple[str, int, int, int], list[Any]] = {}
    for name, row in measured.items():
        kind, *numbers, _ = name.split("-")
        side, layers, latent_actions = map(int, numbers)
        cells.setdefault((kind, side, layers, latent_actions), []).append(row)
    table = [[*header, "commit", "paper SR, shortest paths"]]
    for (model, size, depth, actions), rows in sorted(cells.items(), key=lambda item: item[0]):
        (shortest, *_) = SPL_RANGES.get(size, [(0, 0)])
        paper = paper_rate("success_rate", model, size, depth, shortest)
        table.append(
            [
                TITLES[model],
                f"{size}×{size}",
                str(depth),
                str(actions),
                ", ".join(f"{max(row['norms']):.0e}" for row in rows),
                ", ".join(str(row["stands_still_from"] or "–") for row in rows),
                ", ".join(dict.fromkeys(str(row["commit"]) for row in rows)),
                spread(paper),
            ]
        )
    steps = max(len(row["norms"]) for row in measured.values())
    page.text(
        f"The first {steps} steps of the paper's configurations (batch 32, RMSprop, walls in the "
        "loss) when gradients are clipped by the plain norm "
        "(`config.optimizer.plain_norm`), one figure for each seed. A norm above 1.8e19 overflows "
        "there, the clipped gradient is zero, and parameters stay as they are. 3e+38 stands for "
        "all that is beyond float32, however the norm is computed."
    )
    page.table(table, "Norms of gradients in the first steps:", "table")


MEASURED_PAGES: Mapping[str, Callable[[Page, Mapping[str, Any]], None]] = {
    "cost": cost,
    "first_steps": first_steps,
}
PAGES: Mapping[str, Callable[[Page, Sequence[Group]], None]] = {
    "depths": depths,
    "headline": depths,
    "kernels": variants,
    "best_depth": best_depth,
    "filter_gate": variants,
    "ve_modules": variants,
    "parallel_ve": variants,
    "entropy": entropy,
    "value_maps": value_maps,
    "examples": examples,
    "vizdoom": depths,
}
# Pages that show learning curves besides; the others share the runs of these.
WITH_CURVES = (depths, variants)
# Pages for which the planners of all runs plan again.
OF_PLANNERS = (entropy, value_maps, examples)
# Pictures of what planners do: those of the first of the seeds.
OF_ONE_SEED = ("value_maps", "examples")


def test_mazes(run: Run, count: int) -> MazeData:
    """The first test mazes of a run."""
    data = ConfigDict(run.result["config"]["data"])
    return configured_mazes(data, pathlib.Path(_DATA_DIR.value)).test[:count]


def main() -> None:
    """Runs the command."""
    everything = _NAME.value == ["all"]
    with readable_errors("report"):
        seeds = integers("seeds", _SEEDS.value)
        if not _NAME.value:
            raise ValueError("--name is empty, see --help for the names")
        for name in NAMES if everything else _NAME.value:
            if name == "dtvin":
                is_there = _dtvin()
            else:
                is_there = _measured(name) if name in MEASURED_PAGES else _study(name, seeds)
            if not is_there and not everything:
                folder = pathlib.Path(_RESULTS.value) / _SCALE.value
                raise ValueError(f"no run of {name} has finished in {folder}")


def _measured(name: str) -> bool:
    """The page of what `python -m benchmarks.NAME` has measured."""
    path = pathlib.Path(_RESULTS.value) / "paper" / f"{name}.json"
    if not path.exists():
        raise ValueError(f"{path} is missing; python -m benchmarks.{name} makes it")
    measured = read_json(path)
    page = Page(pathlib.Path(_RESULTS.value) / _SCALE.value / "report", name)
    try:
        MEASURED_PAGES[name](page, measured)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path} is not what python -m benchmarks.{name} makes: {error!r}"
        ) from error
    say(str(page.write()))
    return True


def _dtvin() -> bool:
    """The page of the runs that grew from each other, RESULTS/dtvin/MECHANISM-SIZE-seedN."""
    results = pathlib.Path(_RESULTS.value) / "dtvin"
    folders = {x: x.name.partition("-")[0] for x in sorted(results.glob("*-*-seed*"))}
    groups = finished_groups(folders)
    if not groups:
        return False
    page = Page(results / "report", "dtvin")
    depths(page, groups)
    provenance(page, groups)
    say(str(page.write()))
    return True


def _study(name: str, seeds: list[int]) -> bool:
    """The page of a study; whether there is anything to show."""
    if name == "headline" and _SCALE.value == "paper" and _NAME.value == ["all"]:
        return False
    results = pathlib.Path(_RESULTS.value)
    jobs = study_jobs(_SCALE.value, [name], seeds[:1] if name in OF_ONE_SEED else seeds, results)
    groups = finished_groups({job.folder: job.variant for job in jobs})
    if not groups:
        return False
    runs = [run.folder for group in groups for run in group.runs]
    gone = [str(x) for x in runs if not (x / "planner" / "weights.npz").exists()]
    if gone and PAGES[name] in OF_PLANNERS:
        sentence = f"{name}: the weights of {', '.join(gone)} are gone; the page stays as it is"
        if _NAME.value != ["all"]:
            raise ValueError(sentence)
        say(sentence)
        return False
    page = Page(results / _SCALE.value / "report", name)
    PAGES[name](page, groups)
    provenance(page, groups, curves=PAGES[name] in WITH_CURVES)
    say(str(page.write()))
    return True


if __name__ == "__main__":
    run_main("report", main)
