"""Maps that robots have made: the occupancy grids of ROS, an image and a `.yaml` about it."""

import os
import pathlib
from typing import Any

import numpy as np

from hvin_jax._extras import needs
from hvin_jax._files import check_file
from hvin_jax.tasks.maps.images import brightness, free_cells, read_image
from hvin_jax.tasks.maps.own_map import OwnMap

_FORMATS = ("PPM", "PNG", "BMP")  # as map_saver writes them; that of .pgm is one of the first
_LARGEST = 2**16  # bytes about an image
_UNKNOWN = 205  # what map_saver writes for unknown, whatever thresholds it writes


def from_ros(path: str | os.PathLike[str], *, cell: int = 1) -> OwnMap:
    """A map of [ROS](http://wiki.ros.org/map_server), as `map_saver` writes it.

    A pixel x is occupied with the probability p = (255 - x) / 255 (`negate`: x / 255), and free if
    p is less than `free_thresh`. What is occupied or unknown is a wall, 205 in any case: the
    thresholds of Nav2 would have it free, though its own `map_saver` writes it for unknown.

    Args:
      path: the `.yaml`, which names the image.
      cell: how many pixels wide and high a cell of the map is. A cell is free if all of them are,
        and none that the image ends in.

    Returns:
      The map, without start and goal.
    """
    about = _about(path)
    if (mode := _shown(about.get("mode", "trinary"))).lower() not in ("trinary", "scale"):
        raise ValueError(f"{path}: mode is {mode}, expected trinary or scale")
    if (negate := about.get("negate", 0)) not in (0, 1):
        raise ValueError(f"{path}: negate is {_shown(negate)}, expected 0 or 1")
    free_below = _probability(about, "free_thresh", path)
    if "occupied_thresh" in about and _probability(about, "occupied_thresh", path) < free_below:
        raise ValueError(f"{path}: free_thresh is above occupied_thresh")
    image = read_image(_image_of(path, about), _FORMATS, cell)
    x = np.arange(3 * 255 + 1)  # red, green and blue together
    occupied = (x if negate else 3 * 255 - x) / (3 * 255)
    free = ((occupied < free_below) & (x != 3 * _UNKNOWN))[brightness(image)]
    return OwnMap(free_cells(free & (image[..., 3] == 255), cell))


def image_of(path: str | os.PathLike[str]) -> pathlib.Path:
    """The image that a `.yaml` names."""
    return _image_of(path, _about(path))


def _about(path: str | os.PathLike[str]) -> dict[Any, Any]:
    """What is said of an image."""
    with needs("reading a map of ROS", "pyyaml", extra="draw"):
        import yaml
    check_file(path)
    with open(path, "rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"{path} has more than {_LARGEST:,} bytes, too many for a map of ROS")
    try:
        about = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise ValueError(f"{path} is not YAML, as a map of ROS is: {str(said)[:80]}") from error
    if not isinstance(about, dict):
        raise ValueError(f"{path} is not a map of ROS, which names its image by image: FILE")
    return about


def _image_of(path: str | os.PathLike[str], about: dict[Any, Any]) -> pathlib.Path:
    name = about.get("image")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{path} names no image, as a map of ROS does by image: FILE")
    return pathlib.Path(path).parent / name


def _probability(about: dict[Any, Any], key: str, path: str | os.PathLike[str]) -> float:
    said = about.get(key, "nothing")
    try:
        number = float(said)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if isinstance(said, bool) or not 0 <= number <= 1:
        raise ValueError(f"{path}: {key} is {_shown(said)}, expected a number from 0 to 1")
    return number


def _shown(said: Any) -> str:
    """What a file says of something; other things than words and numbers may be endless."""
    plain = isinstance(said, str | float | bool) or (isinstance(said, int) and abs(said) < 10**9)
    return str(said)[:40] if plain else f"a {type(said).__name__}"
