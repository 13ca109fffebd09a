"""Platforms that are asked for posts by the crawl (sections 3.1 and 3.2).

To add one: a module here with the contract of `base.py`, its name in `BUILT_IN_PLATFORMS` of
`config/collection.py`, and a source of the same name in `collect/sources`, which reads what it
answers and stands in `BUILT_IN` of `base.py` there. Where its addresses are new, also
`KNOWN_PLATFORMS` in `config/collection.py` and `collect/urls.py`; where they apply, `FEDERATED` in
`curate/privacy.py` and `RESTRICTED_PLATFORMS` in `hub/redistribution.py`.
"""
