"""`echo-hf score`: all figures of a run, from its tables (ECHO sections 5 and 5.2)."""
