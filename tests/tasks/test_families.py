"""Families of maps: what each of them is, and how they are mixed."""

import numpy as np
import pytest

from hvin_jax.tasks import datasets
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.files import load_mazes, save_mazes
from hvin_jax.tasks.generation import (
    FAMILIES,
    MapLaw,
    about_families,
    draw_mazes,
    largest_components,
)
from hvin_jax.tasks.maze_data import UNREACHABLE
from hvin_jax.tasks.mechanisms import MECHANISMS
from hvin_jax.tasks.shortest_paths import shortest_paths

NAMES = list(about_families())


def _draw(families, size=(15, 15), n=60, seed=0):
    rng = np.random.default_rng(seed)
    return draw_mazes(n, law=MapLaw(size, families), num_orientations=4, rng=rng)


def _maps(family, size=(15, 15), n=60):
    return _draw(family, size, n)[0]


def _flood(maze):
    """The largest connected part of a map, by flood fill from each cell that is not seen yet."""
    left, parts = {tuple(cell) for cell in np.argwhere(maze)}, [set()]
    while left:
        todo = [min(left)]
        left.remove(todo[0])
        part = set(todo)
        while todo:
            r, c = todo.pop()
            new = {(r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)} & left
            left -= new
            part |= new
            todo += new
        parts.append(part)
    return max(parts, key=len)


def _passages(maze):
    """How many free neighbours each free cell has; 0 at walls."""
    around = np.pad(maze, ((0, 0), (1, 1), (1, 1))).astype(int)
    ways = around[:, :-2, 1:-1] + around[:, 2:, 1:-1] + around[:, 1:-1, :-2] + around[:, 1:-1, 2:]
    return ways * maze


def _squares(mask):
    """Where a 2×2 block of a mask `[n, H, W]` begins."""
    return mask[:, 1:, 1:] & mask[:, :-1, 1:] & mask[:, 1:, :-1] & mask[:, :-1, :-1]


def _connected(maze):
    return largest_components(maze).sum((1, 2)) == maze.sum((1, 2))


def _longest(family, size=(21, 21)):
    """The longest shortest path to a goal, in the middle of many maps."""
    maze, goal = _draw(family, size)
    goal[:, 2] = 0
    spl, _ = shortest_paths(maze, goal, mechanism=MECHANISMS["news"])
    return np.median(np.where(spl == UNREACHABLE, 0, spl).max((1, 2, 3)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(7, 7), (15, 25), (40, 40), (8, 31), (101, 101)])
def test_every_family_at_every_size(name, size):
    n = 1 if size == (101, 101) else 12
    maze, goal = _draw(name, size, n)
    assert (maze.shape, maze.dtype) == ((n, *size), np.uint8)
    assert (goal.shape, goal.dtype) == ((n, 3), np.int32)
    assert set(np.unique(maze)) <= {0, 1}
    assert not maze[:, [0, -1]].any()
    assert not maze[:, :, [0, -1]].any()
    part = largest_components(maze)
    assert part[np.arange(n), goal[:, 0], goal[:, 1]].all()
    least = 0.05 * (49 if name == "bordered" else maze[0].size)
    assert (part.sum((1, 2)) >= max(3, least)).all()
    again, other = _draw(name, size, n), _draw(name, size, n, seed=1)
    np.testing.assert_array_equal(maze, again[0])
    np.testing.assert_array_equal(goal, again[1])
    assert not np.array_equal(maze, other[0])


def test_largest_components():
    maze = np.random.default_rng(0).integers(0, 2, (30, 9, 13))
    maze[:2] = [[[0]], [[1]]]
    for one, part in zip(maze, largest_components(maze), strict=True):
        found = {tuple(cell) for cell in np.argwhere(part)}
        assert len(found) == len(_flood(one))
        assert not found or found == _flood(one * part)  # connected, and free


def test_goals_are_uniform_in_the_largest_part():
    n = 10_000
    maze, goal = _draw("obstacles", (7, 7), n)
    part = largest_components(maze)
    share = (part / part.sum((1, 2), keepdims=True)).sum(0)
    counts = np.zeros((7, 7, 4))
    np.add.at(counts, tuple(goal.T), 1)
    assert np.abs(counts - share[..., None] / 4).max() < 5 * np.sqrt(share.max() / 4)


