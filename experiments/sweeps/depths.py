r"""The paper's 2D tables at full size: four models at eight depths, three seeds. For GPUs.

    python -m experiments.sweep --config=experiments/sweeps/depths.py
    python -m experiments.sweep --config=experiments/sweeps/depths.py:25 --config.gpus=0.5

Both maze sizes, or the one after the colon; one GPU for each run. The runs are those of
`python -m experiments.study --name=depths --scale=paper`, in the same folders.
"""

import dataclasses

from experiments.grids import Sweep
from experiments.grids.studies import DEPTHS, depths_grids, study


def get_config(size: str = "") -> Sweep:
    """All rows of the tables for one maze size, or for both."""
    if size and size not in map(str, DEPTHS):
        sizes = " or ".join(map(str, DEPTHS))
        raise ValueError(f"the paper's mazes have size {sizes}, not {size}")
    grids = depths_grids([int(size)] if size else DEPTHS)
    sweep = study("paper", "depths")
    return dataclasses.replace(sweep, grids=grids, seeds=(0, 1, 2), gpus=1.0, cpus=2.0)
