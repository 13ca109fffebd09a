"""Helpers that know nothing of benchmarks: retries, SQLite, folders, text, processes."""
