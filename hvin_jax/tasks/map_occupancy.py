"""Maps that robots have made: the occupancy grids of ROS, an image and a `.yaml` about it."""

import os
import pathlib
import re

from hvin_jax._files import check_file
from hvin_jax.tasks.map_images import free_cells, read_image
from hvin_jax.tasks.own_maps import OwnMap

_FORMATS = ("PPM", "PNG", "BMP")  # as map_saver writes them; that of .pgm is one of the first
_LONGEST = 2**16  # characters about an image
_KEY = re.compile(r"^(\w+)[ \t]*:[ \t]*(?:\"(.*)\"|'(.*)'|(.*?))[ \t]*(?:#.*)?$", re.MULTILINE)
_NEGATED = {"0": False, "false": False, "1": True, "true": True}


def from_ros(path: str | os.PathLike[str], *, cell: int = 1) -> OwnMap:
    """A map of [ROS](http://wiki.ros.org/map_server), as `map_saver` writes it.

    A pixel x is occupied with the probability p = (255 - x) / 255 (`negate`: x / 255), and free if
    p is less than `free_thresh`. What is occupied or unknown is a wall.

    Args:
      path: the `.yaml`, which names the image.
      cell: how many pixels wide and high a cell of the map is. A cell is free if all of them are,
        and none that the image ends in.

    Returns:
      The map, without start and goal.
    """
    about = _about(path)
    if "image" not in about:
        raise ValueError(f"{path} names no image, as a map of ROS does by image: FILE")
    if about.get("mode", "trinary") not in ("trinary", "scale"):
        raise ValueError(f"{path}: mode is {about['mode']!r}, expected trinary or scale")
    negate = _NEGATED.get(about.get("negate", "0").lower())
    if negate is None:
        raise ValueError(f"{path}: negate is {about['negate']!r}, expected 0 or 1")
    threshold = _probability(about, "free_thresh", path)
    image = read_image(pathlib.Path(path).parent / about["image"], _FORMATS, cell)
    grey = image[..., :3].mean(-1)
    occupied = (grey if negate else 255 - grey) / 255
    free = (occupied < threshold) & (image[..., 3] == 255)
    return OwnMap(free_cells(free, cell))


def _about(path: str | os.PathLike[str]) -> dict[str, str]:
    """What is said of an image: of YAML as much as these files use."""
    check_file(path)
    with open(path, encoding="utf-8") as file:
        try:
            text = file.read(_LONGEST)
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a text in UTF-8: {error.reason}") from error
    return {key: double or single or plain for key, double, single, plain in _KEY.findall(text)}


def _probability(about: dict[str, str], key: str, path: str | os.PathLike[str]) -> float:
    said = about.get(key, "nothing")
    try:
        number = float(said)
    except ValueError:
        number = -1
    if not 0 <= number <= 1:
        raise ValueError(f"{path}: {key} is {said[:40]}, expected a number from 0 to 1")
    return number
