"""Maps as texts: drawings, maps of the MovingAI benchmarks, and tables of 0 and 1.

A drawing has one character per cell: `#` wall, `.` free, `S` start, `G` goal, both free. There may
be several goals. Digits are free cells that cost so much to enter, 1 to 9; all others cost 1.

    #######
    #S..#.#
    #.#.#.#
    #.#..G#
    #######

Free cells may be blanks instead of `.`, in all of a drawing. Then a blank is a cell wherever it
stands, and a line that is shorter than others goes on with them.

A [MovingAI](https://movingai.com/benchmarks/formats.html) map begins with `type`. Its `.`, `G` and
`S` (swamp) are free, `@`, `O`, `T` (trees) and `W` (water) are walls; where to start and to go it
does not say.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from hvin_jax.tasks.maps.own_map import Cell, OwnMap, check_cells

_DRAWN = "#. 123456789SG"
_FREE, _WALLS = ".GS", "@OTW"


def from_text(text: str) -> OwnMap:
    """A map from a drawing, or from a MovingAI map; empty lines around it are ignored."""
    lines = _lines(text, "the drawing of the map")
    dense = _without_margins([line.rstrip() for line in lines])
    if not dense:
        raise ValueError("the drawing of the map is empty")
    if re.match(r"type\b", dense[0]):
        return _benchmark(dense)
    blank = any(" " in line for line in dense)
    return _drawing(_filled(_without_margins(lines)) if blank else dense)


def from_table(text: str) -> OwnMap:
    """A map from a table, in each line 0 (wall) and 1 (free) by commas, semicolons or blanks."""
    lines = _without_margins([line.strip() for line in _lines(text, "the table of the map")])
    if not lines:
        raise ValueError("the table of the map is empty")
    rows = [re.split(r"\s*[,;]\s*|\s+", line) for line in lines]
    _check_rows(rows, lambda cell: _number(cell) in (0, 1), "0 (wall) or 1 (free)")
    return OwnMap(np.array([[_number(cell) for cell in row] for row in rows]).astype(np.uint8))


def to_text(own_map: OwnMap, *, path: np.ndarray | None = None) -> str:
    """The drawing of a map.

    Args:
      own_map: the map.
      path: int `[k, 2 or 3]`, (row, column, …) of cells that are drawn as `*`. A drawing with a
        path is for reading; `from_text` does not take it.

    Returns:
      Lines of characters, each with a line end.
    """
    picture = np.where(own_map.maze != 0, ".", "#")
    if own_map.cost is not None and np.isin(own_map.cost[own_map.maze != 0], range(1, 10)).all():
        costs = np.char.mod("%d", np.where(own_map.maze != 0, own_map.cost, 1))
        picture = np.where((own_map.maze != 0) & (costs != "1"), costs, picture)
    if path is not None:
        picture[path[:, 0], path[:, 1]] = "*"
    for character, cell in (("S", own_map.start), *(("G", goal) for goal in own_map.goals)):
        if cell is not None:
            picture[cell] = character
    return "".join("".join(row) + "\n" for row in picture)


def _lines(text: str, what: str) -> list[str]:
    if not isinstance(text, str):
        raise TypeError(f"{what} is a {type(text).__name__}, expected a str; read_map reads files")
    check_cells(len(text), what)
    text = text.removeprefix("\ufeff")  # a byte order mark, which some editors write
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _without_margins(lines: Sequence[str]) -> list[str]:
    """The lines from the first to the last that is not empty."""
    drawn = [row for row, line in enumerate(lines) if line]
    return list(lines[drawn[0] : drawn[-1] + 1]) if drawn else []


def _filled(lines: Sequence[str]) -> list[str]:
    """Lines of a drawing with blanks, with those that editors take away at their ends."""
    if any("." in line for line in lines):
        raise ValueError("the drawing of the map has dots and blanks for free cells: take one")
    longest = max(map(len, lines))
    check_cells(longest * len(lines), "the drawing of the map")
    return [line.ljust(longest) for line in lines]


def _drawing(lines: Sequence[str]) -> OwnMap:
    expected = (
        "# (wall), . or a blank (free), S (start), G (goal) or what entering the cell costs, 1 to 9"
    )
    _check_rows(lines, _DRAWN.__contains__, expected)
    marks: dict[str, list[Cell]] = {"S": [], "G": []}
    for row, line in enumerate(lines):
        for mark in re.finditer("[SG]", line):
            if mark.group() == "S" and marks["S"]:
                where = f"in line {row + 1}, column {mark.start() + 1} of the map"
                raise ValueError(f"a second S {where}: there can be only one")
            marks[mark.group()].append((row, mark.start()))
    maze = np.array([[character != "#" for character in line] for line in lines], dtype=np.uint8)
    cost = None
    if any(set(line) & set("123456789") for line in lines):
        digits = [[int(x) if x.isdigit() else 1 for x in line] for line in lines]
        cost = np.array(digits, np.float32)
    start, goal = (cells[0] if cells else None for cells in marks.values())
    return OwnMap(maze, start, goal, cost, tuple(marks["G"]))


def _benchmark(lines: Sequence[str]) -> OwnMap:
    head = dict(re.findall(r"^(type|height|width)[ \t]+(\w+)$", "\n".join(lines[:3]), re.MULTILINE))
    if len(head) < 3 or lines[3:4] != ["map"]:
        raise ValueError(
            "a map of the MovingAI benchmarks begins with the four lines type octile, height "
            f"NUMBER, width NUMBER and map; this one with {', '.join(lines[:4])[:60]!r}"
        )
    if head["type"] == "hex":
        raise ValueError("the cells of the map are hexagons, expected squares")
    rows = lines[4:]
    _check_rows(rows, (_FREE + _WALLS).__contains__, "a terrain: . G S (free) or @ O T W (wall)", 4)
    said = f"{head['height']}×{head['width']}"
    found = f"{len(rows)}×{len(rows[0]) if rows else 0}"
    if said != found:
        raise ValueError(f"the map has {found} cells, but says that it has {said}")
    return OwnMap(np.array([[cell in _FREE for cell in row] for row in rows], np.uint8))


def _check_rows(
    rows: Sequence[Sequence[str]], known: Callable[[str], bool], expected: str, above: int = 0
) -> None:
    """Raises unless rows of cells, below so many lines, are equally long and all cells known."""
    for row, line in enumerate(rows, above + 1):
        strange = {cell for cell in set(line) if not known(cell)}
        if strange:
            column = next(place for place, cell in enumerate(line) if cell in strange)
            what = f"{'character' if len(line[column]) == 1 else 'cell'} {line[column][:40]!r}"
            raise ValueError(
                f"unknown {what} in line {row}, column {column + 1} of the map: expected {expected}"
            )
        if len(line) != len(rows[0]):
            raise ValueError(
                f"line {row} of the map has {len(line)} cells, the first has {len(rows[0])}: "
                "all must be equally long"
            )


def _number(cell: str) -> float | None:
    """What a cell of a table says."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
