"""A store of answers, which most tests of this folder fill or read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from echo_hf.pipeline.answer_store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()
