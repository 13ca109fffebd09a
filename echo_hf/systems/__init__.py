"""The systems under test: how each is run, and what became of every task (ECHO section 5)."""
