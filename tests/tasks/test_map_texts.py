import numpy as np
import pytest

from hvin_jax.tasks.maps.texts import from_table, from_text, to_text

DRAWING = "#######\n#S..#.#\n#.#.#.#\n#.#..G#\n#######\n"


def test_text_by_hand():
    own = from_text("\n" + DRAWING)
    assert own.maze.dtype == np.uint8
    assert own.maze.tolist()[1:3] == [[0, 1, 1, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0]]
    assert own.start == (1, 1)
    assert own.goal == (3, 5)
    assert to_text(own) == DRAWING
    path = np.array([[1, 1], [1, 2], [1, 3], [2, 3], [3, 3], [3, 4], [3, 5]])
    assert to_text(own, path=path).splitlines()[1:4] == ["#S**#.#", "#.#*#.#", "#.#**G#"]
    assert from_text("..\r\n.#\r\n").maze.tolist() == [[1, 1], [1, 0]]


def test_blank_lines_around_a_drawing():
    assert from_text("  \n###\n#S#\n###\n   \n\n").maze.shape == (3, 3)


def test_blanks_are_free():
    own = from_text("#####\n#S  #\n# #G#\n#####\n")
    assert own.maze.tolist()[1:3] == [[0, 1, 1, 1, 0], [0, 1, 0, 1, 0]]
    assert (own.start, own.goal) == ((1, 1), (2, 3))


@pytest.mark.parametrize(
    ("text", "maze"),
    [
        # A line goes on with those that an editor took away.
        ("S  #\n\n #\n  #G", [[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1]]),
        # Those around the rest are cells, too; lines without any are not.
        ("\n   \n # \n   \n\n", [[1, 1, 1], [1, 0, 1], [1, 1, 1]]),
        (" #  \r\n#\r\n", [[1, 0, 1, 1], [0, 1, 1, 1]]),
    ],
)
def test_lines_of_blanks(text, maze):
    assert from_text(text).maze.tolist() == maze


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "drawing of the map is empty"),
        ("\n\n", "drawing of the map is empty"),
        ("..\n...", "line 2 of the map has 3 cells, the first has 2"),
        ("..\n.x", "unknown character 'x' in line 2, column 2 of the map: expected # "),
        ("S.\n.S", "a second S in line 2, column 2"),
        ("##\n#\n##", "line 2 of the map has 1 cells, the first has 2"),
        (".#.\n# #", "has dots and blanks for free cells: take one"),
        (" #\n# \t", r"unknown character '\\t' in line 2, column 3 of the map"),
        ("#.\n\x0c#.", r"unknown character '\\x0c' in line 2, column 1 of the map"),
        ("# " + "#" * 10_000 + "\n#" * 10_000, "drawing of the map has more than 16,777,216 cells"),
    ],
)
def test_bad_drawings_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        from_text(text)


@pytest.mark.parametrize("head", ["type octile\nheight 2\nwidth 7", "type tile\nwidth 7\nheight 2"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_benchmark_maps(head, end):
    """Terrain as the format's own page has it; there S is a swamp and G is ground."""
    own = from_text(f"{head}\nmap\n.GS@OTW\nWTO@SG.\n".replace("\n", end))
    assert own.maze.tolist() == [[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]]
    assert own.maze.dtype == np.uint8
    assert (own.start, own.goal, own.goals, own.cost) == (None, None, (), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("type octile", "begins with the four lines type octile, height NUMBER, .* 'type octile'"),
        ("type octile\nheight 1\nmap\n..", "begins with the four lines"),
        ("type octile\nheight 1\nheight 2\nmap\n..", "begins with the four lines"),
        ("type octile\nheight 1\nwidth 2\n..", "begins with the four lines"),
        ("type octile\nheight 1\nwidth 2\nmap", "has 0×0 cells, but says that it has 1×2"),
        ("type octile\nheight 2\nwidth 2\nmap\n..", "has 1×2 cells, but says that it has 2×2"),
        ("type octile\nheight x\nwidth 2\nmap\n..", "has 1×2 cells, but says that it has x×2"),
        ("type octile\nheight 2\nwidth 2\nmap\n..\n.", "line 6 of the map has 1 cells, the first"),
        ("type octile\nheight 1\nwidth 2\nmap\n.#", "'#' in line 5, column 2 of the map: .* a ter"),
        ("type hex\nheight 1\nwidth 2\nmap\n..", "cells of the map are hexagons"),
    ],
)
def test_bad_benchmark_maps_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        from_text(text)


@pytest.mark.parametrize(
    "text", ["0,1,1\n1,0,0\n", "0;1;1\r\n1;0;0", "0 1  1\n 1 0 0", "0\t1\t1\n1.0, 0.0 ,0e0"]
)
def test_tables(text):
    own = from_table(text)
    assert own.maze.tolist() == [[0, 1, 1], [1, 0, 0]]
    assert own.maze.dtype == np.uint8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "the table of the map is empty"),
        ("0,1\n0", "line 2 of the map has 1 cells, the first has 2"),
        ("0,1\n0,2", r"character '2' in line 2, column 2 of the map: expected 0 \(wall\) or 1"),
        ("a,b\n0,1", "character 'a' in line 1, column 1"),
        ("0,,1", "cell '' in line 1, column 2"),
        ("0,nan", "cell 'nan' in line 1, column 2"),
        ("0_1,1", "cell '0_1' in line 1, column 1"),
    ],
)
def test_bad_tables_are_explained(text, message):
    with pytest.raises(ValueError, match=message):
        from_table(text)


@pytest.mark.parametrize("read", [from_text, from_table])
@pytest.mark.parametrize("text", [None, 3, ["###"], b"###"])
def test_what_is_no_text(read, text):
    with pytest.raises(TypeError, match=r"map is a .*, expected a str; read_map reads"):
        read(text)
