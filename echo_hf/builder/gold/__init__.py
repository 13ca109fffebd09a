"""Measure how well an engine does each stage, against annotations of some threads."""
