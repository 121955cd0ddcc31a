"""Tables and figures from runs."""
