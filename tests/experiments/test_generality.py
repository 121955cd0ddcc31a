"""Measuring a planner on maps of many kinds, in this process."""

import json

import jax
import pytest
from absl.testing import flagsaver
from launching import loaded

from hvin_jax import Planner, load_planner, save_planner
from hvin_jax.models import DTVIN, init_params, settings_of
from hvin_jax.report import generality as measuring
from hvin_jax.tasks.mechanisms import get_mechanism


@pytest.fixture(scope="module")
def generality():
    with loaded("generality") as module:
        yield module


@pytest.fixture
def command(generality, tmp_path, monkeypatch, capsys):
    """Runs the command with a planner that was trained on caves; what it prints."""
    motion = get_mechanism("news")
    model = DTVIN(1, 4, depth=3)
    card = {"config": {"data": {"families": "caves:2,bordered", "seed": 4, "size": 9}}}
    params = init_params(model, jax.random.key(0))
    save_planner(tmp_path / "mine/planner", Planner(settings_of(model), params, motion, card))
    monkeypatch.chdir(tmp_path)

    def run(**options):
        given = {"planner": "mine", "sizes": ["7", "9"], "families": ["caves", "spirals"]}
        with flagsaver.flagsaver(**{**given, "maps": 3, **options}):
            generality.main()
        return capsys.readouterr().out.splitlines()

    return run


def test_what_it_writes_and_how_it_goes_on(command, tmp_path, monkeypatch):
    out = tmp_path / "results/generality"
    measured = measuring.measure

    def killed(planner, family, size, **options):
        if (family, size) == ("spirals", 9):
            raise KeyboardInterrupt
        return measured(planner, family, size, **options)

    monkeypatch.setattr(measuring, "measure", killed)
    with pytest.raises(KeyboardInterrupt):
        command()
    monkeypatch.setattr(measuring, "measure", measured)
    before = json.loads((out / "mine.json").read_text())["cells"]
    assert len(before) == 3
    # What is there is not measured again.
    lines = command(card=True)
    assert [line.partition(",")[0] for line in lines] == [
        "caves 7×7",
        "spirals 7×7",
        "caves 9×9",
        "spirals 9×9",
        "results/generality/mine.md",
        "mine/planner/planner.json",
    ]
    cells = json.loads((out / "mine.json").read_text())["cells"]
    assert cells[:3] == before
    for cell in cells:
        assert cell["maps"] == 3
        assert 0 <= cell["optimality_rate"] <= cell["success_rate"] <= 1
        assert sum(row["count"] for row in cell["ranges"]) == cell["starts"] > 0
        assert cell["layers"]["most"] >= cell["layers"]["median"] >= 10
        assert min(cell["seconds_per_map"], cell["search_seconds_per_map"]) > 0
    page = (out / "mine.md").read_text()
    assert "| family | in training | 7×7 | 9×9 |" in page
    assert "\n| caves | yes | " in page
    assert "\n| spirals | no | " in page
    assert (out / "mine-success.png").stat().st_size > 1000
    # The card knows now what was measured, and the planner is still sound.
    found = load_planner("mine")
    assert found.card["measured"]["sizes"] == [7, 9]
    assert found.card["measured"]["by_size"]["9"]["maps"] == 6
    assert "measured on maps of up to 9×9" in found.caution((11, 9))
    # Maps do not depend on what else is measured, nor on the planner's layers.
    again = measuring.measure(found, "spirals", 9, maps=3, seed=1_000_003)
    assert {**again, "seconds_per_map": 0, "search_seconds_per_map": 0} == {
        **cells[3],
        "seconds_per_map": 0,
        "search_seconds_per_map": 0,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"planner": "nobody"}, "nobody: no planner there"),
        ({"families": ["caverns"]}, "unknown family 'caverns'"),
        ({"sizes": ["nine"]}, "--sizes=nine is not a list of whole numbers"),
        ({"sizes": ["6"]}, "families have no maps of 6×6"),
        ({"sizes": ["30000"], "maps": 9999}, "would take"),
        ({"seed": 4}, "--seed=4 gives maps of its training"),
    ],
)
def test_mistakes(command, tmp_path, options, message):
    with pytest.raises(SystemExit) as end:
        command(**options)
    assert message in str(end.value)
    assert not (tmp_path / "results").exists()


def test_numbers_of_another_planner_are_kept(command, tmp_path):
    out = tmp_path / "results/generality"
    out.mkdir(parents=True)
    for text, message in (
        ('{"sha256": "0", "cells": []}', "was measured with another planner: remove it"),
        ("{", "is not sound JSON"),
    ):
        (out / "mine.json").write_text(text)
        with pytest.raises(SystemExit, match=message):
            command()
        assert (out / "mine.json").read_text() == text
