"""Pictures of mazes, paths, policies and values.

`draw_*` functions draw into given axes, `*_figure` functions make a whole figure, `save_figure`
writes it. No display is needed and no global state of matplotlib stays changed.
"""

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._files import atomic_write
from hvin_jax._words import counted
from hvin_jax.tasks import _panels, _shapes
from hvin_jax.tasks._cell_scale import CellScale
from hvin_jax.tasks.maze_data import MazeData
from hvin_jax.tasks.measures import farthest_start
from hvin_jax.tasks.mechanisms import COMPASS, Mechanism
from hvin_jax.tasks.rollouts import path_of

with needs("drawing", "matplotlib", extra="draw"):
    from matplotlib import colormaps, rc_context
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Colormap, ListedColormap, to_hex
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.patches import Patch

State = Sequence[int]  # (row, column) or (row, column, orientation)

WALL, FREE, _INK = "#2b3440", "#faf8f3", _panels.INK
START, GOAL = "#12a37a", "#e0243f"
PATH_COLOURS, VALUE_COLOURS = colormaps["plasma"], colormaps["viridis"]
SHARE_COLOURS = colormaps["magma"]
_COST_COLOURS = colormaps["YlOrBr"]  # of which the lighter half is used
MOST_WITH_ARROWS = 30  # cells a side
_MARK_CELL = 12  # start and goal are as large as in cells of so many points, or larger
_WORDS = {"N": "north", "E": "east", "W": "west", "S": "south"}


def draw_maze(
    axes: Axes,
    maze: np.ndarray,
    *,
    mechanism: Mechanism | None = None,
    start: State | None = None,
    goal: State | np.ndarray | None = None,
    path: np.ndarray | None = None,
    best_path: np.ndarray | None = None,
    cost: np.ndarray | None = None,
) -> None:
    """Draws walls, a path that gets brighter on its way, and start and goal.

    Args:
      axes: where to draw.
      maze: `[H, W]`, 1 = free, 0 = wall.
      mechanism: if it has orientations that are directions, start and goal point where the agent
        faces; else they are a disc and a star.
      start: (row, column) or (row, column, orientation), green.
      goal: the same, red; or several, `[K, 2 or 3]`. An orientation of -1 stands for any.
      path: int `[k, 2 or 3]`, the cells or states of a path.
      best_path: another one, a thin dashed line.
      cost: `[H, W]`, what it costs to enter each cell: the more, the darker the ground.
    """
    axes.imshow(maze != 0, cmap=ListedColormap([WALL, FREE]), vmin=0, vmax=1)
    if cost is not None:
        shown = np.ma.masked_where(maze == 0, cost)
        low, high = limits_of(cost, maze)
        axes.imshow(shown, cmap=_COST_COLOURS, vmin=low, vmax=high + (high - low), zorder=1)
    _finish(axes, maze.shape)
    if path is not None:
        points = path[:, 1::-1].astype(float)  # x, y
        moves = (np.diff(points, axis=0) != 0).any(axis=1)
        ends = list(zip(points[:-1][moves], points[1:][moves], strict=True))
        outlines = [_shapes.segment(first, last, width=0.26) for first, last in ends]
        colours = PATH_COLOURS(np.linspace(0.05, 0.82, max(len(ends), 1)))
        axes.add_collection(PolyCollection(outlines, facecolors=colours, linewidths=0, zorder=2))
    if best_path is not None:
        axes.plot(*best_path[:, 1::-1].T, color=_INK, linewidth=1, linestyle=(0, (3, 2)), zorder=3)
    goals = np.zeros((0, 2), int) if goal is None else np.reshape(goal, (-1, np.shape(goal)[-1]))
    for one in goals.tolist():
        _mark(axes, one, mechanism, colour=GOAL, otherwise=_shapes.star(0.52))
    if start is not None:
        size = start_size(start, goals)
        _mark(axes, start, mechanism, colour=START, otherwise=_shapes.disc(0.36), size=size)


