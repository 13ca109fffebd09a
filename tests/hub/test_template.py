"""The card's template is one file, found in the sources and in an installed package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from echo_hf.hub.card import card_template

ROOT = Path(__file__).resolve().parents[2]
PRINTED = "import echo_hf.hub.card as t; print(t.__file__, t.card_template().template)"


def test_the_sources_hold_the_template_once() -> None:
    """What is read is the file in `dataset_card/`, and there is no copy of it."""
    assert card_template().template == (ROOT / "dataset_card" / "card.md").read_text("utf-8")
    assert not list((ROOT / "echo_hf").rglob("card.md"))


def test_a_wheel_holds_the_template(tmp_path: Path) -> None:
    """Away from the sources, the packaged code reads the packaged template."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    command = [sys.executable, "-c", PRINTED]
    environment = {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where, _, template = done.stdout.partition(" ")
    assert Path(where).is_relative_to(tmp_path / "site")
    assert template.rstrip("\n") == card_template().template.rstrip("\n")
