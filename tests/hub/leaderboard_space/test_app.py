"""The page of the Space as visitors see it: in a browser, fed by a Hub, with hostile names."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from echo_hf.hub.leaderboard import ScoredRelease, write_space
from echo_hf.hub.leaderboard_space.app import Leaderboard
from tests.apps.browser import browser, space
from tests.hub.leaderboard.conftest import COUNT, REPO, Publish, figure, publish_scored, ratings
from tests.local_hub import LocalHub

__all__ = ["publish_scored"]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
SECONDS = 60


def test_choices_are_those_that_a_release_has() -> None:
    held = ScoredRelease("v1", "c1", figures=(figure("a", 0.5), figure("a", 0.5, split="b")))
    board = Leaderboard(REPO, (held,))

    assert board.list_splits("v1") == ["b", "text_to_image"]
    assert board.list_splits("v2") == []


def test_what_was_read_stays_when_the_hub_is_gone(
    hub: LocalHub, publish_scored: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_scored("v1", [figure("a", 0.5)])
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    board = Leaderboard(REPO)
    board.read_new_tags()
    assert ([each.tag for each in board.releases], board.problem) == (["v1"], "")

    hub.close()
    board.read_new_tags()
    assert [each.tag for each in board.releases] == ["v1"]
    assert board.problem.startswith(f"cannot read '{REPO}'")


def until(page: Any, text: str) -> str:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        shown = " ".join(str(page.locator(".echo-board").first.text_content()).split())
        if text in shown:
            return shown
        page.wait_for_timeout(100)
    raise AssertionError(f"the board never showed {text!r}")


def choose(page: Any, label: str, option: str) -> None:
    """A list that closes may hold an option of the same name: it is waited for."""
    from playwright.sync_api import expect

    page.get_by_label(label).first.click()
    page.get_by_role("option", name=option, exact=True).filter(visible=True).click()
    expect(page.get_by_role("option").filter(visible=True)).to_have_count(0)


@pytest.mark.extras
@pytest.mark.browser
def test_visitors_see_boards_and_nothing_of_them_runs(
    hub: LocalHub, publish_scored: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio", reason="the page needs gradio")
    # Tests with extras run offline; this Hub is in memory.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    rated = ratings({"qwen": {HOSTILE: 8.0, "b": 3.0}, "gpt": {HOSTILE: 2.0, "b": 7.0}})
    definition = {"judges": ["gpt", "qwen"], "samples": COUNT, "failed_audit": {"gpt": ["blank"]}}
    figures = [figure(HOSTILE, 0.625, definition=definition), figure("b", 0.375)]
    publish_scored("v1", figures, rated)
    publish_scored("v2", [*figures, figure("b", 0.875, protocol="published")], rated)
    publish_scored("v4")
    complaints: list[str] = []
    script = write_space(REPO, tmp_path / "space") / "app.py"
    with browser() as chrome, space(script, hub.environment(tmp_path / "home")) as address:
        page = chrome.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(address)
        until(page, "this release holds no results")
        choose(page, "Tag", "v2")
        first = until(page, "v2: text_to_image")
        choose(page, "Compare with", "v1")
        together = until(page, "no two systems have changed places")
        page.get_by_label("published").click()
        published = until(page, "0.875")
        title, images = page.title(), page.locator(".echo-board img").count()

    assert f"{HOSTILE}0.625" in first
    assert "gpt failed its audit: blank" in first
    assert "v2 and v1" in together
    assert "protocol published" in published
    assert (title, images, complaints) == ("ECHO leaderboard", 0, [])
    assert json.loads((tmp_path / "space" / "leaderboard.json").read_text()) == {"dataset": REPO}
