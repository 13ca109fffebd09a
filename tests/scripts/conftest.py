"""Runs scripts in this process."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stages_for_tests import ROOT

SCRIPTS = ROOT / "scripts"
Script = Callable[..., tuple[object, str]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Script:
    """Runs a script with options; its exit status and what it printed."""
    monkeypatch.syspath_prepend(str(SCRIPTS))

    def run(name: str | Path, *options: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", [str(SCRIPTS / name), *options])
        status: object = 0
        try:
            runpy.run_path(str(SCRIPTS / name), run_name="__main__")
        except SystemExit as end:
            status = end.code
        return status, capsys.readouterr().out

    return run
