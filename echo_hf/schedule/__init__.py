"""The loop that keeps a benchmark current: one turn of it, its state between turns, who runs it."""
