"""The bundled corpus and the first thing a newcomer sees."""
