"""People review in a real browser, on a page that a real server in a process of its own serves."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.apps.browser import Seen, Server, browser, served, until
from tests.apps.review.reviewed_run import (
    CHAIR,
    HOSTILE,
    LAKE,
    built,
    decided,
    named,
    released,
    reviewed_run,
    samples,
)

pytestmark = [pytest.mark.extras, pytest.mark.browser]
COMMAND = ("review", "config.yaml", "--app")
SETTLED = "() => document.querySelector('.desk') && !document.querySelector('.desk.saving')"
LOADED = "() => [...document.querySelectorAll('.desk img')].every(one => one.complete)"


@dataclass
class Reviewer:
    """A person at a page.

    Attributes:
        page: The page, as Playwright drives it.
        seen: What the browser asked for and received.
    """

    page: Any
    seen: Seen = field(default_factory=Seen)

    def settle(self) -> None:
        """Waits until all that was done is saved, and shown."""
        self.page.wait_for_function(SETTLED)

    def press(self, *keys: str) -> None:
        """Presses keys, each when the one before is saved."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settle()

    def go(self, subject: str) -> None:
        """Goes to a sample by its id."""
        self.page.fill("[name=wanted]", subject)
        self.page.click(".goto button")
        self.page.wait_for_selector(f".desk[data-subject='{subject}']:not(.saving)")

    def leave(self, subject: str) -> None:
        """Waits until another sample is shown."""
        self.page.wait_for_selector(f".desk:not([data-subject='{subject}']):not(.saving)")

    def saved(self) -> None:
        """Waits until the page says that all is saved."""
        self.page.wait_for_function(
            "() => /^saved/.test(document.querySelector('.saved').textContent)"
        )

    @property
    def subject(self) -> str:
        """The sample that is shown."""
        return str(self.page.get_attribute(".desk", "data-subject"))

    def text(self, what: str) -> str:
        """What is read at a place."""
        return str(self.page.inner_text(what))


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """A browser for all tests of this file."""
    pytest.importorskip("gradio", reason="the page needs gradio")
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def ready(chrome: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was built."""
    folder = tmp_path_factory.mktemp("reviewed")
    reviewed_run(folder)
    return folder


@pytest.fixture(scope="module")
def server(ready: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for all tests that do not end it; each has samples of its own."""
    folder = shutil.copytree(ready, tmp_path_factory.mktemp("served") / "run")
    with served(COMMAND, folder) as found:
        yield found


def at(chrome: Any, server: Server, name: str, subject: str | None = None) -> Reviewer:
    """Somebody who opens the page under a pseudonym, at a sample."""
    context = chrome.new_context(viewport={"width": 1280, "height": 900})
    seen = Seen()
    seen.watch(context)
    reviewer = Reviewer(context.new_page(), seen)
    reviewer.page.set_default_timeout(60_000)
    reviewer.page.goto(f"{server.address}?{urlencode({'person': name})}")
    reviewer.settle()
    if subject is not None:
        reviewer.go(subject)
    return reviewer


def test_the_name_is_asked_for_and_k_keeps(chrome: Any, server: Server) -> None:
    """The decision is in the file before the next sample is shown, and the page says so."""
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


def test_remove_by_mouse_and_undo_by_key(chrome: Any, server: Server) -> None:
    """What is taken back is withdrawn in the file, and the page is at that sample again."""
    subject = named(server.folder, "一只橘猫")["id"]
    bo = at(chrome, server, "bo", subject)
    bo.page.click("footer [data-act=remove]")
    bo.leave(subject)
    assert decided(server.folder)[subject].decision == "remove"
    bo.press("u")
    bo.page.wait_for_selector(f".desk[data-subject='{subject}']")

    assert decided(server.folder)[subject].decision == "withdraw"
    assert "not decided yet" in bo.text(".state")


def test_an_edit_saves_itself_and_survives_a_reload(chrome: Any, server: Server) -> None:
    """Typed with pauses, letter by letter: nothing is lost, and the caret stays where it was."""
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
    assert change is not None
    assert change.prompt is not None
    assert change.prompt.modified


def test_an_edit_that_cannot_be_is_refused_and_stays_in_the_field(
    chrome: Any, server: Server
) -> None:
    """Nothing is written, the page says why, and pressing keep does not get around it."""
    subject = named(server.folder, "Two-colour screen print")["id"]
    di = at(chrome, server, "di", subject)
    di.page.fill("[name=prompt]", "   ")
    di.page.wait_for_selector(".problem")
    di.press("Escape", "k")
    di.page.wait_for_selector(".problem")

    assert "has no word" in di.text(".problem")
    assert subject == di.subject
    assert subject not in decided(server.folder)


def test_roles_and_boxes_are_put_right(chrome: Any, server: Server) -> None:
    """A box is typed: the crop is cut anew and shown; another one is drawn with the mouse."""
    chair = named(server.folder, CHAIR)
    ed = at(chrome, server, "ed", chair["id"])
    box = ed.page.locator(".box input").first
    box.fill("10, 20, 180, 250")
    box.press("Tab")
    ed.saved()
    until(lambda: chair["id"] in decided(server.folder))
    change = decided(server.folder)[chair["id"]].changes
    assert change is not None
    assert change.crops is not None
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


def test_a_role_is_switched_and_the_next_build_follows(
    chrome: Any, ready: Path, tmp_path: Path
) -> None:
    """Clicked and typed here, then built: the rows of the release are what was decided."""
    folder = shutil.copytree(ready, tmp_path / "run")
    edited, dropped, cut = (
        named(folder, words) for words in (LAKE, "Draw a cozy isometric", CHAIR)
    )
    with served(COMMAND, folder) as server:
        flo = at(chrome, server, "flo", edited["id"])
        flo.page.fill("[name=prompt]", "Turn this photo into a night scene")
        flo.page.select_option("[name=quality]", "Analysis")
        flo.saved()
        flo.page.locator("[data-as=output] [data-role=neither]").first.click()
        flo.saved()
        flo.press("k")
        flo.leave(edited["id"])
        flo.go(dropped["id"])
        flo.press("r")
        flo.leave(dropped["id"])
        flo.go(cut["id"])
        flo.page.locator(".box [data-box=drop]").first.click()
        flo.saved()
        flo.press("k")
        flo.leave(cut["id"])
    rows = released(built(folder))

    assert dropped["id"] not in rows
    row = rows[edited["id"]]
    assert row["prompt"] == "Turn this photo into a night scene"
    assert (row["quality"], row["prompt_modified"], row["review"]) == ("Analysis", False, [])
    roles = [one["role"] for one in row["picture_sources"]]
    assert roles == ["input"] * len(edited["input_images"])
    assert (rows[cut["id"]]["input_bboxs"], len(rows[cut["id"]]["output_bboxs"])) == ([], 1)


def test_two_reviewers_get_two_samples_and_a_third_settles(chrome: Any, server: Server) -> None:
    """Both go to one sample on purpose: each sees only the lease; both decisions are shown."""
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


def test_a_killed_server_loses_nothing(chrome: Any, ready: Path, tmp_path: Path) -> None:
    """Killed after an action, started again: the decision stands, and so does the place."""
    folder = shutil.copytree(ready, tmp_path / "run")
    with served(COMMAND, folder) as server:
        jo = at(chrome, server, "jo")
        first = jo.subject
        jo.press("k")
        jo.leave(first)
        second = jo.subject
        server.kill()
        server.start()
        jo = at(chrome, server, "jo")
        assert jo.subject == second
        jo.press("f")
        jo.leave(second)
        server.kill()
    found = decided(folder)
    assert (found[first].decision, found[second].decision) == ("keep", "flag")


def test_a_server_that_is_gone_is_told(chrome: Any, ready: Path, tmp_path: Path) -> None:
    """The page says that nothing was saved; what was typed is there again, and undecided."""
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
    assert (line.decision, line.changes and line.changes.named) == ("edit", ("prompt",))


def test_what_posts_say_is_only_text(chrome: Any, server: Server) -> None:
    """No script runs, no dialog opens, nobody else is asked; the words are read as written."""
    row = next(one for one in samples(server.folder) if "alert(5)" in one["prompt"])
    kai = at(chrome, server, "kai", row["id"])
    kai.page.wait_for_function(LOADED)
    kai.page.fill("[name=note]", HOSTILE)
    kai.saved()
    kai.press("Escape", "f")
    kai.leave(row["id"])
    kai.go(row["id"])

    assert "onerror=alert(1)" in kai.page.input_value("[name=prompt]")
    assert "<script>alert(2)</script>" in kai.text(".thread")
    assert "<svg onload=alert(5)>" in kai.text(".state")
    assert kai.page.locator(".desk script, .desk svg, .desk img[src=x]").count() == 0
    assert kai.seen.problems == []
    assert kai.seen.hosts == {urlsplit(server.address).netloc}


def test_only_images_of_the_run_are_served(chrome: Any, server: Server) -> None:
    """By names that nobody can guess: neither a digest nor a path leads to one."""
    lou = at(chrome, server, "lou", named(server.folder, CHAIR)["id"])
    digest = named(server.folder, CHAIR)["screenshot"]
    for path in (f"picture/{digest}", "picture/..%2f..%2freview.jsonl", "file=config.yaml"):
        assert lou.page.request.get(server.address + path).status in (403, 404)
