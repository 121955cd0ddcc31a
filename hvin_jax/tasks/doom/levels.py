"""Mazes as Doom levels: UDMF maps in a PWAD file.

A cell is a square of 64 map units. The free cells are rooms without a door between them; every edge
between a free cell and a wall cell is a wall of the level. Each wall cell holds a chamber of its
own, a little smaller than the cell and sealed on all sides: a camera in it sees walls with the
level's texture and light, as one in front of a wall does, and not a constant that would give the
map away. Row 0 is in the north; x grows to the east and y to the north, as in Doom.
"""

import dataclasses
import os
import struct
from collections.abc import Mapping, Sequence

import numpy as np

from hvin_jax._files import atomic_write
from hvin_jax.tasks.mechanisms import COMPASS

CELL = 64
CEILING = 96
# Between the edge of a wall cell and its chamber.
INSET = 4
# Textures of freedoom2, which comes with ViZDoom. Part of what a seed means, as is their order.
WALLS = ("BRICK7", "STARTAN3", "STONE2", "WOOD1", "GSTONE1", "GRAY1")
FLOORS_AND_CEILINGS = (("FLOOR4_8", "CEIL3_5"), ("FLOOR0_1", "CEIL1_1"))
LIGHTS = (144, 192, 240)
# What Doom calls the angle of each compass direction, in degrees.
ANGLES = {"E": 0, "N": 90, "W": 180, "S": 270}

_VERTEX = "vertex{{x={};y={};}}\n"
_SIDE = 'sidedef{{sector=0;texturemiddle="{}";}}\n'
_LINE = "linedef{{v1={};v2={};sidefront={};blocking=true;}}\n"
_SECTOR = (
    "sector{{heightfloor=0;heightceiling={};"
    'texturefloor="{}";textureceiling="{}";lightlevel={};}}\n'
)
_PLAYER = (
    "thing{{x={};y={};angle=0;type=1;skill1=true;skill2=true;skill3=true;skill4=true;skill5=true;"
    "single=true;}}\n"
)


@dataclasses.dataclass(frozen=True)
class Look:
    """What a level is dressed in.

    Attributes:
      wall: texture of all its walls.
      floor: texture of the floor.
      ceiling: texture of the ceiling.
      light: how bright it is, 0 to 255.
    """

    wall: str
    floor: str
    ceiling: str
    light: int


LOOKS = tuple(
    Look(wall, floor, ceiling, light)
    for wall in WALLS
    for floor, ceiling in FLOORS_AND_CEILINGS
    for light in LIGHTS
)


def draw_looks(seed: int, count: int) -> list[Look]:
    """The looks of the first `count` levels of a seed; more of them begin with the same ones."""
    rng = np.random.default_rng([seed, 0xD003])
    return [LOOKS[int(rng.integers(len(LOOKS)))] for _ in range(count)]


def cell_centre(row: int, column: int, height: int) -> tuple[int, int]:
    """The place (x, y) in map units of the centre of a cell of a maze with `height` rows."""
    return column * CELL + CELL // 2, (height - 1 - row) * CELL + CELL // 2