def draw_policy(
    axes: Axes, policy: np.ndarray, maze: np.ndarray, *, mechanism: Mechanism, orientation: int = 0
) -> None:
    """Draws an arrow for the action in each free cell: straight for moves, bent for turns.

    On maps with a side of more than 30 cells arrows would be too small to read: there each action
    has a colour, which lies over values in shades of grey; `policy_legend` says which.

    Args:
      axes: where to draw, after `draw_maze` or `draw_values`.
      policy: int `[H, W, O]`, indices of actions.
      maze: `[H, W]`, 1 = free, 0 = wall.
      mechanism: how the agent moves.
      orientation: of which the actions are drawn.
    """
    if max(maze.shape) > MOST_WITH_ARROWS:
        shown = np.ma.masked_where(maze == 0, policy[..., orientation])
        colours = ListedColormap(_action_colours(mechanism))
        most = mechanism.num_actions - 0.5
        axes.imshow(shown, cmap=colours, vmin=-0.5, vmax=most, alpha=0.6, zorder=2)
        return
    outlines = []
    for action in range(mechanism.num_actions):
        sign = action_sign(mechanism, orientation, action)
        row, column = np.nonzero((policy[..., orientation] == action) & (maze != 0))
        outlines += [sign + place for place in np.stack([column, row], axis=1)]
    axes.add_collection(
        PolyCollection(
            outlines, facecolors="white", edgecolors=_INK, linewidths=0.5, alpha=0.9, zorder=3
        )
    )


def policy_legend(figure: Figure, mechanism: Mechanism, *, title: str = "") -> None:
    """Below a figure, the colours that `draw_policy` gives to actions on large maps."""
    colours = _action_colours(mechanism)
    handles = [
        Patch(color=colour, alpha=0.75, label=name)
        for name, colour in zip(mechanism.actions, colours, strict=True)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower right",
        ncols=min(len(handles), 8),
        frameon=False,
        fontsize=8,
        labelcolor=_INK,
        title=title or None,
        title_fontsize=8,
    )


def _action_colours(mechanism: Mechanism) -> list[str]:
    """Colours that are far apart, one for each action."""
    # The palette has pairs that are alike, so every other colour comes first.
    order = [*range(0, 20, 2), *range(1, 20, 2)]
    return [to_hex(colormaps["tab20"](order[a % 20])) for a in range(mechanism.num_actions)]


def draw_values(
    axes: Axes,
    values: np.ndarray,
    maze: np.ndarray,
    *,
    limits: tuple[float, float] | None = None,
    colours: Colormap = VALUE_COLOURS,
) -> AxesImage:
    """Draws a heat map of the free cells; walls stay dark.

    Args:
      axes: where to draw.
      values: `[H, W]`; what is not finite stays blank.
      maze: `[H, W]`, 1 = free, 0 = wall.
      limits: the values of the darkest and the brightest colour; by default the extremes.
      colours: of low and high values.

    Returns:
      What a scale of colours can be made for.
    """
    draw_maze(axes, maze)
    shown = np.ma.masked_invalid(np.where(maze != 0, values, np.nan))
    low, high = limits or limits_of(values, maze)
    image = axes.imshow(shown, cmap=colours, vmin=low, vmax=high, zorder=1)
    _finish(axes, maze.shape)
    return image


def maze_figure(
    maze: np.ndarray,
    *,
    mechanism: Mechanism,
    start: State | None = None,
    goal: State | np.ndarray | None = None,
    path: np.ndarray | None = None,
    best_path: np.ndarray | None = None,
    cost: np.ndarray | None = None,
    title: str = "",
    caption: str = "",
) -> Figure:
    """The maze with the path, see `value_figure`."""
    figure = _panels.new_figure(*_panels.panel(maze.shape, side=5.6), title=title)
    axes = figure.subplots()
    shown: dict[str, Any] = {"start": start, "goal": goal, "cost": cost}
    shown |= {"path": path, "best_path": best_path}
    draw_maze(axes, maze, mechanism=mechanism, **shown)
    _title(axes, caption or _caption(path))
    return figure


