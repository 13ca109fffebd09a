"""How well an engine does each stage, by what careful readers wrote down about some threads."""
