"""Formats of posts that are read from files, one a module (asking: `collect/platforms`)."""
