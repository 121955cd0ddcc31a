"""Studies: which cells there are, restarting, no cell twice; reports from stored results."""

import csv
import json
import pathlib

import numpy as np
import pytest
from launching import TINY, copy_commands, run, start
from PIL import Image

from experiments.grids.studies import DEPTHS, NAMES, SCALES, matching, study_jobs
from hvin_jax.report.curves import learning_curves, temperatures_figure
from hvin_jax.report.figures import learning_figure, spl_figure
from hvin_jax.report.page import Page, finished_groups, provenance
from hvin_jax.report.paper_numbers import Rate, paper_quantity, paper_rate
from hvin_jax.report.runs import Group, Run, mean_and_std
from hvin_jax.report.tables import evaluations_table, markdown, rates_table

pytestmark = pytest.mark.processes


def _result(success, *, cell="vin-15-20", steps=4000, collapsed=False):
    kind, size, depth = cell.split("-")[:3]
    ranges = [
        {"low": low, "high": high, "count": 10, "success_rate": x, "optimality_rate": x / 2}
        for (low, high), x in zip([(0, 30), (30, 60), (60, 100)], success, strict=True)
    ]
    return {
        "config": {
            "model": {"kind": kind, "depth": int(depth), "latent_actions": 40, "hidden": 150},
            "data": {"size": int(size)},
        },
        "sittings": [{"first_step": 0, "commit": "abc1234"}],
        "steps": steps,
        "skipped_steps": 7 if collapsed else 0,
        "best_step": 3500,
        "wall_seconds": 1234.0,
        "collapsed": collapsed,
        "test": {
            "ranges": ranges,
            "starts_by_spl": [0, 10, 10, 10],
            "successes_by_spl": [0, *(int(10 * x) for x in success)],
        },
    }


@pytest.fixture
def stored(tmp_path):
    """A folder of results: two seeds of one cell, one of another, an unfinished one."""
    cells = {
        "highway_vin-15-100-seed0": {"success": [1.0, 0.9, 0.8]},
        "highway_vin-15-100-seed1": {"success": [1.0, 0.9, 0.6]},
        "highway_vin-15-100-no_filter-seed0": {"success": [0.5, 0.4, 0.3]},
        "vin-15-20-seed0": {"success": [0.9, 0.5, 0.1]},
        "vin-15-200-seed0": {"success": [0.1, 0.0, 0.0], "steps": 1500, "collapsed": True},
        "vin-15-40-seed0": None,
    }
    for name, came_out in cells.items():
        folder = tmp_path / "results" / "cpu" / name
        folder.mkdir(parents=True)
        if came_out is not None:
            (folder / "result.json").write_text(json.dumps(_result(cell=name, **came_out)))
    return tmp_path


def _report(folder, *names):
    return run("report", f"--name={','.join(names)}", "--results=results", folder=folder)


def test_big_tables(stored):
    code, out, err = _report(stored, "depths")
    assert code == 0, err
    assert out == "results/cpu/report/depths.md\n"
    text = (stored / "results/cpu/report/depths.md").read_text()
    # Mean and standard deviation over two seeds, beside the paper's.
    assert "| Highway VIN | 100 | – | 2 | 100.00 ± 0.00 | 99.93 ± 0.03 | 90.00 ± 0.00 | " in text
    assert "70.00 ± 14.14" in text
    links = ("", "/config.json", "/metrics.jsonl")
    run, config, metrics = (f"(../vin-15-200-seed0{x})" for x in links)
    made = f"| [vin-15-200-seed0]{run} | [json]{config} | [jsonl]{metrics} "
    assert made + "| 40 | 1500 | 7 | 3500 | 21 | abc1234 | yes |" in text
    assert "![learning curves](depths-learning.png)" in text
    assert "vin-15-40" not in text
    with (stored / "results/cpu/report/depths-optimality_rate-15.csv").open() as file:
        rows = {(row["model"], row["N"]): row for row in csv.DictReader(file)}
    assert rows["VIN", "20"]["[1,30]"] == "45.00"


