import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from hvin_jax.tasks import _shapes, drawing
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.maps.texts import from_text
from hvin_jax.tasks.mechanisms import MECHANISMS

WALL, FREE = np.array(to_rgb("#2b3440")), np.array(to_rgb("#faf8f3"))


def _render(figure):
    """The picture and a function that gives the colour at (row, column) of some axes."""
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255

    def colour(axes, row, column):
        x, y = axes.transData.transform((column, row))
        return picture[picture.shape[0] - 1 - round(y), round(x)]

    return colour


def _near(first, second, tolerance=0.02):
    return bool(np.abs(np.asarray(first) - second).max() < tolerance)


@pytest.fixture
def figure():

    result = Figure(figsize=(4, 4))
    FigureCanvasAgg(result)
    return result


@pytest.fixture
def own():
    return from_text("#####\n#S..#\n#.#.#\n#.#G#\n#####")


def test_a_maze_with_a_path(figure, own):
    axes = figure.add_subplot()
    path = np.array([[1, 1], [1, 2], [1, 3], [2, 3], [3, 3]])
    drawing.draw_maze(axes, own.maze, start=own.start, goal=own.goal, path=path)
    colour = _render(figure)
    for row in range(5):
        for column in range(5):
            marked = [row, column] in path.tolist()
            expected = WALL if own.maze[row, column] == 0 else FREE
            assert _near(colour(axes, row, column), expected) != marked
    green, red = colour(axes, 1, 1), colour(axes, 3, 3)
    assert green.argmax() == 1
    assert red.argmax() == 0
    # The path is narrower than a cell and gets brighter on its way.
    assert _near(colour(axes, 1.35, 2), FREE)
    assert colour(axes, 2, 3).sum() > colour(axes, 1, 2).sum()


def test_values_and_arrows(figure, own):
    axes = figure.add_subplot()
    values = np.linspace(0, 1, 25).reshape(5, 5)
    values[1, 2] = np.nan
    drawing.draw_values(axes, values, own.maze)
    colour = _render(figure)
    assert _near(colour(axes, 2, 2), WALL)
    assert _near(colour(axes, 1, 2), FREE)
    assert colour(axes, 3, 3).sum() > colour(axes, 1, 1).sum()
    # Arrows to the south at all cells: white in the middle and below, not at the sides.
    policy = np.full((5, 5, 1), 3)
    drawing.draw_policy(axes, policy, own.maze, mechanism=MECHANISMS["news"])
    colour = _render(figure)
    for row, column in ((1, 1), (3, 3), (1, 3)):
        assert colour(axes, row, column).min() > 0.85
        assert colour(axes, row + 0.2, column).min() > 0.85
        assert colour(axes, row, column + 0.3).min() < 0.85
    assert _near(colour(axes, 2, 2), WALL)


def test_signs_point_where_they_should():
    tip = _shapes.arrow(1.0)[0]
    assert tip.tolist() == [0, -0.5]
    for towards, expected in (((-1, 0), (0, -0.5)), ((0, 1), (0.5, 0)), ((1, 0), (0, 0.5))):
        assert _shapes.turned(_shapes.arrow(1.0), towards)[0] == pytest.approx(expected, abs=1e-9)
    diagonal = _shapes.turned(_shapes.arrow(1.0), (1, -1))[0]
    assert diagonal == pytest.approx((-0.354, 0.354), abs=1e-3)
    # The tip of a bent arrow is its farthest point to the right, or to the left.
    right, left = (_shapes.bent_arrow(1.0, clockwise=clockwise) for clockwise in (True, False))
    assert right[:, 0].argmax() == left[:, 0].argmin() == 10
    ahead, turn_right, turn_left = (
        drawing.action_sign(MECHANISMS["diffdrive"], 1, action) for action in range(3)
    )
    # Facing east: ahead is right, a right turn ends below, a left turn above.
    assert ahead[0] == pytest.approx((0.36, 0))
    assert turn_right[10, 1] > 0.2
    assert turn_left[10, 1] < -0.2


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("diffdrive", (9, 9)),
        ("diffdrive", (5, 15)),
        ("diffdrive", (13, 6)),
        ("news", (7, 15)),
        ("moore", (9, 9)),
    ],
)
@pytest.mark.slow
def test_whole_figures(tmp_path, name, size):
    data = make_mazes(
        law=MazeLaw(size), mechanism=MECHANISMS[name], train=5, valid=0, test=0, seed=0
    ).train
    pictures = drawing.mazes_figure(data, columns=3, title="mazes")
    drawing.save_figure(pictures, tmp_path / "a.png", dpi=60)
    figure = drawing.value_figure(
        -data.spl[0].astype(float),
        data.maze[0],
        mechanism=data.mechanism,
        start=(1, 1, 0),
        goal=data.goal[0].tolist(),
        path=np.array([[1, 1, 0]]),
        policy=data.label[0],
        title="values",
    )
    assert len(figure.axes) == data.mechanism.num_orientations + 2  # maze and scale of colours
    drawing.save_figure(figure, tmp_path / "b.png", dpi=60)
    for picture in ("a.png", "b.png"):
        with Image.open(tmp_path / picture) as image:
            assert min(image.size) > 150
            assert len(image.convert("RGB").getcolors(2**24)) > 50


