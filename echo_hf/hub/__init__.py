"""A benchmark as a dataset repository: the release folder, its manifest and its card.

What is left out is decided in four places: samples in `curate/splits.py`, rows beside them in
`run_tables.py`, what may not be passed on in `redistribution.py` (and taken out there, when
publishing), stored answers in `responses.py`.
"""
