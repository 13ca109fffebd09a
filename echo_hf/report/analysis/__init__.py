"""The analysis of a benchmark: what people ask for, and what they complain about."""
