"""Launchers: each file is a command, `python -m experiments.NAME --help`."""
