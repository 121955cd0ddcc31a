"""Digests of arrays, by which files and folders know them again."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest_of(arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of arrays with their names, types and shapes, in hexadecimal digits."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        array = np.asarray(array)
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
