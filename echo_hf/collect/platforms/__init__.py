"""Platforms that are asked for posts, and the crawl that asks them (sections 3.1 and 3.2)."""
