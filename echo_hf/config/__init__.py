"""The one config file of a benchmark: sections, checks, loading."""
