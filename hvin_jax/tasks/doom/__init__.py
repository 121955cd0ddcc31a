"""The 3D task: mazes as Doom levels, seen and walked through in the ViZDoom engine.

Only `engine` (and what is built on it) needs the extra `hvin_jax[vizdoom]`.
"""
