"""People review in a real browser, on a page that a real server in a process of its own serves."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.apps.browser import Server, Visitor, chrome, served, until, visited
from tests.apps.review.reviewed_run import (
    CHAIR,
    HOSTILE,
    LAKE,
    decided,
    named,
    reviewed_run,
    samples,
)

__all__ = ["chrome"]
pytestmark = [pytest.mark.extras, pytest.mark.browser]
COMMAND = ("review", "config.yaml", "--app")
LOADED = "() => [...document.querySelectorAll('.desk img')].every(one => one.complete)"


class Reviewer(Visitor):
    ready = ("() => document.querySelector('.desk') && !document.querySelector('.desk.saving')",)

    def go(self, subject: str) -> None:
        self.page.fill("[name=wanted]", subject)
        self.page.click(".goto button")
        self.page.wait_for_selector(f".desk[data-subject='{subject}']:not(.saving)")

    def leave(self, subject: str) -> None:
        self.page.wait_for_selector(f".desk:not([data-subject='{subject}']):not(.saving)")

    def saved(self) -> None:
        self.page.wait_for_function(
            "() => /^saved/.test(document.querySelector('.saved').textContent)"
        )

    @property
    def subject(self) -> str:
        return str(self.page.get_attribute(".desk", "data-subject"))


@pytest.fixture(scope="module")
def ready(chrome: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reviewed")
    reviewed_run(folder)
    return folder


@pytest.fixture(scope="module")
def server(ready: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = shutil.copytree(ready, tmp_path_factory.mktemp("served") / "run")
    with served(COMMAND, folder) as found:
        yield found


def at(chrome: Any, server: Server, name: str, subject: str | None = None) -> Reviewer:
    reviewer = Reviewer(*visited(chrome, server, name))
    reviewer.settle()
    if subject is not None:
        reviewer.go(subject)
    return reviewer


def test_the_name_is_asked_for_and_k_keeps(chrome: Any, server: Server) -> None:
    context = chrome.new_context()
    ann = Reviewer(context.new_page())
    ann.page.goto(server.address)
    ann.page.fill("input[name=person]", "Ann")
    ann.page.press("input[name=person]", "Enter")
    ann.settle()
    first = ann.subject
    ann.press("k")
    ann.leave(first)

    line = decided(server.folder)[first]
    assert (line.decision, line.reviewer) == ("keep", "ann")
    assert re.fullmatch(r"saved \d\d:\d\d by ann", ann.text(".saved"))
    assert f"kept {first}" in ann.text(".told")


def test_an_edit_saves_itself_and_survives_a_reload(chrome: Any, server: Server) -> None:
    row = named(server.folder, LAKE)
    cy = at(chrome, server, "cy", row["id"])
    cy.press("e")
    cy.page.keyboard.press("Control+End")
    cy.page.keyboard.type(" Add ")
    cy.saved()
    cy.page.keyboard.type("a red boat.", delay=30)  # none of these letters is a shortcut
    cy.page.wait_for_timeout(100)
    cy.page.reload()  # sooner than it saves itself: what was typed is still in this browser
    cy.page.wait_for_selector(".desk")
    cy.saved()
    wanted = row["prompt"] + " Add a red boat."
    until(lambda: decided(server.folder)[row["id"]].changes.prompt.text == wanted)
    cy.page.reload()
    cy.page.wait_for_selector(".desk")

    assert cy.page.input_value("[name=prompt]") == wanted
    assert "changed" in cy.text(".state")
    change = decided(server.folder)[row["id"]].changes
    assert change.prompt.modified


def test_roles_and_boxes_are_put_right(chrome: Any, server: Server) -> None:
    chair = named(server.folder, CHAIR)
    ed = at(chrome, server, "ed", chair["id"])
    box = ed.page.locator(".box input").first
    box.fill("10, 20, 180, 250")
    box.press("Tab")
    ed.saved()
    until(lambda: chair["id"] in decided(server.folder))
    change = decided(server.folder)[chair["id"]].changes
    assert [(one.role, one.box) for one in change.crops.crops] == [
        ("input", (10, 20, 180, 250)),
        ("output", tuple(map(int, chair["output_bboxs"][0]))),
    ]
    ed.page.wait_for_function(LOADED)
    widths = ed.page.eval_on_selector_all(".both img", "all => all.map(one => one.naturalWidth)")
    assert widths[0] == 170
    ed.page.locator(".box [data-box=drop]").last.click()
    until(lambda: len(decided(server.folder)[chair["id"]].changes.crops.crops) == 1)
    ed.saved()
    ed.page.wait_for_function(LOADED)
    ed.page.locator(".shot").evaluate("one => one.scrollIntoView({block: 'center'})")
    shot = ed.page.locator(".shot").bounding_box()
    x, y, scale = shot["x"] + 1, shot["y"] + 1, (shot["width"] - 2) / 384
    ed.page.mouse.move(x + 200 * scale, y + 8 * scale)
    ed.page.mouse.down()
    ed.page.mouse.move(x + 380 * scale, y + 250 * scale, steps=5)
    ed.page.mouse.up()
    ed.saved()
    until(lambda: len(decided(server.folder)[chair["id"]].changes.crops.crops) == 2)
    drawn = decided(server.folder)[chair["id"]].changes.crops.crops[1].box
    assert drawn == pytest.approx((200, 8, 380, 250), abs=2)


def test_two_reviewers_get_two_samples_and_a_third_settles(chrome: Any, server: Server) -> None:
    gus, hal = (at(chrome, server, name) for name in ("gus", "hal"))
    assert gus.subject != hal.subject
    subject = named(server.folder, "A botanical study")["id"]
    gus.go(subject)
    hal.go(subject)
    assert "gus has this sample" in hal.text(".lent")
    gus.press("k")
    gus.leave(subject)
    hal.press("r")
    hal.leave(subject)
    assert decided(server.folder)[subject].decision == "flag"
    ida = at(chrome, server, "ida", subject)
    sides = ida.page.locator(".conflict article h3").all_inner_texts()
    assert sides == ["gus: kept", "hal: removed"]
    ida.page.locator(".conflict article", has_text="hal").locator("button").click()
    ida.leave(subject)

    line = decided(server.folder)[subject]
    assert (line.decision, line.reviewer) == ("remove", "ida")


@pytest.mark.slow
def test_a_server_that_is_gone_is_told(chrome: Any, ready: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ready, tmp_path / "run")
    with served(COMMAND, folder) as server:
        mo = at(chrome, server, "mo", named(folder, CHAIR)["id"])
        server.kill()
        mo.page.fill("[name=prompt]", "Paint this chair plum")
        mo.page.keyboard.press("Escape")
        mo.page.keyboard.press("k")
        mo.page.wait_for_selector(".desk.lost")
        assert mo.text(".saved") == "not saved: load the page again"
        server.start()
        mo.page.reload()
        mo.settle()
        mo.saved()
        assert mo.page.input_value("[name=prompt]") == "Paint this chair plum"
    line = decided(folder)[named(folder, CHAIR)["id"]]
    assert (line.decision, line.changes and line.changes.changed_parts) == ("edit", ("prompt",))


def test_what_posts_say_is_only_text(chrome: Any, server: Server) -> None:
    row = next(one for one in samples(server.folder) if "alert(5)" in one["prompt"])
    kai = at(chrome, server, "kai", row["id"])
    kai.page.wait_for_function(LOADED)
    kai.page.fill("[name=note]", HOSTILE)
    kai.saved()
    kai.press("Escape")
    kai.press("f")
    kai.leave(row["id"])
    kai.go(row["id"])

    assert "onerror=alert(1)" in kai.page.input_value("[name=prompt]")
    assert "<script>alert(2)</script>" in kai.text(".thread")
    assert "<svg onload=alert(5)>" in kai.text(".state")
    assert kai.page.locator(".desk script, .desk svg, .desk img[src=x]").count() == 0
    assert kai.seen.problems == []
    assert kai.seen.hosts == {urlsplit(server.address).netloc}
