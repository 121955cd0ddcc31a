import maze_oracle
import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.own_maps import (
    OwnMap,
    from_array,
    from_png,
    from_text,
    read_map,
    to_png,
    to_text,
)

DRAWING = "#######\n#S..#.#\n#.#.#.#\n#.#..G#\n#######\n"


def test_images_of_16_bits(tmp_path):
    """Scaled, not cut off at 255."""
    maze = np.array([[0, 1, 0], [1, 1, 0]], np.uint8)
    Image.fromarray(np.where(maze, 60000, 2000).astype(np.uint16)).save(tmp_path / "map.png")
    np.testing.assert_array_equal(from_png(tmp_path / "map.png").maze, maze)
    Image.fromarray(np.full((2, 2), 30000, np.uint16)).save(tmp_path / "map.png")
    with pytest.raises(ValueError, match=r"pixel in row 0, column 0 is grey \(116/255\)"):
        from_png(tmp_path / "map.png")


@pytest.mark.parametrize("colour", [(0, 0, 255), (255, 255, 0), (255, 0, 0)])
def test_colours_are_no_cells(tmp_path, colour):
    pixels = np.full((2, 3, 3), 255, np.uint8)
    pixels[1, 2] = colour
    Image.fromarray(pixels).save(tmp_path / "map.png")
    with pytest.raises(ValueError, match="pixel in row 1, column 2 is coloured"):
        from_png(tmp_path / "map.png")


def test_blank_lines_around_a_drawing():
    assert from_text("  \n###\n#S#\n###\n   \n\n").maze.shape == (3, 3)
    with pytest.raises(ValueError, match="unknown character ' ' in line 1, column 1 of"):
        from_text("  ###\n  #S#\n")


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


def test_a_byte_order_mark_is_no_cell(tmp_path):
    (tmp_path / "map.txt").write_text(DRAWING, encoding="utf-8-sig")
    assert to_text(read_map(tmp_path / "map.txt")) == DRAWING


@pytest.mark.parametrize("size", [(1, 1), (1, 8), (8, 1), (6, 9)])
def test_round_trips(tmp_path, size):
    maze, goal = maze_oracle.random_maps(5, size, seed=2)
    for index, one in enumerate(maze):
        cell = tuple(int(i) for i in goal[index, :2])
        own = from_array(one.astype(np.float64), goal=cell)
        assert own.maze.dtype == np.uint8
        again = from_text(to_text(own))
        np.testing.assert_array_equal(again.maze, one)
        assert again.goal == cell
        assert again.start is None
        for pixels in (1, 4):
            to_png(own, tmp_path / "map.png", cell=pixels)
            with Image.open(tmp_path / "map.png") as image:
                assert image.size == (size[1] * pixels, size[0] * pixels)
            np.testing.assert_array_equal(read_map(tmp_path / "map.png", cell=pixels).maze, one)
    (tmp_path / "map.txt").write_text(to_text(own))
    np.save(tmp_path / "map.npy", own.maze)
    for name in ("map.txt", "map.npy"):
        np.testing.assert_array_equal(read_map(tmp_path / name).maze, own.maze)


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "P", "LA"])
def test_png_of_any_kind(tmp_path, mode):
    maze = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
    Image.fromarray(maze * 255).convert(mode).save(tmp_path / "map.png")
    np.testing.assert_array_equal(from_png(tmp_path / "map.png").maze, maze)


def test_transparent_is_white(tmp_path):
    pixels = np.zeros((1, 2, 4), dtype=np.uint8)
    pixels[0, 0, 3] = 255
    Image.fromarray(pixels).save(tmp_path / "map.png")
    assert from_png(tmp_path / "map.png").maze.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "drawing of the map is empty"),
        ("\n\n", "drawing of the map is empty"),
        ("..\n...", "line 2 of the map has 3 cells, the first has 2"),
        ("..\n.x", "unknown character 'x' in line 2, column 2 of the map: expected # "),
        ("S.\n.S", "a second S in line 2, column 2"),
    ],
)
def test_bad_drawings_are_explained(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        from_text(text)
    (tmp_path / "map.txt").write_text(text)
    with pytest.raises(ValueError, match=rf"map\.txt: .*{message}"):
        read_map(tmp_path / "map.txt")


def test_bad_arrays_are_explained():
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \[H, W\]"):
        from_array(np.ones(3))
    with pytest.raises(ValueError, match="values other than 0"):
        from_array(np.full((2, 2), 255))
    with pytest.raises(ValueError, match="of type complex128, expected numbers 0 and 1"):
        from_array(np.ones((2, 2), complex))
    with pytest.raises(ValueError, match=r"the goal \(0, 2\) is outside of the 2×2 map"):
        OwnMap(np.ones((2, 2)), goal=(0, 2))
    with pytest.raises(ValueError, match=r"the start \(0, 0\) is on a wall"):
        OwnMap(np.zeros((2, 2)), start=(0, 0))


def test_bad_files_are_explained(tmp_path):
    Image.fromarray(np.array([[0, 128, 255]], dtype=np.uint8)).save(tmp_path / "grey.png")
    with pytest.raises(ValueError, match=r"pixel in row 0, column 1 is grey \(128/255\)"):
        read_map(tmp_path / "grey.png")
    Image.fromarray(np.array([[0, 255, 255, 255]], dtype=np.uint8)).save(tmp_path / "m.png")
    with pytest.raises(ValueError, match="has 1×4 pixels, not a grid of 2×2 cells"):
        read_map(tmp_path / "m.png", cell=2)
    Image.fromarray(np.array([[0, 255], [0, 255]], dtype=np.uint8)).save(tmp_path / "m.png")
    with pytest.raises(ValueError, match="cells of 2×2 pixels are black and white at once"):
        read_map(tmp_path / "m.png", cell=2)
    (tmp_path / "text.png").write_text("....")
    with pytest.raises(ValueError, match=r"text\.png is not an image"):
        read_map(tmp_path / "text.png")
    Image.new("L", (4, 4)).save(tmp_path / "jpeg.png", format="JPEG")
    with pytest.raises(ValueError, match=r"jpeg\.png is not an image in PNG format"):
        read_map(tmp_path / "jpeg.png")
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"empty\.npy: "):
        read_map(tmp_path / "empty.npy")
    (tmp_path / "map.gif").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a map is a \.txt drawing, .* not '\.gif'"):
        read_map(tmp_path / "map.gif")
    with pytest.raises(ValueError, match="no such file"):
        read_map(tmp_path / "none.txt")
