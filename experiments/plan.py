"""Plans a path on a map of your own: `hvin plan` by another name."""

import sys

from hvin_jax.cli import main

if __name__ == "__main__":
    main(["plan", *sys.argv[1:]])
