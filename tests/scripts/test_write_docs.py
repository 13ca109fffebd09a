"""The generated documentation is current."""

from __future__ import annotations

from tests.scripts.conftest import Script


def test_the_generated_pages_are_current(script: Script) -> None:
    assert script("write_docs.py", "--check") == (0, "")
