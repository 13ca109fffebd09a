"""The loop that keeps a benchmark current: a turn, its state between turns, workflow files."""
