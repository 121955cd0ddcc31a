"""How large a cell is drawn, for marks that stay visible on large maps."""

from typing import Any

import numpy as np

from hvin_jax._extras import needs

with needs("drawing", "matplotlib", extra="draw"):
    from matplotlib.axes import Axes
    from matplotlib.transforms import Affine2DBase


class CellScale(Affine2DBase):
    """From cells to pixels around (0, 0), as if cells had at least so many points."""

    def __init__(self, axes: Axes, *, least: float) -> None:
        """Follows the axes when these change."""
        super().__init__()
        self._axes, self._least = axes, least
        self.set_children(axes.transData)

    def get_matrix(self) -> Any:
        """The 3×3 matrix; rows point down."""
        figure = self._axes.get_figure(root=True)
        assert figure is not None
        size = max(
            self._axes.transData.get_affine().get_matrix()[0, 0], self._least * figure.dpi / 72
        )
        return np.diag([size, -size, 1.0])
