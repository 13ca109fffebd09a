"""The systems under test: how each is run, and what became of every task (ECHO section 5).

An adapter is a module here with the contract of `base.py` and a name in `registry.py`; `hosted.py`
is the base of those behind a server, `local_models.py` of those in this process.
"""
