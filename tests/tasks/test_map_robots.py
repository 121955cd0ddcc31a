import numpy as np
import pytest
from PIL import Image

from hvin_jax.tasks.maps.files import read_map

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
    lab.write_text(ABOUT.replace("0.196", "0.19"))  # 206 is occupied with 0.192
    assert read_map(lab).maze.tolist() == [[0, 1, 1], [0, 1, 0]]
    for negate in ("1", "true", "yes"):
        lab.write_text(f"\ufeff{ABOUT}".replace("negate: 0", f'"negate": {negate}'))
        assert read_map(lab).maze.tolist() == [[1, 0, 0], [0, 0, 0]]


def test_what_was_written_for_unknown_is_a_wall(lab):
    """With Nav2's thresholds 205 would be free; it writes that for unknown all the same."""
    lab.write_text(ABOUT.replace("0.196", "0.25"))
    assert read_map(lab).maze.tolist() == MAZE


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


@pytest.mark.parametrize("cell", [1, 2, 3, 7, 13])
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
        ("image: lab.pgm", "image:", "lab.yaml names no image"),
        ("negate: 0", "negate: 2", "negate is 2, expected 0 or 1"),
        ("negate: 0", "mode: raw", "mode is raw, expected trinary or scale"),
        ("negate: 0", "mode: &a [1, *a]", "mode is a list, expected trinary or scale"),
        ("negate: 0", " negate: 0", "is not YAML, as a map of ROS is: "),
        ("negate: 0", "#" * 70_000, "has more than 65,536 bytes"),
        ("0.65", "0.1", "free_thresh is above occupied_thresh"),
        ("free_thresh: 0.196", "", "free_thresh is nothing, expected a number from 0 to 1"),
        ("0.196", "nan", "free_thresh is nan, expected a number from 0 to 1"),
        ("0.196", "[0.1]", "free_thresh is a list, expected a number from 0 to 1"),
    ],
)
def test_bad_descriptions_are_explained(lab, said, instead, message):
    lab.write_text(ABOUT.replace(said, instead))
    with pytest.raises(ValueError, match=message):
        read_map(lab)


def test_bad_files_are_explained(lab):
    lab.write_bytes(b"image: \xff")
    with pytest.raises(ValueError, match=r"lab\.yaml is not YAML, as a map of ROS is: "):
        read_map(lab)
    lab.write_text("[" * 10_000)
    with pytest.raises(ValueError, match=r"lab\.yaml is not YAML, as a map of ROS is: "):
        read_map(lab)
    lab.write_text("lab.pgm")
    with pytest.raises(ValueError, match="is not a map of ROS, which names its image by image: F"):
        read_map(lab)


@pytest.mark.parametrize("cell", [0, 4, 2**63, 10**30])
def test_bad_cells_are_explained(lab, cell):
    with pytest.raises(ValueError, match=f"a cell is {cell} pixels wide, "):
        read_map(lab, cell=cell)


@pytest.mark.parametrize("cell", [1.5, "2", None])
def test_cells_of_other_types(lab, cell):
    with pytest.raises(TypeError, match="pixels wide, expected a whole number"):
        read_map(lab, cell=cell)


def test_images_of_real_numbers(lab):
    Image.fromarray(PIXELS.astype(np.float32)).save(lab.parent / "lab.pfm", format="PPM")
    lab.write_text(ABOUT.replace("lab.pgm", "lab.pfm"))
    with pytest.raises(ValueError, match=r"lab\.pfm is damaged: its pixels are real numbers"):
        read_map(lab)