def test_other_mazes(stored):
    """A row for each further evaluation, of the ranges that the test has."""
    folder = stored / "results/cpu/vin-15-20-seed0"
    row = {"low": 30, "high": 60, "count": 9, "success_rate": 0.5, "optimality_rate": None}
    longer = {**row, "low": 100, "high": 117}
    scores = {"data": "a/b.npz:test", "mazes": 3000, "ranges": [{**row, "success_error": 0.02}]}
    (folder / "eval-b-test.json").write_text(json.dumps(scores))
    scores["ranges"] = [{**row, "success_rate": 0.25}, longer]
    scores |= {"data": "c.npz:valid", "layers": "200"}
    (folder / "eval-c-valid-200_layers.json").write_text(json.dumps(scores))
    name = "[vin-15-20-seed0](../vin-15-20-seed0)"
    (run,) = finished_groups({folder: ""})[0].runs
    assert evaluations_table([Group("vin", 15, 20, "", (run,))], 15) == [
        ["run", "mazes", "layers", "SR (30,60]", "OR (30,60]"],
        [name, "3,000 of b.npz:test", "own", "50.00 ± 2.00", "–"],
        [name, "3,000 of c.npz:valid", "200", "25.00", "–"],
    ]
    code, _, err = _report(stored, "depths")
    assert code == 0, err
    text = (stored / "results/cpu/report/depths.md").read_text()
    assert "| 3,000 of b.npz:test | own | 50.00 ± 2.00 | – |" in text
    (folder / "eval-c-valid.json").write_text(json.dumps({"ranges": [{}]}))
    code, _, err = _report(stored, "depths")
    assert code == 1
    assert "eval-c-valid.json is not what --mode=eval writes: KeyError('low')" in err
    assert "Traceback" not in err


def test_figures(stored):
    code, _, err = _report(stored, "best_depth", "filter_gate")
    assert code == 0, err
    for name in ("best_depth-best", "best_depth-all", "filter_gate-curves"):
        with Image.open(stored / f"results/cpu/report/{name}.png") as image:
            assert image.mode == "P"  # a palette: a third of the bytes
            assert np.asarray(image.convert("L")).std() > 5
    assert not list((stored / "results/cpu/report").glob("*.svg"))
    text = (stored / "results/cpu/report/filter_gate.md").read_text()
    assert "| Highway VIN | 100 | no_filter | 1 | 50.00 | – |" in text
    # Learning curves are drawn where the rates are.
    assert not (stored / "results/cpu/report/best_depth-learning.png").exists()


def test_text_written_by_hand_stays(tmp_path):
    """What stands between the marks is made anew; an old page without them is replaced."""
    path = tmp_path / "study.md"

    def write(text):
        page = Page(tmp_path, "study")
        page.text(text)
        page.write()
        return path.read_text()

    path.write_text("# study\n\nA table of old.\n")
    made = write("One.")
    assert made.startswith("# study\n\n<!-- ")
    assert "One." in made
    assert "old" not in made
    path.write_text(made.replace("# study", "# A study\n\nWhy?") + "\nWhat limits it.\n")
    again = write("Two.")
    assert again == path.read_text() == write("Two.")
    assert again.startswith("# A study\n\nWhy?\n\n<!-- ")
    assert again.endswith("-->\n\nWhat limits it.\n")
    assert "Two." in again
    assert "One." not in again


def test_learning_curves(tmp_path):
    """A line for each run, a colour and a line of the legend for each cell; reports stay out."""
    for seed in (0, 1):
        folder = tmp_path / f"seed{seed}"
        folder.mkdir()
        lines = [{"step": 50, "loss": 1.0}, {"step": 60, "success_rate": (1 + seed) / 4}]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    runs = tuple(Run(tmp_path / f"seed{seed}", {}) for seed in (0, 1))
    groups = Group("vin", 15, 20, "", runs), Group("vin", 15, 40, "", runs[:1])
    (axes,) = learning_figure({"VIN": groups}).axes
    drawn = [(*line.get_xdata(), *line.get_ydata()) for line in axes.lines]
    assert drawn == [(60, 0.25), (60, 0.5), (60, 0.25)]
    colours = [tuple(line.get_color()) for line in axes.lines]
    assert colours[0] == colours[1] != colours[2]
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["VIN N = 20", "VIN N = 40"]


