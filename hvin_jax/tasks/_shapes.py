"""Signs for pictures of mazes: outlines measured in cells, so that they fit a map of any size.

An outline is a float array `[k, 2]` of points (x, y) around (0, 0); y points down as rows do.
"""

import numpy as np


def disc(radius: float) -> np.ndarray:
    """A circle."""
    return radius * _unit(np.linspace(0, 360, 33))


def star(radius: float) -> np.ndarray:
    """A star with five points, one of them up."""
    radii = np.where(np.arange(11) % 2 == 0, radius, 0.42 * radius)
    return radii[:, None] * _unit(-90 + np.linspace(0, 360, 11))


def pointer(radius: float) -> np.ndarray:
    """An arrowhead without a shaft that points up."""
    return radius * np.array([[0, -1], [0.8, 0.8], [0, 0.4], [-0.8, 0.8]])


def arrow(length: float) -> np.ndarray:
    """A straight arrow that points up."""
    half = np.array([[0, -0.5], [0.28, -0.14], [0.09, -0.14], [0.09, 0.5]])
    return length * _mirror_join(half)


def bent_arrow(size: float, *, clockwise: bool) -> np.ndarray:
    """An arrow that comes from below and bends to the right if clockwise, else to the left."""
    outer, inner = 0.5 * _unit(np.linspace(180, 270, 9)), 0.32 * _unit(np.linspace(270, 180, 9))
    head = np.array([[0, -0.69], [0.36, -0.41], [0, -0.13]])
    shaft = np.array([[-0.32, 0.4], [-0.5, 0.4]])
    outline = np.concatenate([outer, head, inner, shaft])
    return size * (outline + np.array([0.1, 0.12])) * np.array([1 if clockwise else -1, 1])


def segment(start: np.ndarray, end: np.ndarray, *, width: float) -> np.ndarray:
    """A thick line from one point `[2]` to another `[2]`, half a width longer at both ends."""
    along = (end - start) / np.linalg.norm(end - start) * width / 2
    across = np.array([-along[1], along[0]])
    return np.stack(
        [start - along - across, end + along - across, end + along + across, start - along + across]
    )


def turned(outline: np.ndarray, towards: tuple[int, int]) -> np.ndarray:
    """An outline turned so that what pointed up points towards (rows, columns)."""
    rows, columns = np.array(towards) / np.linalg.norm(towards)
    return outline @ np.array([[-rows, columns], [-columns, -rows]])


def _unit(degrees: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def _mirror_join(half: np.ndarray) -> np.ndarray:
    return np.concatenate([half, half[::-1] * [-1, 1]])
