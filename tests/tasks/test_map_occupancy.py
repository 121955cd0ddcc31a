import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.map_files import read_map

ABOUT = """\
image: lab.pgm  # beside this file
resolution: 0.050000
origin: [-10.0, -10.0, 0.0]
negate: 0
occupied_thresh: 0.65
free_thresh: 0.196
"""
# As map_saver writes them: free, unknown, occupied.
FREE, UNKNOWN, OCCUPIED = 254, 205, 0
PIXELS = np.array([[OCCUPIED, FREE, FREE], [UNKNOWN, FREE, 206]], np.uint8)
MAZE = [[0, 1, 1], [0, 1, 1]]


@pytest.fixture
def lab(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "lab.pgm")
    path = tmp_path / "lab.yaml"
    path.write_text(ABOUT)
    return path


def test_what_is_not_known_to_be_free_is_a_wall(lab):
    own = read_map(lab)
    assert own.maze.tolist() == MAZE
    assert own.maze.dtype == np.uint8
    assert (own.start, own.goal, own.name) == (None, None, str(lab))


def test_thresholds_and_negation(lab):
    lab.write_text(ABOUT.replace("0.196", "0.25"))  # 205 is occupied with 0.196
    assert read_map(lab).maze.tolist() == [[0, 1, 1], [1, 1, 1]]
    lab.write_text(ABOUT.replace("negate: 0", "negate: 1"))
    assert read_map(lab).maze.tolist() == [[1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["map of lab.png", "lab.bmp", "other/lab.ppm"])
@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_images_of_other_kinds(lab, name, quote):
    (lab.parent / name).parent.mkdir(exist_ok=True)
    Image.fromarray(PIXELS).convert("RGB").save(lab.parent / name)
    lab.write_text(ABOUT.replace("lab.pgm", f"{quote}{name}{quote}"))
    assert read_map(lab).maze.tolist() == MAZE


def test_transparent_is_unknown(lab):
    image = Image.fromarray(np.full((1, 2), FREE, np.uint8)).convert("RGBA")
    image.putpixel((1, 0), (254, 254, 254, 0))
    image.save(lab.parent / "lab.png")
    lab.write_text(ABOUT.replace("lab.pgm", "lab.png"))
    assert read_map(lab).maze.tolist() == [[1, 0]]


@pytest.mark.parametrize("cell", [1, 2, 3, 7, 10**9])
def test_a_cell_is_free_if_all_of_it_is(lab, cell):
    free = np.random.default_rng(0).random((13, 12)) < 0.9
    Image.fromarray(np.where(free, FREE, UNKNOWN).astype(np.uint8)).save(lab.parent / "lab.pgm")
    expected = [
        [
            int(free[i : i + cell, j : j + cell].sum() == cell**2)  # also not beyond the image
            for j in range(0, 12, cell)
        ]
        for i in range(0, 13, cell)
    ]
    assert read_map(lab, cell=cell).maze.tolist() == expected


@pytest.mark.parametrize(
    ("said", "instead", "message"),
    [
        ("image: lab.pgm", "", "lab.yaml names no image"),
        ("lab.pgm", "gone.pgm", "gone.pgm: there is no such file"),
        ("lab.pgm", "lab.yaml", "lab.yaml is not an image in PPM or PNG or BMP format"),
        ("lab.pgm", ".", "is a folder, expected a file"),
        ("negate: 0", "negate: no", "negate is 'no', expected 0 or 1"),
        ("negate: 0", "mode: raw", "mode is 'raw', expected trinary or scale"),
        ("free_thresh: 0.196", "", "free_thresh is nothing, expected a number from 0 to 1"),
        ("0.196", "nan", "free_thresh is nan, expected a number from 0 to 1"),
        ("0.196", "[0.1]", "free_thresh is .0.1., expected a number from 0 to 1"),
    ],
)
def test_bad_descriptions_are_explained(lab, said, instead, message):
    lab.write_text(ABOUT.replace(said, instead))
    with pytest.raises(ValueError, match=message):
        read_map(lab)


def test_bad_files_are_explained(lab):
    lab.write_bytes(b"image: \xff")
    with pytest.raises(ValueError, match=r"lab\.yaml is not a text in UTF-8"):
        read_map(lab)
    lab.write_text(ABOUT)
    with pytest.raises(ValueError, match="a cell is 0 pixels wide"):
        read_map(lab, cell=0)
