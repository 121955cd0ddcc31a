"""Recipes: what to train, on what, for how long. Each file says what it reproduces."""