@pytest.mark.parametrize("size", [(1, 15), (15, 1), (1, 1), (2, 60), (40, 3)])
@pytest.mark.parametrize("name", ["diffdrive", "news"])
def test_long_and_tiny_maps_have_room(size, name):
    """Every panel can be read: cells are not squashed, and no title leaves the picture."""
    mechanism = MECHANISMS[name]
    maze = np.ones(size, np.uint8)
    title = "the planner reaches the goal in 14 actions, as few as possible"
    figure = drawing.value_figure(
        np.random.default_rng(0).normal(size=(*size, mechanism.num_orientations)),
        maze,
        mechanism=mechanism,
        path=np.array([[0, 0, 0]] * 101),
        title=title,
        note="a remark below",
    )
    alone = drawing.maze_figure(maze, mechanism=mechanism, title=title)
    for one in (figure, alone):
        one.draw_without_rendering()
        whole = one.bbox
        for axes in one.axes:
            box = axes.title.get_window_extent()
            assert whole.x0 <= box.x0, axes.get_title()
            assert box.x1 <= whole.x1, axes.get_title()
            if axes.images:
                cell = axes.get_window_extent().width / size[1] / one.dpi
                assert 0.07 < cell < 1.7
        heading = one._suptitle.get_window_extent()
        assert whole.x0 <= heading.x0
        assert heading.x1 <= whole.x1
    assert max(*figure.get_size_inches(), *alone.get_size_inches()) < 14


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_figure_makes_the_same_file(tmp_path, kind):
    for name in ("a", "b"):
        figure = drawing.value_figure(
            np.eye(3)[..., None], np.ones((3, 3)), mechanism=MECHANISMS["news"]
        )
        drawing.save_figure(figure, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_families_figure():
    maps = dict.fromkeys(("one", "two", "six"), np.ones((3, 7, 9), np.uint8))
    figure = drawing.families_figure(maps)
    drawn = [axes for axes in figure.axes if axes.images]
    assert len(drawn) == 9
    assert [axes.get_title() for axes in drawn[1::3]] == ["one", "two", "six"]


@pytest.mark.processes
def test_no_display_is_needed(tmp_path):
    """Not even when the environment asks for a window."""
    script = (
        "import numpy as np; from hvin_jax.tasks import drawing, mechanisms\n"
        "figure = drawing.value_figure(np.eye(3)[..., None], np.ones((3, 3)),"
        " mechanism=mechanisms.MECHANISMS['news'])\n"
        "drawing.save_figure(figure, 'a.png')\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"MPLBACKEND": "tkagg", "PYTHONPATH": str(pathlib.Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)
    with Image.open(tmp_path / "a.png") as image:
        assert image.size[0] > 500


def test_mistakes_are_explained(tmp_path):
    data = make_mazes(
        law=MazeLaw((5, 5)), mechanism=MECHANISMS["news"], train=1, valid=0, test=0, seed=0
    )
    with pytest.raises(ValueError, match="there are no mazes to draw"):
        drawing.mazes_figure(data.test)
    with pytest.raises(ValueError, match="can't draw to 'xyz', expected one of"):
        drawing.save_figure(drawing.mazes_figure(data.train), tmp_path / "a.xyz")


def _large(size):
    maze = np.ones(size, np.uint8)
    policy = np.zeros((*size, 1), np.uint8)
    news = MECHANISMS["news"]
    ends = {"start": (0, 0, 0), "goal": (size[0] - 1, size[1] - 1, 0)}
    return drawing.value_figure(policy * 1.0, maze, mechanism=news, policy=policy, **ends)


def test_large_maps_show_the_policy_and_visible_marks():
    figure = _large((40, 70))
    FigureCanvasAgg(figure)
    assert [axes.get_title() for axes in figure.axes] == ["maze", "policy"]  # and no scale
    colour = _render(figure)
    assert _near(colour(figure.axes[0], 0, 0.55), to_rgb(drawing.START))  # wider than its cell


def test_start_and_goal_in_one_cell_are_both_seen(figure):
    axes = figure.add_subplot()
    drawing.draw_maze(axes, np.ones((1, 1)), start=(0, 0), goal=(0, 0))
    colour = _render(figure)
    assert _near(colour(axes, 0, 0), to_rgb(drawing.START))
    assert _near(colour(axes, -0.4, 0), to_rgb(drawing.GOAL))
