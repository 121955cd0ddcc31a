"""Sweeps: what `python -m experiments.sweep --config=experiments/sweeps/NAME.py` runs."""
