"""The card's template is one file."""

from __future__ import annotations

from pathlib import Path

from echo_hf.hub.card import card_template

ROOT = Path(__file__).resolve().parents[2]


def test_the_sources_hold_the_template_once() -> None:
    """What is read is the file in `dataset_card/`, and there is no copy of it."""
    assert card_template().template == (ROOT / "dataset_card" / "card.md").read_text("utf-8")
    assert not list((ROOT / "echo_hf").rglob("card.md"))
