"""Formats of posts that are read from files (asking: `collect/platforms`)."""
