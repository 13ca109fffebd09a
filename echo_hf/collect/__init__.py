"""Collect posts from sources and platforms, and score their relevance (ECHO section 3.1)."""