def value_figure(
    values: np.ndarray,
    maze: np.ndarray,
    *,
    mechanism: Mechanism,
    start: State | None = None,
    goal: State | np.ndarray | None = None,
    path: np.ndarray | None = None,
    best_path: np.ndarray | None = None,
    policy: np.ndarray | None = None,
    cost: np.ndarray | None = None,
    title: str = "",
    caption: str = "",
    value_name: str = "value",
    note: str = "",
) -> Figure:
    """The maze with the path, and a heat map for every orientation on one scale of colours.

    Args:
      values: `[H, W, O]`.
      maze: `[H, W]`, 1 = free, 0 = wall.
      mechanism: how the agent moves.
      start: (row, column, orientation).
      goal: (row, column, orientation).
      path: int `[k, 3]`, states.
      best_path: another one, see `draw_maze`.
      policy: int `[H, W, O]`; if given, its actions are drawn over the values.
      cost: `[H, W]`, what it costs to enter each cell, see `draw_maze`.
      title: of the figure.
      caption: of the maze; by default it tells the length of the path.
      value_name: what the scale of colours is called.
      note: a remark below all.

    Returns:
      The figure.
    """
    places = _panels.arrange(maze.shape, count=mechanism.num_orientations)
    where = "bottom" if places.below else "right"
    figure = _panels.new_figure(*places.size, title=title, note=note, scale=where)
    if places.below:
        ratios = [places.large.height] + places.rows * [places.small.height]
        grid = figure.add_gridspec(1 + places.rows, places.columns, height_ratios=ratios)
        axes, first_row, first_column = figure.add_subplot(grid[0, :]), 1, 0
    else:
        ratios = [places.large.width] + places.columns * [places.small.width]
        grid = figure.add_gridspec(places.rows, 1 + places.columns, width_ratios=ratios)
        axes, first_row, first_column = figure.add_subplot(grid[:, 0]), 0, 1
    shown: dict[str, Any] = {"start": start, "goal": goal, "cost": cost}
    shown |= {"path": path, "best_path": best_path}
    draw_maze(axes, maze, mechanism=mechanism, **shown)
    _title(axes, caption or _caption(path))
    limits = limits_of(values, maze[..., None])
    by_colour = policy is not None and max(maze.shape) > MOST_WITH_ARROWS
    colours = colormaps["gray"] if by_colour else VALUE_COLOURS
    value_axes = []
    for orientation, name in enumerate(mechanism.orientations):
        row, column = divmod(orientation, places.columns)
        axes = figure.add_subplot(grid[first_row + row, first_column + column])
        image = draw_values(axes, values[..., orientation], maze, limits=limits, colours=colours)
        one_only = mechanism.num_orientations == 1
        alone = "policy" if by_colour else f"{value_name}s"
        _title(axes, alone if one_only else f"facing {_WORDS.get(name, name)}")
        if policy is not None:
            draw_policy(axes, policy, maze, mechanism=mechanism, orientation=orientation)
        for one in [] if goal is None else np.reshape(goal, (-1, np.shape(goal)[-1])).tolist():
            if len(one) == 2 or one[2] in (-1, orientation):
                _mark(axes, one, mechanism, colour=GOAL, otherwise=_shapes.star(0.52))
        value_axes.append(axes)
    if by_colour:  # no scale: under colours its shades would be found nowhere
        policy_legend(figure, mechanism, title=f"policy (lighter: a higher {value_name})")
        return figure
    shape = {"shrink": 0.6, "aspect": 45} if places.below else {"aspect": 30}
    bar = figure.colorbar(image, ax=value_axes, location=where, pad=0.02, **shape)
    bar.ax.ticklabel_format(useOffset=False)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8, labelcolor=_INK)
    bar.set_label(value_name, color=_INK, fontsize=9)
    return figure


