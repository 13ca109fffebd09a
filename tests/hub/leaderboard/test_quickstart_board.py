"""The board of the bundled benchmark, once it is scored, released and published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from echo_hf.builder.build import build
from echo_hf.cli.progress import Watch
from echo_hf.config.systems import shipped_config
from echo_hf.hub.leaderboard import NO_INTERVALS, judge_board, published_board, read_scored
from echo_hf.hub.publish import publish
from echo_hf.quickstart.run import JUDGE, show
from tests.local_hub import LocalHub

REPO = "pixel-lab/echo"


def test_it_is_the_board_that_the_run_has(hub: LocalHub, tmp_path: Path) -> None:
    """Figures of `results.json` and its tiers; its only judge gives the same, from the ratings."""
    show(Watch(Console(quiet=True)), tmp_path)
    release = build(shipped_config(), runs=tmp_path)
    publish(release, REPO, "v1", allow_rules=True, allow_unscreened=True, api=hub.api())
    (found,) = read_scored(REPO, api=hub.api())
    path = release.path.parent / "results.json"
    details = json.loads(path.read_text("utf-8"))["details"]["text_to_image"]["win_rate"]
    board = published_board(found, "text_to_image", "corrected")
    tiers = {name: at for at, names in enumerate(details["tiers"]["tiers"], 1) for name in names}

    rates = details["corrected"]["win_rate"]
    assert {line.system: line.value for line in board.lines} == rates
    assert {line.system: line.tier for line in board.lines} == tiers
    assert (board.judges, board.note) == ((JUDGE,), "")
    alone = judge_board(found, "text_to_image", "corrected", JUDGE)
    assert {line.system: line.value for line in alone.lines} == pytest.approx(rates)
    assert {line.system: line.tier for line in alone.lines} == tiers
    assert published_board(found, "image_to_image", "corrected").note == NO_INTERVALS
