"""From posts to self-contained samples: reply trees, then extraction (ECHO section 3.2)."""