def mazes_figure(
    data: MazeData, *, policy: np.ndarray | None = None, columns: int = 4, title: str = ""
) -> Figure:
    """Mazes with a path each, from one of the starts that are farthest from the goal.

    Args:
      data: the mazes, all of which are drawn.
      policy: int `[n, H, W, O]`, whose paths are drawn; a shortest path by default.
      columns: how many side by side.
      title: of the figure.

    Returns:
      The figure.
    """
    if not len(data):
        raise ValueError("there are no mazes to draw")
    columns = min(columns, len(data))
    rows = -(-len(data) // columns)
    room = _panels.panel(data.size, side=3.0, least_width=1.5 if policy is None else 2.3)
    figure = _panels.new_figure(columns * room.width, rows * room.height, title=title)
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes[len(data) :]:
        axes.set_axis_off()
    for index, axes in enumerate(all_axes[: len(data)]):
        start = farthest_start(data.spl[index])
        goal, mechanism = data.goal[index], data.mechanism
        height, width = data.size if data.extent is None else data.extent[index]
        corner = (slice(height), slice(width))  # all there is of the map
        maze = data.maze[index][corner]
        cost = None if data.cost is None else data.cost[index][corner]
        actions = (data.label if policy is None else policy)[index][corner]
        path = path_of(actions, maze, start, goal, mechanism=mechanism)
        draw_maze(axes, maze, mechanism=mechanism, start=start, goal=goal, path=path, cost=cost)
        _title(axes, _outcome(data, index, path, is_best=policy is None))
    return figure


def _outcome(data: MazeData, index: int, path: np.ndarray, *, is_best: bool) -> str:
    """How a path compares with the best, in a few words."""
    start, end = tuple(path[0]), tuple(path[-1])
    if data.cost is None or data.distance is None:
        best, found = f"shortest path {data.spl[index][start]}", counted(len(path) - 1, "action")
    else:
        best = f"cheapest path {data.distance[index][start]:.4g}"
        found = f"cost {data.cost[index][tuple(path[1:, :2].T)].sum():.4g}"
    return best if is_best else f"{found if data.spl[index][end] == 0 else 'lost'}, {best}"


def families_figure(maps: Mapping[str, np.ndarray], *, columns: int = 2) -> Figure:
    """Maps side by side, a row for each kind of them.

    Args:
      maps: by the name of their kind, `[n, H, W]` each, 1 = free, 0 = wall; of one shape.
      columns: how many kinds side by side.

    Returns:
      The figure.
    """
    count, *size = next(iter(maps.values())).shape
    rows = -(-len(maps) // columns)
    room = _panels.panel(tuple(size), side=1.5)
    figure = _panels.new_figure(columns * count * room.width, rows * room.height, title="")
    all_axes = figure.subplots(rows, columns * count, squeeze=False).reshape(-1, count)
    for axes in all_axes[len(maps) :].ravel():
        axes.set_axis_off()
    for (name, of_kind), row in zip(maps.items(), all_axes, strict=False):
        for axes, maze in zip(row, of_kind, strict=True):
            draw_maze(axes, maze)
        _title(row[count // 2], name)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Writes a figure in the format of the file's ending, such as `.png` or `.svg`.

    The same figure makes the same file, whenever it is drawn.

    Args:
      figure: what to write.
      path: where to.
      dpi: pixels per inch.
    """
    kind = pathlib.Path(path).suffix.lower().lstrip(".")
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise ValueError(
            f"{path}: can't draw to {kind!r}, expected one of {', '.join(sorted(known))}"
        )
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with atomic_write(path) as file, rc_context({"svg.hashsalt": "hvin_jax"}):
        figure.savefig(file, format=kind, dpi=dpi, facecolor="white", metadata=undated)


def action_sign(mechanism: Mechanism, orientation: int, action: int) -> np.ndarray:
    """The outline of an action's arrow."""
    rows, columns, new = mechanism.moves[orientation][action]
    if rows or columns:
        return _shapes.turned(_shapes.arrow(0.72), (rows, columns))
    faced, facing = (COMPASS.get(mechanism.orientations[o], (-1, 0)) for o in (orientation, new))
    clockwise = faced[1] * facing[0] > faced[0] * facing[1]
    return _shapes.turned(_shapes.bent_arrow(0.56, clockwise=clockwise), faced)


def mark_outline(state: State, mechanism: Mechanism | None, otherwise: np.ndarray) -> np.ndarray:
    """A pointer in the direction that a state faces, or something else if it faces none."""
    if len(state) == 3 and state[2] >= 0 and mechanism is not None:
        towards = COMPASS.get(mechanism.orientations[int(state[2])])
        return _shapes.turned(_shapes.pointer(0.46), towards) if towards else otherwise
    return otherwise


def start_size(start: State, goals: np.ndarray) -> float:
    """How large the start is drawn, after the goals: small on a goal, so that both are seen."""
    return 0.5 if (goals[:, :2] == np.array(start)[:2]).all(-1).any() else 1.0


def _mark(
    axes: Axes,
    state: State,
    mechanism: Mechanism | None,
    *,
    colour: str,
    otherwise: np.ndarray,
    size: float = 1.0,
) -> None:
    axes.add_collection(
        PolyCollection(
            [size * mark_outline(state, mechanism, otherwise)],
            offsets=[(state[1], state[0])],
            offset_transform=axes.transData,
            transform=CellScale(axes, least=_MARK_CELL),
            facecolors=colour,
            edgecolors="white",
            linewidths=0.8,
            zorder=4,
            clip_on=False,
        ),
        autolim=False,
    )


def _caption(path: np.ndarray | None) -> str:
    return "maze" if path is None else f"path of {counted(len(path) - 1, 'action')}"


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, color=_INK, fontsize=10, pad=4)


def _finish(axes: Axes, shape: tuple[int, ...]) -> None:
    axes.set(xticks=[], yticks=[], xlim=(-0.5, shape[1] - 0.5), ylim=(shape[0] - 0.5, -0.5))
    for spine in axes.spines.values():  # so that a map without walls at its edge ends somewhere
        spine.set(color=WALL, linewidth=0.8)


def limits_of(values: np.ndarray, maze: np.ndarray) -> tuple[float, float]:
    """The extremes of finite values at free cells."""
    finite = values[np.isfinite(values) & np.broadcast_to(maze != 0, values.shape)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
