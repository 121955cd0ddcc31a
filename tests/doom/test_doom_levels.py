"""Levels as files: what the engine will find in them."""

import collections
import re
import struct

import numpy as np
import pytest

from hvin_jax.tasks.doom import levels
from hvin_jax.tasks.doom.levels import LOOKS, cell_at, cell_centre, draw_looks, level_text

MAZE = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], np.uint8)


def _parse(text):
    """Vertices, lines and the rest of a UDMF map."""
    blocks = collections.defaultdict(list)
    for kind, body in re.findall(r"(\w+)\{(.*?)\}", text):
        fields = dict(item.split("=", 1) for item in body.strip(";").split(";"))
        blocks[kind].append(fields)
    return blocks


def _inside(point, lines):
    """How many lines have a point on their right, of a closed convex outline."""
    return all(
        (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0]) < 0 for a, b in lines
    )


def test_walls_of_a_level():
    blocks = _parse(level_text(MAZE, LOOKS[0]))
    corners = [(float(v["x"]), float(v["y"])) for v in blocks["vertex"]]
    lines = [(corners[int(x["v1"])], corners[int(x["v2"])]) for x in blocks["linedef"]]
    # Two free cells side by side have six walls; ten wall cells have four each.
    assert len(lines) == 6 + 10 * 4
    assert len(blocks["sidedef"]) == len(lines)
    assert [int(x["sidefront"]) for x in blocks["linedef"]] == list(range(len(lines)))
    room = lines[:6]
    assert _inside((64 + 32, 64 + 32), room)
    assert _inside((128 + 32, 64 + 32), room)
    assert {x for line in room for x, _ in line} == {64.0, 128.0, 192.0}
    for k, (row, column) in enumerate(np.argwhere(MAZE == 0)):
        chamber = lines[6 + 4 * k : 10 + 4 * k]
        assert _inside(cell_centre(row, column, 3), chamber)
        corners_of = {corner for line in chamber for corner in line}
        assert len(corners_of) == 4  # it is closed
        assert all(cell_at(*corner, 3) == (row, column) for corner in corners_of)
    assert len(_parse(level_text(MAZE, LOOKS[0], chambers=False))["linedef"]) == 6


def test_look_of_a_level():
    look = LOOKS[-1]
    blocks = _parse(level_text(MAZE, look))
    assert {x["texturemiddle"] for x in blocks["sidedef"]} == {f'"{look.wall}"'}
    (sector,) = blocks["sector"]
    assert sector["lightlevel"] == str(look.light)
    (player,) = blocks["thing"]
    assert (float(player["x"]), float(player["y"])) == cell_centre(1, 1, 3)


def test_looks_vary():
    looks = draw_looks(0, 500)
    assert len({look.wall for look in looks}) >= 4
    assert len({look.light for look in looks}) >= 3
    assert set(looks) == set(LOOKS)
    assert looks[:100] == draw_looks(0, 100)
    assert looks != draw_looks(1, 500)


def test_places():
    assert cell_centre(0, 0, 5) == (32, 4 * 64 + 32)  # row 0 is in the north
    for row in range(5):
        for column in range(7):
            assert cell_at(*cell_centre(row, column, 5), 5) == (row, column)


def test_wad_file(tmp_path):
    path = tmp_path / "levels.wad"
    levels.write_wad(path, {"MAP1": "first", "MAP22": "second"})
    content = path.read_bytes()
    kind, count, start = struct.unpack_from("<4sii", content)
    assert (kind, count) == (b"PWAD", 6)
    lumps = [struct.unpack_from("<ii8s", content, start + 16 * k) for k in range(count)]
    found = [(name.rstrip(b"\0"), content[place : place + size]) for place, size, name in lumps]
    assert found == [
        (b"MAP1", b""),
        (b"TEXTMAP", b"first"),
        (b"ENDMAP", b""),
        (b"MAP22", b""),
        (b"TEXTMAP", b"second"),
        (b"ENDMAP", b""),
    ]


@pytest.mark.parametrize("name", ["", "MAP123456", "map1", "MÄP", "MAP 1"])
def test_bad_names(tmp_path, name):
    with pytest.raises(ValueError, match="a map can't be called"):
        levels.write_wad(tmp_path / "x.wad", {name: ""})


@pytest.mark.parametrize(
    ("maze", "message"),
    [
        (np.ones(3), "expected \\[H, W\\]"),
        (np.full((3, 3), 2), "other than 0"),
        (np.zeros((3, 3)), "no free cell"),
    ],
)
def test_bad_mazes(maze, message):
    with pytest.raises(ValueError, match=message):
        level_text(maze, LOOKS[0])
