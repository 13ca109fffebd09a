"""How one stage runs: its contract, its answers, its result, the run's folder."""
