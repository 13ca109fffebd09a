"""People label in a real browser, on a page that a real server in a process of its own serves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest

from tests.apps.browser import Server, Visitor, chrome, served, visited
from tests.apps.label.labelled_run import HOSTILE, SYSTEMS, labelled_run
from tests.apps.rank.ranked_run import drawing
from tests.judging.run_for_tests import root

__all__ = ["chrome"]
pytestmark = [pytest.mark.extras, pytest.mark.browser]
COMMAND = ("review", "evaluation.yaml", "--app", "--check", "cast", "--width", "0.9")


class Person(Visitor):
    ready = (
        "() => document.querySelector('.board') && !document.querySelector('.saving')",
        "() => [...document.querySelectorAll('.board img')].every(one => one.naturalWidth)",
    )

    @property
    def subject(self) -> str:
        return str(self.page.get_attribute(".board", "data-subject"))


@pytest.fixture(scope="module")
def server(chrome: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("labelled")
    labelled_run(folder)
    with served(COMMAND, folder) as found:
        yield found


def at(chrome: Any, server: Server, name: str, **options: Any) -> Person:
    person = Person(*visited(chrome, server, name, 800, **options))
    person.settle()
    return person


def answers(server: Server, rater: str) -> list[str]:
    path = root(server.folder) / "labels.parquet"
    rows = pq.read_table(path).to_pylist() if path.exists() else []
    return sorted(row["answer"] for row in rows if row["rater"] == rater)


def test_keys_answer_and_take_back(chrome: Any, server: Server) -> None:
    person = at(chrome, server, "kim")
    first = person.subject
    assert person.text(".question") == "Is the whole picture tinted?"
    assert "missing for ±0.9 (at least 30 a system)" in person.text("header")
    for key in "ynu":
        before = person.subject
        person.press(key)
        assert person.subject != before
    assert answers(server, "kim") == ["no", "unclear", "yes"]
    for key in ("z", "Backspace", "z"):
        person.press(key)
    assert person.subject == first
    assert answers(server, "kim") == []
    assert person.page.is_disabled("[data-act=undo]")


def test_what_is_typed_before_an_output_is_shown_is_no_answer(chrome: Any, server: Server) -> None:
    person = at(chrome, server, "max")
    person.press("y", "y", "y")
    assert answers(server, "max") == ["yes"]


def test_the_image_is_shown_in_full_and_answers_go_on_from_there(
    chrome: Any, server: Server
) -> None:
    person = at(chrome, server, "zed")
    before = person.subject
    person.page.keyboard.press("Space")
    person.page.wait_for_selector(".over img")
    person.page.keyboard.press("Escape")
    assert person.page.query_selector(".over") is None
    person.page.keyboard.press("Space")
    person.press("y")
    assert person.subject != before
    assert person.page.query_selector(".over") is None
    assert answers(server, "zed") == ["yes"]


@pytest.mark.parametrize("width", [320, 390, 760, 1280])
def test_question_image_and_answers_fit_every_width(
    chrome: Any, server: Server, width: int, tmp_path: Path
) -> None:
    person = at(chrome, server, "una")
    person.page.set_viewport_size({"width": width, "height": 844})
    for what in (
        ".question",
        ".asked img",
        "[data-act=yes]",
        "[data-act=no]",
        "[data-act=unclear]",
    ):
        box = person.page.query_selector(what).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 844
    assert person.page.evaluate("() => document.documentElement.scrollWidth") == width


def test_touch_needs_no_keys(chrome: Any, server: Server) -> None:
    person = at(chrome, server, "tom", has_touch=True, is_mobile=True)
    person.page.set_viewport_size({"width": 390, "height": 844})
    before = person.subject
    person.page.tap("[data-act=no]")
    person.settle()
    assert person.subject != before
    assert answers(server, "tom") == ["no"]


def test_a_browser_learns_no_name_and_nothing_runs(chrome: Any, tmp_path: Path) -> None:
    labelled_run(tmp_path, samples=3)
    with served(COMMAND, tmp_path) as server:
        person, prompts = at(chrome, server, "eve"), set()
        while person.subject:
            prompts.add(person.page.text_content(".prompt"))
            person.press("n")
        assert f"draw {HOSTILE}" in prompts
        assert "There are answers enough for ±0.9" in person.text(".question")
        assert person.page.evaluate("() => window.pwned") is None
        assert person.seen.problems == []
        person.page.context.close()
        assert person.seen.hosts == {urlsplit(server.address).netloc}
        received = "\n".join([*person.seen.bodies, *person.seen.addresses]).lower()
        assert "draw word00" in received
        digests = [hashlib.sha256(drawing(name)).hexdigest() for name in SYSTEMS]
        named = [name for name in (*SYSTEMS, "mira", *digests, str(tmp_path)) if name in received]
        assert named == []
        assert answers(server, "eve") == ["no"] * 8
        assert "labelled" in server.stop()


def test_a_killed_server_loses_nothing(chrome: Any, tmp_path: Path) -> None:
    labelled_run(tmp_path, samples=6)
    with served(COMMAND, tmp_path) as server:
        person = at(chrome, server, "kay")
        person.press("y")
        person.press("n")
        subject = person.subject
        server.kill()
        (root(tmp_path) / "labels.parquet").unlink()  # it is made anew from what was saved
        server.start()
        assert answers(server, "kay") == ["no", "yes"]
        person.page.goto(f"{server.address}?person=kay")
        person.settle()
        assert person.subject == subject
