"""Build a benchmark: the list of stages, build, update, replay, gold."""
