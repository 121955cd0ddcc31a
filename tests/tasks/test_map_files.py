import maze_oracle
import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.maps.files import read_map, read_maps
from hvin_jax.tasks.maps.images import to_png
from hvin_jax.tasks.maps.own_map import from_array
from hvin_jax.tasks.maps.texts import from_text, to_text

DRAWING = "#######\n#S..#.#\n#.#.#.#\n#.#..G#\n#######\n"


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
    np.savetxt(tmp_path / "map.csv", own.maze, delimiter=",")
    for name in ("map.txt", "map.npy", "map.csv"):
        np.testing.assert_array_equal(read_map(tmp_path / name).maze, own.maze)


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
    (tmp_path / "map.csv").write_bytes(b"0,1\xff\n")
    with pytest.raises(ValueError, match=r"map\.csv is not a text in UTF-8, as a table of 0 and 1"):
        read_map(tmp_path / "map.csv")
    for kind in ("txt", "map"):
        (tmp_path / f"map.{kind}").write_text("..\n.x")
        with pytest.raises(ValueError, match=rf"map\.{kind}: unknown character 'x' in line 2, col"):
            read_map(tmp_path / f"map.{kind}")
    (tmp_path / "map.gif").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a map is a drawing \(\.txt\), .* not '\.gif'"):
        read_map(tmp_path / "map.gif")
    with pytest.raises(ValueError, match="no such file"):
        read_map(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("map.txt", {"cell": 2}, "a drawing has no cell, only .png or .yaml"),
        ("map.npy", {"threshold": 9}, "an array of 0 and 1 has no threshold, only .png"),
        ("map.yaml", {"threshold": 9}, "a map of ROS has no threshold, only .png"),
    ],
)
def test_options_of_other_kinds(tmp_path, name, options, message):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        read_map(tmp_path / name, **options)


def test_maps_in_a_folder(tmp_path):
    """Of all kinds; images that maps of ROS name are no maps of their own."""
    with pytest.raises(ValueError, match=r"has no maps: no file that ends in \.txt, \.map, \.png"):
        read_maps(tmp_path)
    image = Image.fromarray(np.full((4, 4), 230, np.uint8))
    for name in ("a.PNG", "c.png", "image of c.png"):
        image.save(tmp_path / name)
    (tmp_path / "b.txt").write_text(DRAWING)
    (tmp_path / "c.yml").write_text('image: "image of c.png"\nfree_thresh: 0.2\n')
    (tmp_path / "notes.md").touch()
    read = read_maps(tmp_path, cell=2, threshold=99)
    assert [own.name for own in read] == [
        str(tmp_path / name) for name in ("a.PNG", "b.txt", "c.png", "c.yml")
    ]
    assert [own.maze.shape for own in read] == [(2, 2), (5, 7), (2, 2), (2, 2)]
