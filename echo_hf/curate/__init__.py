"""Turn samples into a benchmark that can be published (ECHO section 4)."""
