"""The tasks to plan in: mazes made, solved, walked, measured, stored and drawn."""
