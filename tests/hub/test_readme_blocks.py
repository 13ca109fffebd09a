"""The short blocks at the top of the README run, with a release on disk in the place of the Hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer.main
from rich.console import Console

from echo_hf.cli import app
from echo_hf.quickstart.show import shipped_config, show
from echo_hf.run import build

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
TOP = README.partition("\n## ")[0]
FROM_HUB = re.compile(r'"my-lab/echo", ("\w+"), revision="[^"]*"')


def test_load_and_evaluate(load_measure: Callable[..., Any], tmp_path: Path) -> None:
    """Three lines each: a row with its columns, and the win rates of the released ratings."""
    show(Console(quiet=True), tmp_path)
    release = str(build(shipped_config(), runs=tmp_path).path)
    load, evaluate = re.findall(r"^```python\n(.*?)^```$", TOP, re.DOTALL | re.MULTILINE)
    known: dict[str, Any] = {}
    for block in (load, evaluate):
        local = FROM_HUB.sub(rf"{release!r}, \1", block)
        lines = [line for line in local.splitlines() if line]
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
