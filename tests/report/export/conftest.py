"""A scored run that nobody may change, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.export.runs_for_tests import scored


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its config; the run is in `runs` beside it."""
    return scored(tmp_path_factory.mktemp("scored"))
