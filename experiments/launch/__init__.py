"""What training commands share: flags, console, signals, from a configuration to a run."""
