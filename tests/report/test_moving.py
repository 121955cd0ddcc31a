"""Films show the same as figures: paths, colours and captions."""

import dataclasses

import numpy as np
import pytest

from hvin_jax.plan import Plan
from hvin_jax.report._map_picture import MapPicture, wrapped
from hvin_jax.report.moving import walk_animation
from hvin_jax.tasks.drawing import GOAL, START
from hvin_jax.tasks.mechanisms import get_mechanism

NEWS = get_mechanism("news")


def _plan(size):
    """A walk along the first row of a map without walls."""
    _, width = size
    path = np.array([(0, column, 0) for column in range(width)])
    policy = np.ones((*size, 1), np.uint8)
    values = np.random.default_rng(0).normal(size=(*size, 1)).astype(np.float32)
    ends = (0, 0, 0), (0, width - 1, 0)
    maze = np.ones(size, np.uint8)
    return Plan(path, True, width - 1, *ends, policy, values, maze=maze, mechanism=NEWS)


def _pixels(frame, colour):
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.asarray(frame.convert("RGB")) == wanted).all(-1).sum())


@pytest.mark.parametrize("size", [(5, 7), (40, 70), (101, 101)])
def test_start_and_goal_keep_colour_and_size(size):
    """Exact colours among those of many values; on large maps more than a few pixels."""
    plan = _plan(size)
    first = walk_animation(dataclasses.replace(plan, path=plan.path[:2])).frames[0]
    assert min(_pixels(first, START), _pixels(first, GOAL)) > 60
    assert max(first.size) < 800


def test_where_there_is_no_path_none_is_walked():
    plan = dataclasses.replace(_plan((5, 7)), reached=False, shortest=None)
    film = walk_animation(plan)
    assert film.text == plan.summary() == "there is no path from the start to the goal"
    assert repr(film) == f"Animation(1 frame: {film.text})"
    empty = dataclasses.replace(plan, path=plan.path[:1])
    assert np.array_equal(film.frames[0], walk_animation(empty).frames[0])


def test_captions_are_wrapped_not_cut():
    text = "the planner reaches the goal in 11 actions, 4 more than the shortest path of 7"
    panel = MapPicture(np.ones((3, 3)), NEWS).finish("")
    lines = wrapped(text, [panel])
    assert len(lines) > 1
    assert " ".join(lines) == text


def test_the_agent_at_the_goal_hides_neither():
    last = walk_animation(_plan((5, 7))).frames[-1]
    assert min(_pixels(last, START), _pixels(last, GOAL)) > 20


def test_one_action():
    plan = _plan((1, 2))
    assert plan.summary() == "the planner reaches the goal in 1 action, as few as possible"
