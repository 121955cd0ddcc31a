"""Connected parts of maps, by moves to the four neighbours."""

import numpy as np


def largest_components(maze: np.ndarray) -> np.ndarray:
    """The largest connected part of each map; of equal ones, the one that begins first.

    All cells of all maps are joined at once: each part has its lowest cell as its root, and parts
    that touch are hooked to the lower root until none do.

    Args:
      maze: `[n, H, W]`, 1 = free, 0 = wall.

    Returns:
      bool `[n, H, W]`.
    """
    free = maze != 0
    cell = np.arange(maze.size).reshape(maze.shape)
    beside, below = free[:, :, 1:] & free[:, :, :-1], free[:, 1:] & free[:, :-1]
    first = np.concatenate([cell[:, :, :-1][beside], cell[:, :-1][below]])
    second = np.concatenate([cell[:, :, 1:][beside], cell[:, 1:][below]])
    root = cell.ravel()
    while True:
        one, other = root[first], root[second]
        apart = one != other
        if not apart.any():
            break
        first, second, one, other = first[apart], second[apart], one[apart], other[apart]
        root = root.copy()
        np.minimum.at(root, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(higher := root[root], root):
            root = higher
    count = np.bincount(root[free.ravel()], minlength=maze.size).reshape(len(maze), -1)
    largest = count.argmax(axis=1) + np.arange(len(maze)) * count.shape[1]
    return (root.reshape(maze.shape) == largest[:, None, None]) & free
