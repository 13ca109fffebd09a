"""The page of verdicts in a real browser: filters, links, images over each other, hostile words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.images.store import ImageStore
from echo_hf.report.report import write_report
from echo_hf.report.run_data import ReportSample, SavedOutput, SavedRating
from echo_hf.report.verdicts import PAGE, SavedChoice, Verdicts
from tests.apps.browser import Seen, chrome
from tests.report.run_data_for_tests import SYSTEMS, hostile_run, image, run_data

__all__ = ["chrome"]
pytestmark = [pytest.mark.extras, pytest.mark.browser]
LEFT, RIGHT = SYSTEMS
# By sample what two judges say of both, the winners of `mira` in both orders, and people's best.
SAMPLES = {
    "alike": ((8, 3), (9, 2), ("a", "a"), LEFT),
    "apart": ((8, 3), (2, 9), ("a", "a"), None),
    "flip": ((5, 5), (5, 5), ("a", "b"), None),
    "against": ((8, 3), (9, 2), ("a", "a"), RIGHT),
    "ways": ((8, 3), (9, 2), ("b", "b"), None),
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    store = ImageStore(tmp_path / "pictures")
    given, drawn = store.put(image((9, 9, 9))), [store.put(image((90, 90 * n, 0))) for n in (0, 1)]
    samples, outputs, ratings, choices, ranks = [], {}, {}, {}, {}
    for name, (*rated, winners, best) in SAMPLES.items():
        inputs = (given,) if name == "alike" else ()
        split = "image_to_image" if inputs else "text_to_image"
        samples.append(ReportSample(name, split, f"Prompt {name}", inputs=inputs))
        for place, system in enumerate(SYSTEMS):
            outputs[name, system] = SavedOutput(drawn[place], "ok")
        ratings[name] = [
            SavedRating(system, judge, "overall", 0, float(value), f"{judge} of {system}", "ok")
            for judge, values in zip(("mira", "nils"), rated, strict=True)
            for system, value in zip(SYSTEMS, values, strict=True)
        ]
        choices[name] = tuple(
            SavedChoice(LEFT, RIGHT, "mira", 0, order, winner, f"shown {order}", "ok")
            for order, winner in zip(("ab", "ba"), winners, strict=True)
        )
        if best:
            ranks[name] = {(LEFT, RIGHT): (int(best == LEFT), int(best == RIGHT), 0)}
    data = run_data(tmp_path, samples, outputs, ratings, verdicts=Verdicts(choices, ranks))
    write_report(data, tmp_path / "report")
    return tmp_path / "report" / PAGE


def open_page(chrome: Any, path: Path, link: str = "") -> tuple[Any, Seen]:
    context, seen = chrome.new_context(), Seen()
    seen.watch(context)
    page = context.new_page()
    page.goto(path.resolve().as_uri() + link)
    page.wait_for_selector("#samples article")
    return page, seen


def shown(page: Any) -> list[str]:
    page.wait_for_timeout(250)
    return page.locator("article").evaluate_all("rows => rows.map((row) => row.dataset.sample)")


@pytest.mark.parametrize(
    ("kind", "judge", "names"),
    [
        ("all", "", [*SAMPLES]),
        ("disagree", "", ["apart"]),
        ("flips", "", ["flip"]),
        ("flips", "1", []),
        ("people", "", ["alike", "against"]),
        ("against", "", ["against"]),
        ("ways", "", ["ways"]),
    ],
)
def test_filters_show_what_they_say(
    kind: str, judge: str, names: list[str], chrome: Any, report: Path
) -> None:
    page, seen = open_page(chrome, report)
    page.select_option("[name=show]", kind)
    page.select_option("[name=judge]", judge)
    assert sorted(shown(page)) == sorted(names)
    assert seen.problems == []


def test_a_link_opens_one_sample_and_a_button_all(chrome: Any, report: Path) -> None:
    page, _ = open_page(chrome, report, "#apart")
    assert shown(page) == ["apart"]
    page.click("#all")
    assert len(shown(page)) == len(SAMPLES)


def test_a_sample_shows_what_each_judge_and_people_say(chrome: Any, report: Path) -> None:
    page, _ = open_page(chrome, report, "#against")
    words = page.locator("article").inner_text()
    assert f"Judges: {LEFT}, 2 of 2" in words
    assert f"People: {RIGHT}, 1 of 1" in words
    assert "judges against people" in words
    page.locator("article summary", has_text="mira in words").click()
    page.wait_for_timeout(100)
    opened = page.locator(".in-words").inner_text()
    assert f"{RIGHT} shown first: {LEFT}" in opened
    assert f"mira of {LEFT}" in opened


def test_choices_stand_in_the_order_of_the_sides(chrome: Any, report: Path) -> None:
    """With the sides changed, the same choices are read from the other side."""
    page, _ = open_page(chrome, report, "#flip")
    cell = page.locator(".verdicts tbody tr").first.locator("td").last
    assert cell.inner_text().startswith(f"{LEFT} / {RIGHT}")  # who is shown first wins
    page.select_option("select[aria-label='left system']", label=RIGHT)
    assert cell.inner_text().startswith(f"{RIGHT} / {LEFT}")


def test_an_image_is_laid_over_another(chrome: Any, report: Path) -> None:
    page, _ = open_page(chrome, report, "#alike")
    page.locator("article summary", has_text="Lay one over another").click()
    page.wait_for_selector(".overlap .over")
    page.locator("input[type=range]").fill("25")
    clip = page.locator(".overlap .over").evaluate("node => node.style.clipPath")
    assert clip == "inset(0px 75% 0px 0px)"
    page.locator(".overlay-box select").first.select_option(label="input")
    assert page.locator(".overlap .over").get_attribute("alt") == "input"


def test_hostile_words_do_nothing(chrome: Any, tmp_path: Path) -> None:
    write_report(hostile_run(tmp_path), tmp_path / "report")
    page, seen = open_page(chrome, tmp_path / "report" / PAGE)
    page.evaluate("for (const node of document.querySelectorAll('summary')) node.click()")
    page.wait_for_timeout(250)
    assert page.evaluate("window.harmed") is None
    assert seen.problems == []
    own = (tmp_path / "report").resolve().as_uri()
    assert [url for url in seen.addresses if not url.startswith((own, "data:"))] == []
    assert page.locator("iframe, #samples script, [onerror], [onload]").count() == 0
