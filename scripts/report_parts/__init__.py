"""A run that nobody made, to measure its report."""
