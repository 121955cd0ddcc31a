import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.maps.images import from_png


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


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA", "P", "LA"])
def test_png_of_any_kind(tmp_path, mode):
    maze = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint8)
    Image.fromarray(maze * 255).convert(mode).save(tmp_path / "map.png")
    np.testing.assert_array_equal(from_png(tmp_path / "map.png").maze, maze)


def test_unknown_of_robots_is_no_white(tmp_path):
    Image.fromarray(np.array([[0, 205, 254]], np.uint8)).save(tmp_path / "map.png")
    with pytest.raises(ValueError, match=r"column 1 is grey \(205/255\)"):
        from_png(tmp_path / "map.png")


def test_half_transparent(tmp_path):
    pixels = np.array([[[0, 0, 0, 64], [0, 0, 0, 192], [200, 200, 200, 255]]], np.uint8)
    Image.fromarray(pixels).save(tmp_path / "map.png")
    assert from_png(tmp_path / "map.png", threshold=191).maze.tolist() == [[1, 0, 1]]
    assert from_png(tmp_path / "map.png", threshold=192).maze.tolist() == [[0, 0, 1]]


def test_transparent_is_white(tmp_path):
    pixels = np.zeros((1, 2, 4), dtype=np.uint8)
    pixels[0, 0, 3] = 255
    Image.fromarray(pixels).save(tmp_path / "map.png")
    assert from_png(tmp_path / "map.png").maze.tolist() == [[0, 1]]


@pytest.mark.parametrize("cell", [1, 2, 5])
def test_images_in_grey(tmp_path, cell):
    """Walls that are drawn smoothly: a cell is free if all of its pixels are light enough."""
    grey = np.random.default_rng(0).integers(0, 256, (11, 10)).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "map.png")
    expected = [
        [int((grey[i : i + cell, j : j + cell] >= 60).sum() == cell**2) for j in range(0, 10, cell)]
        for i in range(0, 11, cell)
    ]
    assert from_png(tmp_path / "map.png", cell=cell, threshold=60).maze.tolist() == expected


@pytest.mark.parametrize("threshold", [-1, 256, "x", float("nan")])
def test_bad_thresholds(tmp_path, threshold):
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "map.png")
    with pytest.raises(ValueError, match=f"threshold is {threshold}, expected a grey level"):
        from_png(tmp_path / "map.png", threshold=threshold)
