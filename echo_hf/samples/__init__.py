"""Turn posts into self-contained samples: threads, extraction, roles, screenshots (3.2, 3.3)."""
