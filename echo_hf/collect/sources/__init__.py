"""Formats of posts, each a file."""
