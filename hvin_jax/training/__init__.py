"""Training: what is minimised, one step of it, many steps that survive being killed."""
