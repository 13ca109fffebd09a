"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
from hypothesis import settings

from echo_hf.collect.platforms.base import PLATFORMS
from echo_hf.collect.sources.base import SOURCES
from echo_hf.curate.privacy import VARIABLE
from echo_hf.engines.base import ENGINES
from echo_hf.systems.registry import SYSTEMS

# The machine may be busy: how long an example takes says nothing about whether it is right.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real posts that tests may read and the repository may not hold."""
    folder = Path(os.environ.get("ECHO_HF_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "posts").is_dir():
        pytest.skip(f"no real posts in {str(folder)!r}: set ECHO_HF_TEST_DATA to their folder")
    return folder


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    every = (ENGINES, SYSTEMS, SOURCES, PLATFORMS)
    before = [dict(one.entries) for one in every]
    yield
    for one, entries in zip(every, before, strict=True):
        for name in one.entries.keys() - entries.keys() - one.ours.keys():
            del one.entries[name]
        one.entries.update(entries)


@pytest.fixture(autouse=True, scope="session")
def _quiet() -> None:
    datasets.disable_progress_bars()


@pytest.fixture(autouse=True, scope="session")
def _no_author_key() -> None:
    os.environ.pop(VARIABLE, None)  # what a build gives must not depend on who runs the tests
