"""Runs scripts in this process, or only reads their options."""

from __future__ import annotations

import runpy
import subprocess
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
        path = SCRIPTS / name
        monkeypatch.setattr(sys, "argv", [str(path), *options])
        status: object = 0
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            status = end.code
        return status, capsys.readouterr().out

    return run


@pytest.fixture
def script_alone(script: Script) -> Script:
    """The same; one that forks, or lists all that is registered, has a process of its own.

    It has neither the threads of tests, nor what they registered.
    """

    def run(name: str, *options: str) -> tuple[object, str]:
        path = SCRIPTS / name
        text = path.read_text("utf-8")
        if "forked(" not in text and "list_enums(" not in text:
            return script(name, *options)
        command = [sys.executable, str(path), *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    return run