def test_the_papers_means_over_ranges(stored):
    """Dashed beside the cells that have them, with one line in the legend."""
    results = stored / "results/cpu"
    cells = [f"highway_vin-15-100{x}-seed0" for x in ("", "-no_filter")] + ["vin-15-20-seed0"]
    variants = dict.fromkeys(cells, "") | {cells[1]: "no_filter"}
    groups = finished_groups({results / cell: variants[cell] for cell in cells})
    (axes,) = spl_figure({"all": groups}, by_model=True).axes
    drawn = [
        (*line.get_xdata(), *line.get_ydata())
        for line in axes.lines
        if line.get_linestyle() == "--"
    ]
    ranges = ((0, 30), (30, 60), (60, 100))
    means = (99.93, 99.52, 98.61), (99.83, 96.48, 63.03)
    expected = [
        (low, high, mean, mean)
        for row in means
        for (low, high), mean in zip(ranges, row, strict=True)
    ]
    assert drawn == expected
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels.count("the paper, by range") == 1


def test_temperatures_of_blocks():
    """A line for each block, and no panel of models that have none."""
    lines = [{"step": 5, "alpha": [1.0, 2.0]}, {"step": 9, "alpha": [0.5, -1.0]}]
    (axes,) = temperatures_figure({"a run": lines}).axes
    blocks = [tuple(line.get_ydata()) for line in axes.lines[:2]]
    assert blocks == [(1.0, 0.5), (2.0, -1.0)]
    assert axes.get_title() == "a run"
    rates = {"success_rate": 0.5, "optimality_rate": 0.25}
    history = [{"step": 4, "loss": 1.0}, *({**line, **rates} for line in lines)]
    assert len(learning_curves(history).axes) == 3
    without = [{name: x for name, x in line.items() if name != "alpha"} for line in history]
    assert len(learning_curves(without).axes) == 2


def test_temperatures_of_the_first_run_that_noted_them(tmp_path):
    folders = {}
    for seed, noted in enumerate([{}, {"alpha": [1.0, 2.0]}, {"alpha": [3.0, 4.0]}]):
        folder = tmp_path / f"runs/highway_vin-15-100-seed{seed}"
        folder.mkdir(parents=True)
        result = _result([1, 1, 1], cell=folder.name)
        (folder / "result.json").write_text(json.dumps(result))
        (folder / "metrics.jsonl").write_text(json.dumps({"step": 5, "loss": 1.0, **noted}) + "\n")
        folders[folder] = ""
    drawn = []
    page = Page(tmp_path / "report", "page")
    page.figure = lambda figure, *_: drawn.append(figure)
    provenance(page, finished_groups(folders))
    (axes,) = drawn[-1].axes
    assert axes.get_title() == "Highway VIN N = 100, 15×15"
    assert [tuple(line.get_ydata()) for line in axes.lines[:2]] == [(1.0,), (2.0,)]


def test_cost(stored):
    row = {"memory_gb": 0.361, "step_seconds": 1.62, "compile_seconds": 7.2, "commit": "abc1234"}
    (stored / "results/paper").mkdir()
    costs = {"highway_vin-25-300": {**row, "device": {"count": 2, "platform": "cpu"}}}
    (stored / "results/paper/cost.json").write_text(json.dumps(costs))
    code, _, err = _report(stored, "cost")
    assert code == 0, err
    text = (stored / "results/cpu/report/cost.md").read_text()
    assert "| Highway VIN | 25×25 | 300 | 0.36 | 15.0 | 1.62 | 7 | 2 cpu | abc1234 |" in text


