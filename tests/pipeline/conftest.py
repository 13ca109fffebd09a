"""A store of answers, which most tests of this folder fill or read, and what a run made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from echo_hf.pipeline.answer_store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()


def tables(run: Path) -> Mapping[str, str]:
    """Digests of what a run made: the rows that stages kept and did not, and the release."""
    made = [*run.glob("stages/*/*.parquet"), *(run / "release").rglob("*")]
    files = {str(file.relative_to(run)): file for file in made if file.is_file()}
    return {name: sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
