"""From sources to posts that are worth reading: collection and relevance (ECHO section 3.1)."""
