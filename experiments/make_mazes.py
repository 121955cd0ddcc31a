"""Makes a data set of mazes: `hvin mazes` by another name.

python -m experiments.make_mazes --size=15 --out=data/mazes15.npz
"""

import sys

from hvin_jax.cli import main

if __name__ == "__main__":
    main(["mazes", *sys.argv[1:]])
