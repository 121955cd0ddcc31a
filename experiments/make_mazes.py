"""Makes a data set of mazes: `hvin mazes` by another name."""

import sys

from hvin_jax.cli import main

if __name__ == "__main__":
    main(["mazes", *sys.argv[1:]])
