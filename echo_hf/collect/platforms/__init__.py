"""Platforms, each a module: addresses of posts, how they are read, and how they are searched.

A platform registers a `Site` (its addresses), a source (the reader of its answers and files), and,
where it can be asked, a platform with the contract of `base.py` (sections 3.1 and 3.2).
"""