def test_cells_elsewhere_have_no_path():
    maze, goal = _draw("obstacles", n=100)
    goal[:, 2] = 0
    spl, _ = shortest_paths(maze, goal, mechanism=MECHANISMS["news"])
    np.testing.assert_array_equal(spl[..., 0] != UNREACHABLE, largest_components(maze))
    assert not _connected(maze).all()


@pytest.mark.parametrize("size", [(7, 7), (12, 15), (20, 21)])
def test_mazes_without_and_with_loops(size):
    perfect, braided = _maps("perfect", size), _maps("braided", size)
    assert _connected(perfect).all()
    assert _connected(braided).all()
    # A connected graph is a tree if it has one edge less than nodes.
    np.testing.assert_array_equal(_passages(perfect).sum((1, 2)) / 2, perfect.sum((1, 2)) - 1)
    assert (_passages(braided).sum((1, 2)) / 2 >= braided.sum((1, 2))).mean() > 0.8
    assert (_passages(braided) == 1).mean() < 0.7 * (_passages(perfect) == 1).mean()


def test_the_protocols_mazes():
    assert _maps("protocol")[:, 1::2, 1::2].all()


def test_wide_corridors_have_no_narrow_places():
    free = _maps("wide_corridors", (21, 30)) == 1
    square = np.pad(_squares(free), ((0, 0), (1, 1), (1, 1)))
    covered = square[:, 1:, 1:] | square[:, :-1, 1:] | square[:, 1:, :-1] | square[:, :-1, :-1]
    np.testing.assert_array_equal(covered, free)


def test_thick_walls_are_thick():
    maze = _maps("thick_walls")
    assert _squares(maze[:, 1:-1, 1:-1] == 0).any((1, 2)).all()
    assert _connected(maze).all()
    # No inner wall is thin: a wall cell between two free ones.
    assert not ((maze[:, :, :-2] & maze[:, :, 2:]) > maze[:, :, 1:-1]).any()


@pytest.mark.parametrize("name", ["spirals", "detours"])
def test_long_ways(name):
    assert _longest(name) > 1.3 * _longest("fields")
    assert _connected(_maps(name)).all()


@pytest.mark.parametrize("name", ["rooms", "dungeons", "tunnels"])
def test_chambers_are_connected(name):
    for size in ((7, 7), (15, 25)):
        assert _connected(_maps(name, size)).all()


def test_rooms_have_doors():
    """A door is a free cell in a wall: walls on two opposite sides of it, and ways through it."""
    maze = _maps("rooms", (21, 21))
    level = maze[:, 1:-1, 1:-1] > (maze[:, 1:-1, :-2] | maze[:, 1:-1, 2:])
    upright = maze[:, 1:-1, 1:-1] > (maze[:, :-2, 1:-1] | maze[:, 2:, 1:-1])
    assert (level | upright).any((1, 2)).mean() > 0.9


def test_tunnels_are_dug_so_far():
    share = _maps("tunnels", (21, 21)).sum((1, 2)) / 19**2
    assert share.min() >= 0.14
    assert share.max() <= 0.5
    assert np.ptp(share) > 0.2


def test_caves_are_smoother_than_noise():
    def roughness(family):
        maze = _maps(family, (25, 25))[:, 1:-1, 1:-1].astype(int)
        edges = np.abs(np.diff(maze, axis=1)).mean()
        return edges / (maze.mean() * (1 - maze.mean()))

    assert roughness("caves") < 0.5 * roughness("obstacles")


def test_densities():
    walls = {name: 1 - _maps(name, (21, 21), 120)[:, 1:-1, 1:-1].mean((1, 2)) for name in FAMILIES}
    scattered = walls["obstacles"]
    assert np.histogram(scattered, [0.0, 0.15, 0.25, 0.35, 0.55])[0].min() > 15
    assert (scattered.min() > 0.01) & (scattered.max() < 0.55)
    assert walls["fields"].max() < 0.1
    assert 0.2 < walls["blocks"].mean() < 0.35
    # All together, maps are of every density.
    together = np.concatenate(list(walls.values()))
    assert np.histogram(together, np.linspace(0, 0.9, 10))[0].min() > 20


def test_blocks_barriers_and_pillars():
    assert _squares(_maps("blocks")[:, 1:-1, 1:-1] == 0).any((1, 2)).mean() > 0.9
    wall = _maps("barriers")[:, 1:-1, 1:-1] == 0
    level, upright = wall[:, :, 2:] & wall[:, :, 1:-1] & wall[:, :, :-2], wall[:, 2:] & wall[:, :-2]
    assert (level.any((1, 2)) | (upright & wall[:, 1:-1]).any((1, 2))).all()
    pillars = _maps("pillars", (15, 25))
    assert _connected(pillars).mean() > 0.9
    assert (_maps("pillars")[:, 1:-1, 1:-1] == 0).any((1, 2)).mean() > 0.9


