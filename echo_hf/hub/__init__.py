"""A benchmark as a dataset repository: the release folder, its manifest and its card."""
