r"""Makes a data set of mazes with shortest paths and optimal actions.

The paper's data sets (25,000 / 5,000 / 5,000 mazes, differential drive):

    python -m experiments.make_mazes --size=15 --out=data/mazes15.npz
    python -m experiments.make_mazes --size=25 --out=data/mazes25.npz

Other mazes, in the format that the baseline code reads, with a picture of a few of them:

    python -m experiments.make_mazes --size=9x21 --mechanism=news --train=5000 --valid=1000 \
        --test=1000 --seed=7 --format=npz --out=data/news.npz --preview=data/news.png

What the arrays in the file mean: hvin_jax/tasks/files.py. Read it: hvin_jax.tasks.files.load_mazes.
"""

import os
import pathlib
import sys
import time

from absl import app, flags
from tqdm import tqdm

from experiments.launch.mazes import parse_size
from hvin_jax._files import atomic_write
from hvin_jax.tasks.datasets import make_mazes
from hvin_jax.tasks.files import save_mazes
from hvin_jax.tasks.generation import MazeLaw
from hvin_jax.tasks.mechanisms import MECHANISMS, get_mechanism
from hvin_jax.training.devices import usable_cores

_SIZE = flags.DEFINE_string("size", "15", "Side of the mazes, or ROWSxCOLUMNS.")
_MECHANISM = flags.DEFINE_enum(
    "mechanism",
    "diffdrive",
    sorted(MECHANISMS),
    "How the agent moves: forward and turns (diffdrive), to 4 neighbours (news) or to 8 (moore).",
)
_TRAIN = flags.DEFINE_integer("train", 25000, "Number of training mazes.", lower_bound=0)
_VALID = flags.DEFINE_integer("valid", 5000, "Number of validation mazes.", lower_bound=0)
_TEST = flags.DEFINE_integer("test", 5000, "Number of test mazes.", lower_bound=0)
_SEED = flags.DEFINE_integer(
    "seed", 0, "The same seed gives the same file, with any number of workers.", lower_bound=0
)
_MIN_DECIMATION = flags.DEFINE_float(
    "min_decimation", 0.0, "Lowest probability that a maze frees a cell.", 0.0, 1.0
)
_MAX_DECIMATION = flags.DEFINE_float(
    "max_decimation", 1.0, "Highest probability that a maze frees a cell.", 0.0, 1.0
)
_OUT = flags.DEFINE_string("out", None, "File to write, by custom *.npz.", required=True)
_FORMAT = flags.DEFINE_enum(
    "format",
    "compact",
    ["compact", "npz"],
    "compact: ours, with shortest path lengths and all optimal actions. npz: arr_0 to arr_8 as the "
    "baseline code reads and writes them.",
)
_PREVIEW = flags.DEFINE_string("preview", None, "Picture of some of the mazes to write, *.png.")
_WORKERS = flags.DEFINE_integer(
    "workers", usable_cores(), "Number of processes that make mazes.", lower_bound=1
)


def main(argv: list[str]) -> None:
    """Runs the command; mistakes of the user end it with one sentence and exit code 1."""
    if len(argv) > 1:
        sys.exit(f"make_mazes: unexpected argument {argv[1]!r}: flags begin with --, see --help")
    try:
        _make()
    except OSError as error:
        sys.exit(f"make_mazes: can't write {error.filename or _OUT.value}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"make_mazes: {error}")


def _make() -> None:
    law = MazeLaw(parse_size(_SIZE.value), (_MIN_DECIMATION.value, _MAX_DECIMATION.value))
    for path in filter(None, (_OUT.value, _PREVIEW.value)):
        _check_writable(path)
    began = time.perf_counter()
    total = _TRAIN.value + _VALID.value + _TEST.value
    with tqdm(total=total, unit=" mazes", disable=not sys.stderr.isatty()) as bar:
        mazes = make_mazes(
            law=law,
            mechanism=get_mechanism(_MECHANISM.value),
            train=_TRAIN.value,
            valid=_VALID.value,
            test=_TEST.value,
            seed=_SEED.value,
            workers=_WORKERS.value,
            progress=bar.update,
        )
    save_mazes(_OUT.value, mazes, file_format=_FORMAT.value)
    print(
        f"{_OUT.value}: {_TRAIN.value} + {_VALID.value} + {_TEST.value} mazes of "
        f"{law.size[0]}×{law.size[1]}, {_MECHANISM.value}, seed {_SEED.value}, "
        f"{os.path.getsize(_OUT.value) / 1e6:.1f} MB in {time.perf_counter() - began:.1f} s"
    )
    if _PREVIEW.value:
        # Here, because matplotlib takes longer to import than a small data set to make.
        from hvin_jax.tasks.drawing import mazes_figure, save_figure

        largest = max((mazes.train, mazes.valid, mazes.test), key=len)
        title = f"{law.size[0]}×{law.size[1]}, {_MECHANISM.value}, seed {_SEED.value}"
        save_figure(mazes_figure(largest[:12], title=title), _PREVIEW.value)
        print(f"{_PREVIEW.value}: {min(12, len(largest))} of them")


def _check_writable(path: str) -> None:
    """Fails now rather than after the mazes are made."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the name of a file")
    if path == _PREVIEW.value and pathlib.Path(path).suffix.lower() != ".png":
        raise ValueError(f"--preview={path} does not end in .png")
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(f"{path}.test"):
        pass
    os.unlink(f"{path}.test")


if __name__ == "__main__":
    app.run(main)
