"""People rank in a real browser, on a page that a real server in a process of its own serves."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from tests.apps.browser import Server, Visitor, chrome, served, until, visited
from tests.apps.rank.ranked_run import COLORS, HOSTILE, SYSTEMS, drawing, ranked_run
from tests.judging.run_for_tests import root

__all__ = ["chrome"]
pytestmark = [pytest.mark.extras, pytest.mark.browser]
COMMAND = ("rank", "evaluation.yaml")
# The middle pixel of each image, as the browser shows it.
COLOR = """image => { const c = document.createElement("canvas").getContext("2d");
c.drawImage(image, -image.naturalWidth / 2, -image.naturalHeight / 2);
return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3); }"""
Row = dict[str, Any]


class Rater(Visitor):
    ready = (
        "() => document.querySelector('.board') && !document.querySelector('.saving')",
        "() => [...document.querySelectorAll('.card img')].every(one => one.naturalWidth)",
    )

    def drag(self, what: str, onto: str) -> None:
        self.page.drag_and_drop(what, onto)
        self.settle()

    @property
    def systems(self) -> list[str]:
        self.settle()
        names = {color: name for name, color in COLORS.items()}
        cards = self.page.query_selector_all(".card img")
        return [names[tuple(card.evaluate(COLOR))] for card in cards]

    @property
    def subject(self) -> str:
        return str(self.page.get_attribute(".board", "data-subject"))

    @property
    def shown(self) -> list[str]:
        return [one.inner_text() for one in self.page.query_selector_all(".card output")]


@pytest.fixture(scope="module")
def server(chrome: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("ranked")
    ranked_run(folder)
    with served(COMMAND, folder) as found:
        yield found


def at(chrome: Any, server: Server, name: str, **options: Any) -> Rater:
    rater = Rater(*visited(chrome, server, name, 800, **options))
    rater.settle()
    return rater


def rows(server: Server, rater: str) -> list[Row]:
    path = root(server.folder) / "human.parquet"
    if not path.exists():
        return []
    return [row for row in pq.read_table(path).to_pylist() if row["rater"] == rater]


def ranks(server: Server, rater: str, subject: str) -> dict[str, int | None]:
    found = [row for row in rows(server, rater) if row["sample_id"] == subject]
    return {row["system"]: row["rank"] for row in found}


def test_the_name_is_asked_for_and_ranks_come_from_keys(chrome: Any, server: Server) -> None:
    rater = Rater(chrome.new_context().new_page())
    rater.page.goto(server.address)
    rater.page.fill("input[name=person]", "Kim")
    rater.page.press("input[name=person]", "Enter")
    systems, subject = rater.systems, rater.subject
    rater.press("1", "ArrowRight", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7")
    assert rows(server, "kim") == []  # one image has no rank yet
    rater.press("h", "8")
    assert ranks(server, "kim", subject) == {name: at for at, name in enumerate(systems, 1)}
    assert re.fullmatch(r"saved \d\d:\d\d", rater.text(".saved"))
    assert "1 ranked" in rater.page.inner_text("header")


def test_ranks_come_from_dragging(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "dora")
    systems, subject = rater.systems, rater.subject
    rater.drag(".card[data-item='3']", ".slot[data-rank='1']")
    rater.drag(".card[data-item='5']", ".slot[data-rank='2']")
    rater.drag(".card[data-item='0']", ".gap[data-insert='2']")
    assert rater.shown[:6] == ["2", "–", "–", "1", "–", "3"]
    for item in (1, 2, 4, 6, 7):
        rater.drag(f".card[data-item='{item}']", ".slot[data-rank='4']")
    rater.drag(".rail .chip[data-item='7']", ".slot[data-rank='8']")
    expected = [2, 4, 4, 1, 4, 3, 4, 5]  # the gap between 4 and 8 says nothing
    assert ranks(server, "dora", subject) == dict(zip(systems, expected, strict=True))


def test_touch_needs_no_drag(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "tom", has_touch=True, is_mobile=True)
    rater.page.set_viewport_size({"width": 390, "height": 844})
    for what, shown in (
        (".card[data-item='2'] [data-act=better]", "1"),
        (".card[data-item='2'] [data-act=worse]", "2"),
        (".slot[data-rank='5']", "5"),
    ):
        rater.page.tap(what)
        rater.settle()
        assert rater.shown[2] == shown
    barred = ".card[data-item='3'] [data-act=bar]"
    rater.page.tap(barred)
    rater.settle()
    assert rater.page.get_attribute(barred, "aria-pressed") == "true"


def test_images_are_compared_in_one_place(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "zed")
    rater.page.keyboard.press("Space")
    places, names = [], []
    for _ in range(3):
        large = rater.page.wait_for_selector(".over img")
        places.append(large.bounding_box())
        names.append(rater.page.inner_text(".over b"))
        rater.page.keyboard.press("ArrowRight")
    assert names == ["Image A", "Image B", "Image C"]
    assert places[0] == places[1] == places[2]
    rater.page.keyboard.press("Escape")
    assert rater.page.query_selector(".over") is None
    card = rater.page.query_selector(".card img").bounding_box()
    assert places[0]["width"] > card["width"]
    assert places[0]["height"] > card["height"]
    fits = "image => getComputedStyle(image).objectFit"
    every = rater.page.query_selector_all(".card img, .inputs img")
    assert {image.evaluate(fits) for image in every} == {"contain"}


def test_a_first_visit_says_what_to_do(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "iva")
    assert "1 is the best" in rater.text(".intro")
    assert [
        one.inner_text() for one in rater.page.query_selector_all(".card:first-child small")
    ] == ["cannot rank", "worse", "better"]
    rater.press("i")
    assert rater.page.query_selector(".intro") is None


def test_next_asks_where_a_sample_would_not_count(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "mia")
    first = rater.subject
    for done in ((), ("1", *"bcdefg")):
        rater.press(*done)
        rater.press("Enter")
        assert "Next again leaves it" in rater.text(".ask")
        assert rater.subject == first
    assert "nothing to save yet" not in rater.text("header")
    rater.page.click("[data-act=next]")
    rater.page.wait_for_function(
        f"() => document.querySelector('.board').dataset.subject !== '{first}'"
    )
    assert "0 ranked" in rater.text("header")
    rater.press("i", "n")
    assert "1 ranked" in rater.text("header")
    assert "Sample 2" not in rater.text("header")


@pytest.mark.parametrize("width", [320, 390, 760, 1280])
def test_the_ends_of_the_ranks_are_named_at_every_width(
    chrome: Any, server: Server, width: int
) -> None:
    rater = at(chrome, server, "una")
    rater.page.set_viewport_size({"width": width, "height": 844})
    best, worst = rater.page.query_selector_all(".rail .end")
    slots = [slot.bounding_box() for slot in rater.page.query_selector_all(".slot")]
    assert (best.inner_text(), worst.inner_text()) == ("best", "worst")
    assert 0 <= best.bounding_box()["x"] < slots[0]["x"]
    end = worst.bounding_box()
    assert slots[-1]["x"] < end["x"]
    assert end["x"] + end["width"] <= width
    assert rater.page.evaluate("() => document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_eight_images_fit_one_screen(chrome: Any, server: Server, scheme: Any) -> None:
    rater = at(chrome, server, "fay", color_scheme=scheme)
    inside = """() => [...document.querySelectorAll('.card, .slot, footer button')].every(one => {
    const box = one.getBoundingClientRect();
    return box.width && box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight })"""
    assert len(rater.page.query_selector_all(".card")) == 8
    assert rater.page.evaluate(inside)
    assert rater.page.evaluate("() => document.documentElement.scrollHeight") == 800


def test_nothing_in_a_prompt_runs(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "hal")
    for _ in range(5):
        if rater.subject == HOSTILE:
            break
        rater.press("n", "n")
    assert rater.page.text_content(".prompt") == f"draw {HOSTILE}"
    rater.press("1", "b", "2")  # the page with it comes anew from the server
    assert rater.shown[:2] == ["1", "2"]
    assert rater.page.evaluate("() => window.pwned") is None
    assert rater.seen.problems == []


def test_a_browser_learns_no_name_and_asks_nobody_else(chrome: Any, server: Server) -> None:
    rater = at(chrome, server, "eve")
    for _ in range(5):
        rater.press("1", "b", "2", "u", "n", "n")
    rater.page.click(".card img")
    rater.page.wait_for_selector(".over img")
    rater.page.context.close()
    assert rater.seen.hosts == {urlsplit(server.address).netloc}
    received = "\n".join([*rater.seen.bodies, *rater.seen.addresses]).lower()
    assert "draw word0" in received  # it is what the page is made of
    images = [one for one in rater.seen.addresses if "/image/" in one]
    assert len(set(images)) == len(SYSTEMS) + 2
    digests = [hashlib.sha256(drawing(name)).hexdigest() for name in SYSTEMS]
    assert [name for name in (*SYSTEMS, *digests, str(server.folder)) if name in received] == []


def test_a_killed_server_loses_nothing(chrome: Any, tmp_path: Path) -> None:
    ranked_run(tmp_path)
    with served(COMMAND, tmp_path) as server:
        rater = at(chrome, server, "kay")
        rater.press("1", "b", "2", "c", "3", "d", "4")
        systems, subject = rater.systems, rater.subject
        server.kill()
        rater.page.keyboard.press("8")
        rater.page.wait_for_selector(".lost")
        assert rater.text(".saved") == "not saved: load the page again"
        server.start()
        rater.page.goto(f"{server.address}?person=kay")
        rater.settle()
        assert rater.subject == subject
        assert rater.systems == systems
        assert rater.shown == ["1", "2", "3", "4", "–", "–", "–", "–"]
        rater.press("e", "5", "f", "6", "g", "7", "h", "8")
        server.kill()
        (root(tmp_path) / "human.parquet").unlink()  # it is made anew from what was saved
        server.start()
        assert ranks(server, "kay", subject) == {one: at for at, one in enumerate(systems, 1)}
        assert "1 ranking in" in server.stop()


def test_who_signs_in_is_who_ranks(chrome: Any, tmp_path: Path) -> None:
    ranked_run(tmp_path)
    passwords = {"ECHO_HF_PEOPLE": "ada:correct-horse ben:battery-staple"}
    with served((*COMMAND, "--people", "auth"), tmp_path, passwords) as server:
        rater = Rater(chrome.new_context().new_page())
        rater.page.goto(f"{server.address}?person=ben")
        fields = rater.page.locator("input:visible")
        fields.nth(1).wait_for()
        assert rater.page.query_selector(".board") is None
        fields.nth(0).fill("ada")
        fields.nth(1).fill("correct-horse")
        fields.nth(1).press("Enter")
        rater.page.wait_for_selector(".board")
        rater.press("i")
        until(lambda: rows(server, "ada") != [])
        assert rows(server, "ben") == []
