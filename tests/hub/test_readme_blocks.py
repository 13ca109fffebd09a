"""The short blocks at the top of the README run as they stand, after a quickstart."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.console import Console

from echo_hf.builder.build import RUNS
from echo_hf.cli import app
from echo_hf.cli.progress import Watch
from echo_hf.quickstart.run import show

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
TOP = README.partition("\n## ")[0]


def test_load_and_evaluate(
    load_measure: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three lines each: a row with its columns, and the win rates of the released ratings."""
    monkeypatch.chdir(tmp_path)
    show(Watch(Console(quiet=True)), RUNS)
    load, evaluate = re.findall(r"^```python\n(.*?)^```$", TOP, re.DOTALL | re.MULTILINE)
    known: dict[str, Any] = {}
    for block in (load, evaluate):
        lines = [line for line in block.splitlines() if line]
        assert len(lines) == 3
        exec("\n".join([*lines[:2], f"shown = {lines[2]}"]), known)  # noqa: S102 - our own words
        known[block] = known["shown"]
    prompt, inputs, feedback = known[load]

    assert prompt
    assert inputs
    assert isinstance(feedback, list)
    rates = known[evaluate]["win_rate"]
    assert list(rates) == ["exact_copy", "misspelt_text", "yellow_tint", "moved_layout"]


def test_judge() -> None:
    """Three commands, each a verb."""
    (block,) = re.findall(r"^```\n(echo-hf .*?)^```$", TOP, re.DOTALL | re.MULTILINE)
    verbs = [line.split()[1] for line in block.splitlines()]

    assert verbs == ["generate", "judge", "score"]
    assert set(verbs) <= set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
