r"""Makes a data set of mazes with the first-person views from each of their cells.

The paper's size (25,000 / 5,000 / 5,000 mazes), and that of experiments/configs/vizdoom_cpu.py:

    python -m experiments.make_views --size=15 --out=data/views-15-25000-5000-5000-seed0
    python -m experiments.make_views --size=15 --train=2000 --valid=500 --test=1000 \
        --out=data/views-15-2000-500-1000-seed0

Needs the Doom engine: pip install 'hvin_jax[vizdoom]'. The same command goes on where it was
interrupted. Under these names the training command finds them (and makes what is missing, too).
What the files mean: hvin_jax/tasks/doom/view_data.py. With --preview=DIR, pictures of
a level from above and of the views at one of its cells are written too.
"""

import pathlib
import signal
import sys
import time

from absl import flags

from experiments.launch.exits import INTERRUPTED, readable_errors, run_main
from experiments.launch.views import make_views
from hvin_jax.cli.mazes import parse_size
from hvin_jax.tasks.doom import EngineError, MissingExtraError
from hvin_jax.tasks.doom.view_data import SHARD, load_view_data
from hvin_jax.training.devices import usable_cores

_SIZE = flags.DEFINE_string("size", "15", "Side of the mazes, or ROWSxCOLUMNS.")
_TRAIN = flags.DEFINE_integer("train", 25000, "Number of training mazes.", lower_bound=0)
_VALID = flags.DEFINE_integer("valid", 5000, "Number of validation mazes.", lower_bound=0)
_TEST = flags.DEFINE_integer("test", 5000, "Number of test mazes.", lower_bound=0)
_SEED = flags.DEFINE_integer(
    "seed", 0, "The same seed gives the same files, with any number of workers.", lower_bound=0
)
_OUT = flags.DEFINE_string("out", None, "Folder to write.", required=True)
_PREVIEW = flags.DEFINE_string("preview", None, "Folder for pictures of the first maze.")
_SHARD = flags.DEFINE_integer("shard", SHARD, "Mazes in one file.", lower_bound=1)
_WORKERS = flags.DEFINE_integer(
    "workers", usable_cores(), "Number of engines side by side.", lower_bound=1
)


def main() -> None:
    """Runs the command."""
    # Like Ctrl-C: engines are ended on the way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        with readable_errors("make_views"):
            _make()
    except (EngineError, MissingExtraError) as error:
        sys.exit(f"make_views: {error}")
    except KeyboardInterrupt:
        print("make_views: interrupted; the same command goes on from there", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _make() -> None:
    size = parse_size(_SIZE.value)
    counts = {"train": _TRAIN.value, "valid": _VALID.value, "test": _TEST.value}
    began = time.perf_counter()
    make_views(
        _OUT.value,
        size=size,
        counts=counts,
        seed=_SEED.value,
        workers=_WORKERS.value,
        shard=_SHARD.value,
    )
    data = load_view_data(_OUT.value)
    space = sum(path.stat().st_size for path in pathlib.Path(_OUT.value).iterdir())
    views = sum(index.size for index in data.index.values())
    print(
        f"{_OUT.value}: {' + '.join(str(x) for x in counts.values())} mazes of "
        f"{size[0]}×{size[1]}, seed {_SEED.value}; {views:,} views, {len(data.views):,} of "
        f"them distinct, {space / 1e6:.1f} MB in {time.perf_counter() - began:.1f} s"
    )
    if _PREVIEW.value:
        # Here, because matplotlib takes long to import.
        from hvin_jax.report.doom import write_preview

        for path in write_preview(data, pathlib.Path(_PREVIEW.value)):
            print(path)


if __name__ == "__main__":
    run_main("make_views", main)
