"""`python -m hvin_jax` is the command `hvin`."""

from hvin_jax.cli import main

if __name__ == "__main__":
    main()
