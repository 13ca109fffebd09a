"""From posts to self-contained samples: threads, extraction, roles, screenshots (ECHO 3.2, 3.3)."""
