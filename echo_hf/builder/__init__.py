"""How a benchmark is built: the list of stages, build, update, replay, gold."""
