"""From samples to a benchmark that can be published (ECHO section 4)."""
