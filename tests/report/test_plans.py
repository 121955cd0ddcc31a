"""Pictures of plans say what the planner did, and no more."""

import dataclasses

import numpy as np
import pytest

from hvin_jax.plan import Plan
from hvin_jax.report.plans import plan_figure
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.mechanisms import get_mechanism
from hvin_jax.tasks.rollouts import path_of
from hvin_jax.tasks.shortest_paths import label_mazes

DRIVE = get_mechanism("diffdrive")
OWN = from_text("#####\n#S..#\n#.#.#\n#.#G#\n#####")


@pytest.fixture(scope="module")
def plan():
    """The plan of a planner that makes no mistakes."""
    start, goal = (*OWN.start, 1), (*OWN.goal, 3)
    rng = np.random.default_rng(0)
    data = label_mazes(OWN.maze[None], np.array([goal]), rng, mechanism=DRIVE)
    path = path_of(data.label[0], OWN.maze, start, goal, mechanism=DRIVE)
    values = np.zeros((5, 5, 4), np.float32)
    return Plan(path, True, int(data.spl[0][start]), start, goal, data.label[0], values)


def _figure(plan):
    figure = plan_figure(plan, OWN.maze, mechanism=DRIVE)
    return figure, [axes.get_title() for axes in figure.axes]


def _drawn(figure):
    """How many steps of a path, marks included, are drawn on the maze."""
    return sum(len(collection.get_paths()) for collection in figure.axes[0].collections)


def test_a_path(plan):
    figure, titles = _figure(plan)
    assert figure.get_suptitle() == plan.summary()
    facing = [f"facing {name}" for name in ("north", "east", "west", "south")]
    assert titles == ["path of 5 actions", *facing, ""]
    assert _drawn(figure) == 2 + 4  # a turn is no step
    assert figure.axes[-1].get_ylabel() == "latent value"
    assert "need not rise towards the goal" in figure.get_supxlabel()


def test_no_path_is_drawn_where_there_is_none(plan):
    figure, titles = _figure(dataclasses.replace(plan, reached=False, shortest=None))
    assert figure.get_suptitle() == "there is no path from the start to the goal"
    assert titles[0] == "no path"
    assert _drawn(figure) == 2


def test_a_planner_that_fails(plan):
    _, titles = _figure(dataclasses.replace(plan, reached=False))
    assert titles[0] == "lost after 5 actions"


def test_without_values(plan):
    figure, titles = _figure(dataclasses.replace(plan, values=None))
    assert titles == ["path of 5 actions"]
    assert figure.get_suptitle().replace("\n", " ") == plan.summary()