def test_pages_stay_where_weights_are_gone(stored):
    code, _, err = _report(stored, "entropy")
    folder = "results/cpu/vin-15-200-seed0"
    assert code == 1
    assert err.startswith("report: entropy: the weights of ")
    assert f"{folder}, " in err
    assert err.endswith("are gone; the page stays as it is\n")
    code, out, err = _report(stored, "all")
    assert code == 0, err
    assert "results/cpu/report/depths.md\n" in out
    assert "examples: the weights of results/cpu/vin-15-20-seed0, " in out
    assert not (stored / "results/cpu/report/entropy.md").exists()


def test_nothing_to_report(tmp_path):
    code, _, err = _report(tmp_path, "depths")
    assert code == 1
    assert err == "report: no run of depths has finished in results/cpu\n"
    code, _, err = _report(tmp_path, "dephts")
    assert code == 1
    assert "unknown study 'dephts'" in err


def test_paper_numbers():
    assert paper_rate("success_rate", "highway_vin", 15, 100, (60, 100)) == Rate(98.61, 0.66)
    assert paper_rate("success_rate", "vin", 15, 40, (0, 30), task="3d") == Rate(98.57, 1.54)
    assert paper_rate("success_rate", "vin", 15, 41, (0, 30)) is None
    assert paper_quantity("latent_action_entropy", "highway_vin", 25, 300) == 4.35


def test_best_depth_is_by_all_ranges():
    good, bad = (
        Group("vin", 15, 20, "", (Run(None, _result(rates)),))
        for rates in ([0.9, 0.9, 0.9], [1.0, 0.9, 0.2])
    )
    assert good.long_path_rate == pytest.approx(90.0)
    assert max([bad, good], key=lambda group: group.long_path_rate) is good
    np.testing.assert_allclose(good.curve()[1:], [90, 90, 90])


def test_mean_and_std():
    assert mean_and_std([]) is None
    assert mean_and_std([3.0]) == Rate(3.0, None)
    assert mean_and_std([1.0, 3.0]) == Rate(2.0, pytest.approx(2**0.5))


def test_no_columns_of_the_paper_where_it_has_no_number():
    group = Group("vin", 15, 20, "", (Run(None, _result([0.5, 0.5, 0.5])),))
    own = Group("vin", 15, 20, "own", group.runs)
    header, row = rates_table([own], "success_rate", 15)
    assert header == ["model", "N", "variant", "seeds", "[1,30]", "(30,60]", "(60,100]"]
    assert row == ["VIN", "20", "own", "1", "50.00", "50.00", "50.00"]
    header, _, row = rates_table([group, own], "success_rate", 15)
    assert header[4:6] == ["[1,30]", "paper [1,30]"]
    assert row[4:6] == ["50.00", "–"]


