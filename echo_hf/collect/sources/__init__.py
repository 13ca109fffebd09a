"""Formats of posts that are read from files; `collect/platforms` asks for posts."""