def test_slants_have_steps():
    """Corners are where one or three of four cells are walls; straight walls have few of them."""

    def corners(family):
        wall = (_maps(family, (25, 25)) == 0).astype(int)
        four = wall[:, 1:, 1:] + wall[:, :-1, 1:] + wall[:, 1:, :-1] + wall[:, :-1, :-1]
        return (four % 2).sum() / wall[:, 1:-1, 1:-1].sum()

    assert corners("slants") > 1.5 * corners("barriers")


def test_bug_traps_are_concave():
    """From some free cell one looks at inner walls in three of the four directions."""
    wall = np.pad(_maps("bug_traps")[:, 1:-1, 1:-1] == 0, ((0, 0), (1, 1), (1, 1)))
    seen = sum(
        np.flip(np.maximum.accumulate(np.flip(wall, flip), axis=axis), flip).astype(int)
        for axis in (1, 2)
        for flip in ((), axis)
    )
    assert ((seen >= 3) & ~wall).any((1, 2)).mean() > 0.95


def test_bordered_maps_have_all_sizes():
    maze = _maps("caves,bordered:9", (20, 30), 600)
    for axis, side in ((2, 20), (1, 30)):
        inside = maze.any(axis)
        extent = side - inside.argmax(1) - inside[:, ::-1].argmax(1)
        assert extent.min() < 6
        assert extent.max() == side - 2
        assert len(np.unique(extent)) > 10
        assert len(np.unique(inside.argmax(1))) > 8
    # Alone, it stands for all families.
    assert len({x.tobytes() for x in _maps("bordered", n=200)}) > 150


def test_mixture_by_weights():
    maze = _maps("fields:3,perfect:1", (15, 15), 1000)
    assert (maze.mean((1, 2)) > 0.7).mean() == pytest.approx(0.75, abs=0.05)
    np.testing.assert_array_equal(_maps("rooms"), _maps("rooms:7"))


@pytest.mark.parametrize(
    ("families", "message"),
    [
        ("caverns", r"unknown family 'caverns': expected one of .*braided, bug_traps, caves"),
        ("", "unknown family ''"),
        ("caves,rooms,", "unknown family ''"),
        ("caves:", "the weight of caves is '', expected a number above 0"),
        ("caves:0", "the weight of caves is '0'"),
        ("rooms,caves:-1", "the weight of caves is '-1'"),
        ("caves:nan", "the weight of caves is 'nan'"),
        ("caves:inf", "the weight of caves is 'inf'"),
        ("caves,caves:2", "families has caves twice"),
    ],
)
def test_impossible_mixtures_are_refused(families, message):
    with pytest.raises(ValueError, match=message):
        MapLaw((9, 9), families)


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="no maps of 6×9: both sides must be at least 7"):
        MapLaw((6, 9), "caves")
    with pytest.raises(ValueError, match="too many for 16 bits"):
        MapLaw((60_000, 60_000), "caves")


def test_a_data_set_of_families(tmp_path):
    def make(mechanism):
        law = MapLaw((9, 11), "caves:2,rooms,bordered")
        return make_mazes(
            law=law, mechanism=MECHANISMS[mechanism], train=100, valid=9, test=5, seed=3
        )

    mazes = make("diffdrive")
    assert len({maze.tobytes() for maze in mazes.train.maze}) == 100
    np.testing.assert_array_equal(mazes.train.maze, make("news").train.maze)
    save_mazes(tmp_path / "maps.npz", mazes)
    again = load_mazes(tmp_path / "maps.npz")
    assert again.families == "caves:2,rooms,bordered"
    assert np.isnan(again.decimation).all()
    np.testing.assert_array_equal(again.test.label, mazes.test.label)


def test_too_few_maps_of_a_family(monkeypatch):
    monkeypatch.setattr(datasets, "WINDOW", 512)
    with pytest.raises(ValueError, match=r"draws of 7×7 maps of wide_corridors gave only \d+, and"):
        make_mazes(
            law=MapLaw((7, 7), "wide_corridors"),
            mechanism=MECHANISMS["news"],
            train=1000,
            valid=0,
            test=0,
            seed=0,
        )