def test_other_sizes_stay_out():
    group = Group("vin", 25, 30, "", (Run(None, _result([1, 1, 1])),))
    assert rates_table([group], "success_rate", 15) == [["model", "N", "variant", "seeds"]]
    assert markdown([["a", "b"], ["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def _titles(scale, name, seeds=(0,)):
    return [job.title for job in study_jobs(scale, [name], seeds, pathlib.Path())]


def test_every_row_of_the_paper_is_run():
    titles = _titles("paper", "depths")
    for size, depths in DEPTHS.items():
        for model in ("vin", "gppn", "highway_network", "highway_vin"):
            for depth in depths:
                paper = paper_rate("success_rate", model, size, depth, (0, 30 * size // 10 - 15))
                assert (f"{model}-{size}-{depth}-seed0" in titles) == (paper is not None)


def test_names_of_runs_are_unique_and_stable():
    assert "highway_vin-15-100-np2-seed1" in _titles("cpu", "parallel_ve", [1])
    jobs = {job.title: job for job in study_jobs("cpu", ["depths"], [0], pathlib.Path("results"))}
    job = jobs["vin-15-20-seed0"]
    assert job.config == "experiments/configs/cpu.py:vin-15-20"
    assert job.folder == pathlib.Path("results/cpu/vin-15-20-seed0")
    for scale in SCALES:
        for name in NAMES:
            if (scale, name) != ("paper", "headline"):
                titles = _titles(scale, name, [0, 1])
                assert len(set(titles)) == len(titles) > 0
    with pytest.raises(ValueError, match="unknown study 'headline' at scale paper"):
        study_jobs("paper", ["headline"], [0], pathlib.Path())


def test_dry_run_says_what_is_left(stored):
    code, out, err = run(
        "study", "--name=depths,filter_gate", "--dry_run", "--results=results", folder=stored
    )
    assert code == 0, err
    lines = [line.split()[:2] for line in out.splitlines()]
    assert ["highway_vin-15-40-seed0", "to"] in lines
    assert lines.count(["highway_vin-15-100-seed0", "finished"]) == 1  # though both have it


def test_runs_are_chosen_by_their_names():
    jobs = study_jobs("cpu", ["entropy"], [0, 1], pathlib.Path())
    chosen = matching(jobs, ["highway_vin-*-seed1", "vin-15-40*"])
    assert [job.title for job in chosen] == [
        "vin-15-40-seed0",
        "vin-15-40-seed1",
        *(f"highway_vin-15-{depth}-seed1" for depth in (40, 100, 200)),
    ]
    with pytest.raises(ValueError, match=r"no run matches 'gppn-\*': they are called vin-15-40"):
        matching(jobs, ["vin-*", "gppn-*"])


def test_nothing_to_run():
    results = pathlib.Path("results")
    with pytest.raises(ValueError, match="no study is named, expected some of depths"):
        study_jobs("cpu", [], [0], results)
    with pytest.raises(ValueError, match="seeds of a sweep"):
        study_jobs("cpu", ["depths"], [-1], results)
    with pytest.raises(ValueError, match="no run is chosen: they are called highway_vin-15-100-"):
        matching(study_jobs("cpu", ["depths"], [0], results), [])


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path):
    schedule, where = "--config.optimizer.schedule=constant", {"folder": tmp_path}

    def train(folder, *arguments):
        code, out, err = run("maze", *TINY, schedule, f"--workdir={folder}", *arguments, **where)
        assert code == 0, err
        return out

    train("short", "--config.train.num_steps=30")
    out = train("long", "--start_from=short")
    assert "resuming after step 30 of 60" in out
    train("whole")
    results = [json.loads((tmp_path / x / "result.json").read_text()) for x in ("long", "whole")]
    assert results[0]["test"] == results[1]["test"]
    metrics = [(tmp_path / x / "metrics.jsonl").read_text() for x in ("long", "whole")]
    assert metrics[0] == metrics[1]
    changes = ("--workdir=x", "--start_from=short", "--config.seed=1")
    code, _, err = run("maze", *TINY, schedule, *changes, **where)
    assert code == 1
    assert "can't start from short: config.seed: 0 there, 1 now" in err


def test_study_runs_resumes_and_shares(tmp_path):
    """A study of two tiny cells: interrupted by its time limit, continued, left to another."""
    copy_commands(tmp_path)
    study = ("study", "--name=value_maps", "--cells=*-15-*", "--results=results")
    where = {"folder": tmp_path, "PYTHONPATH": str(tmp_path)}
    code, out, err = run(*study, "--minutes=0.05", **where)
    assert code == 0, err
    assert "vin-15-20-seed0: to be done" in out
    first = start(*study, **where)
    second, _, second_err = run(*study, **where)
    out, err = first.communicate()
    assert (first.returncode, second) == (0, 0), err + second_err
    for name in ("vin-15-20", "highway_vin-15-100"):
        folder = tmp_path / f"results/cpu/{name}-seed0"
        assert json.loads((folder / "result.json").read_text())["steps"] == 60
    code, out, _ = run(*study, **where)
    assert code == 0
    assert out.count("finished") == 2
