import numpy as np
import pytest

from hvin_jax.tasks.maps.own_map import OwnMap, from_array


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