def cell_at(x: float, y: float, height: int) -> tuple[int, int]:
    """The cell (row, column) in which a place lies."""
    return height - 1 - int(y // CELL), int(x // CELL)


def level_text(maze: np.ndarray, look: Look, *, chambers: bool = True) -> str:
    """The map in UDMF, the text format of ZDoom.

    Args:
      maze: `[H, W]`, 1 = free, 0 = wall; what lies outside counts as wall.
      look: what it is dressed in.
      chambers: whether wall cells have theirs; no one who walks through the level can tell.

    Returns:
      The content of the lump TEXTMAP.
    """
    check_maze(maze)
    height = len(maze)
    walls = _free_walls(maze) + (_chamber_walls(maze) if chambers else [])
    corners: dict[tuple[int, int], int] = {}
    lines = [
        _LINE.format(
            corners.setdefault(first, len(corners)), corners.setdefault(last, len(corners)), index
        )
        for index, (first, last) in enumerate(walls)
    ]
    row, column = (int(x) for x in np.argwhere(maze)[0])
    return "".join(
        [
            'namespace="zdoom";\n',
            *(_VERTEX.format(x, y) for x, y in corners),
            *lines,
            *[_SIDE.format(look.wall)] * len(walls),
            _SECTOR.format(CEILING, look.floor, look.ceiling, look.light),
            _PLAYER.format(*cell_centre(row, column, height)),
        ]
    )


def write_wad(path: str | os.PathLike[str], texts: Mapping[str, str]) -> None:
    """Writes a PWAD of UDMF maps; the engine builds their nodes itself.

    Args:
      path: where to.
      texts: the maps by name, of up to 8 characters, see `level_text`.
    """
    lumps: list[tuple[str, bytes]] = []
    for name, text in texts.items():
        if not (0 < len(name) <= 8 and name.isascii() and name.isalnum() and name.isupper()):
            raise ValueError(
                f"a map can't be called {name!r}: expected up to 8 capital letters and digits"
            )
        lumps += [(name, b""), ("TEXTMAP", text.encode("ascii")), ("ENDMAP", b"")]
    header = struct.calcsize("<4sii")
    size = sum(len(content) for _, content in lumps)
    with atomic_write(path) as file:
        file.write(struct.pack("<4sii", b"PWAD", len(lumps), header + size))
        file.writelines(content for _, content in lumps)
        place = header
        for name, content in lumps:
            file.write(struct.pack("<ii8s", place, len(content), name.encode("ascii")))
            place += len(content)


def map_names(count: int) -> list[str]:
    """Names for the maps of one file."""
    return [f"MAP{index:05d}" for index in range(count)]


def write_levels(
    path: str | os.PathLike[str],
    mazes: Sequence[np.ndarray],
    looks: Sequence[Look],
    *,
    chambers: bool = True,
) -> list[str]:
    """Writes mazes as the maps of one PWAD.

    Args:
      path: where to.
      mazes: `[H, W]` each.
      looks: one for each maze.
      chambers: whether wall cells have theirs.

    Returns:
      The names of the maps.
    """
    names = map_names(len(mazes))
    texts = (
        level_text(maze, look, chambers=chambers) for maze, look in zip(mazes, looks, strict=True)
    )
    write_wad(path, dict(zip(names, texts, strict=True)))
    return names


def check_maze(maze: np.ndarray) -> None:
    """Raises if an array is not a maze that can be a level."""
    if maze.ndim != 2 or not maze.size:
        raise ValueError(f"the maze has shape {maze.shape}, expected [H, W]")
    if not ((maze == 0) | (maze == 1)).all():
        raise ValueError("the maze has values other than 0 (wall) and 1 (free)")
    if not maze.any():
        raise ValueError("the maze has no free cell, so there is nowhere to be in its level")


def _free_walls(maze: np.ndarray) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Lines where a free cell ends, with the free cell on their right, which is their front."""
    closed = np.pad(maze, 1)
    walls = []
    for row, column in np.argwhere(maze):
        for direction in ANGLES:
            down, right = COMPASS[direction]
            if not closed[row + 1 + down, column + 1 + right]:
                x, y = cell_centre(int(row), int(column), len(maze))
                walls.append(_side(x, y, direction, CELL // 2))
    return walls


def _chamber_walls(maze: np.ndarray) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The four lines around each chamber, with the chamber in front."""
    return [
        _side(*cell_centre(int(row), int(column), len(maze)), direction, CELL // 2 - INSET)
        for row, column in np.argwhere(maze == 0)
        for direction in ANGLES
    ]


def _side(x: int, y: int, direction: str, half: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """One side of the square around a place, with the square on its right."""
    down, right = COMPASS[direction]
    ahead = (right * half, -down * half)
    # Walking with the square on the right, one goes clockwise: north side eastwards, and so on.
    along = (ahead[1], -ahead[0])
    first = (x + ahead[0] - along[0], y + ahead[1] - along[1])
    last = (x + ahead[0] + along[0], y + ahead[1] + along[1])
    return first, last
