"""A run that is made once, and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.judging.judges_for_tests import config_of, drawn


@pytest.fixture(scope="session")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    drawn(folder)
    config_of(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path, drawn_run: Path) -> Path:
    shutil.copytree(drawn_run, tmp_path, dirs_exist_ok=True)
    return tmp_path
