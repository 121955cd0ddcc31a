"""Plans a path on a map of your own: `hvin plan` by another name.

python -m experiments.plan --map=my_maze.txt
"""

import sys

from hvin_jax.cli import main

if __name__ == "__main__":
    main(["plan", *sys.argv[1:]])
