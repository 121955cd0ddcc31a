r"""The paper's 2D tables at full size: four models at eight depths, three seeds. For GPUs.

    python -m experiments.sweep --config=experiments/sweeps/depths.py
    python -m experiments.sweep --config=experiments/sweeps/depths.py:25 --config.gpus=0.5

Both maze sizes, or the one after the colon; one GPU for each run. The runs are those of
`python -m experiments.study --name=depths --scale=paper`, in the same folders. Shallow models do
not fill a large GPU: `--config.seeds_per_device=3` trains the three seeds of a cell together.
"""

from collections.abc import Sequence

from experiments.studies import DEPTHS, MODELS
from experiments.sweeps.base import Sweep


def get_config(size: str = "") -> Sweep:
    """All rows of the tables for one maze size, or for both."""
    if size and size not in map(str, DEPTHS):
        sizes = " or ".join(map(str, DEPTHS))
        raise ValueError(f"the paper's mazes have size {sizes}, not {size}")
    grids: list[dict[str, Sequence[str | int]]] = []
    for side in [int(size)] if size else DEPTHS:
        depths = DEPTHS[side]
        for model in MODELS:
            # Highway models begin with the second depth.
            of_model = depths[1:] if model.startswith("highway") else depths
            grids.append({"model": [model], "size": [side], "depth": of_model})
    return Sweep(
        folder="paper",
        base="experiments/configs/paper.py:{model}-{size}-{depth}",
        grids=grids,
        gpus=1.0,
        cpus=2.0,
    )
