"""Draws a few maps of each family, as docs/families.md shows them.

python -m experiments.draw_families --size=21 --out=docs/families.png
"""

import numpy as np
from absl import flags

from experiments.launch.exits import readable_errors, run_main
from hvin_jax.tasks.generation import MapLaw, about_families, draw_mazes

_SIZE = flags.DEFINE_integer("size", 21, "Side of the maps.", lower_bound=7, upper_bound=200)
_COUNT = flags.DEFINE_integer("count", 3, "How many of each family.", lower_bound=1, upper_bound=20)
_SEED = flags.DEFINE_integer("seed", 0, "The same seed gives the same picture.", lower_bound=0)
_OUT = flags.DEFINE_string("out", None, "File to write, *.png.", required=True)


def main() -> None:
    """Runs the command."""
    with readable_errors("draw_families"):
        # Here, because matplotlib takes long to import.
        from hvin_jax.tasks.drawing import families_figure, save_figure

        size = (_SIZE.value, _SIZE.value)
        maps = {
            name: np.concatenate(
                [_one(MapLaw(size, name), number) for number in range(_COUNT.value)]
            )
            for name in about_families()
        }
        save_figure(families_figure(maps), _OUT.value, dpi=60)
        print(_OUT.value)


def _one(law: MapLaw, number: int) -> np.ndarray:
    """A map, `[1, H, W]`."""
    rng = np.random.default_rng([_SEED.value, number])
    return draw_mazes(1, law=law, num_orientations=1, rng=rng)[0]


if __name__ == "__main__":
    run_main("draw_families", main)
