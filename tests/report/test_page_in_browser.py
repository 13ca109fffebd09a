"""The page in a real browser: hostile words do nothing, filters and keys do what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.images.store import ImageStore
from echo_hf.report.markup import draw_bars
from echo_hf.report.report import write_report
from echo_hf.report.run_data import ReportSample, SavedOutput
from tests.apps.browser import Seen, chrome
from tests.report.run_data_for_tests import (
    HOSTILE_SYSTEMS,
    SYSTEMS,
    WORDS,
    hostile_run,
    image,
    ratings_of,
    run_data,
)

__all__ = ["chrome"]
pytestmark = [pytest.mark.extras, pytest.mark.browser]


def opened(chrome: Any, path: Path) -> tuple[Any, Seen]:
    context, seen = chrome.new_context(), Seen()
    seen.watch(context)
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("#samples article", state="attached")
    page.evaluate("for (const fold of document.querySelectorAll('.fold')) fold.open = true")
    return page, seen


@pytest.mark.parametrize("single_file", [False, True])
def test_hostile_words_do_nothing(chrome: Any, tmp_path: Path, single_file: bool) -> None:
    written = write_report(hostile_run(tmp_path), tmp_path / "report", single_file=single_file)
    page, seen = opened(chrome, written.path)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.wait_for_timeout(200)
    assert page.evaluate("window.harmed") is None
    assert seen.problems == []
    own = ((tmp_path / "report").resolve().as_uri(), "data:")
    assert [url for url in seen.addresses if not url.startswith(own)] == []
    assert page.locator("iframe, #samples script, main script, [onerror], [onload]").count() == 0
    links = page.evaluate("[...document.querySelectorAll('a')].map((one) => one.protocol)")
    assert set(links) <= {"file:", "https:"}
    assert page.locator("#samples h3").first.inner_text() == WORDS[0]
    board = page.locator("#win-rates .board tbody th").all_inner_texts()
    assert sorted(board) == sorted(HOSTILE_SYSTEMS)
    assert page.evaluate("document.querySelector('#samples img').naturalWidth") == 40


def _gallery(folder: Path) -> Path:
    shown = ImageStore(folder / "pictures").put(image((0, 90, 200)))
    samples = [
        ReportSample(
            id=f"s{at:02}",
            split="image_to_image" if at % 2 else "text_to_image",
            prompt=f"draw boat number {at}" + (" at dawn" if at % 5 == 0 else ""),
            task="edit" if at % 2 else "text_to_image",
            flags=("personal_data",) if at == 3 else (),
        )
        for at in range(30)
    ]
    outputs = {(one.id, system): SavedOutput(shown, "ok") for one in samples for system in SYSTEMS}
    outputs["s04", "bravo"] = SavedOutput(None, "refused", "output, blocked", "I cannot draw this.")
    ratings = {one.id: ratings_of({"anole_two": [7], "bravo": [5]}) for one in samples}
    data = run_data(folder, samples, outputs, ratings)
    return write_report(data, folder / "report").path


def _count(page: Any) -> str:
    page.wait_for_timeout(250)
    said: str = page.locator("#shown").inner_text()
    return said


def test_filters_narrow_the_gallery(chrome: Any, tmp_path: Path) -> None:
    page, _ = opened(chrome, _gallery(tmp_path))
    assert _count(page) == "30 of 30 samples"
    for name, value, count in (
        ("text", "BOAT dawn", 6),
        ("split", "image_to_image", 3),
        ("text", "", 15),
        ("split", "", 30),
        ("show", "unmade", 1),
        ("system", "anole_two", 0),
        ("show", "flagged", 1),
    ):
        if name == "text":
            page.fill("input[name=text]", value)
        else:
            page.select_option(f"select[name={name}]", value)
        assert _count(page) == f"{count} of 30 samples"
        if value == "unmade":
            said = page.locator("#samples .missing").inner_text().split("\n")
            assert said == ["refused", "output, blocked"]
    assert page.locator("#samples figcaption bdi").all_inner_texts() == ["anole_two"]


def test_a_page_of_the_gallery_at_a_time(chrome: Any, tmp_path: Path) -> None:
    page, _ = opened(chrome, _gallery(tmp_path))
    assert page.locator("#samples article").count() == 12
    page.focus("#more")
    page.keyboard.press("Enter")
    assert page.locator("#samples article").count() == 24
    assert page.evaluate("document.activeElement.tagName") == "ARTICLE"
    page.focus("#more")
    page.keyboard.press("Space")
    assert page.locator("#samples article").count() == 30
    assert page.locator("#more").is_hidden()


def test_keyboard_reaches_everything(chrome: Any, tmp_path: Path) -> None:
    page, _ = opened(chrome, _gallery(tmp_path))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"
    page.focus("#samples article summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#samples table.ratings")
    rows = page.locator("#samples table.ratings tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == list(SYSTEMS)


def test_an_image_opens_large_beside_the_others_of_its_sample(chrome: Any, tmp_path: Path) -> None:
    page, seen = opened(chrome, _gallery(tmp_path))
    first = page.locator("#samples .strip img").first
    small = first.bounding_box()
    first.focus()
    page.keyboard.press("Enter")
    stage = page.locator(".viewer .stage img")
    names = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        names.append((page.inner_text(".about h3"), page.inner_text(".about .verdict b")))
        page.keyboard.press(key)
    assert names == [
        ("output of anole_two", "mira · overall: 7"),
        ("output of bravo", "mira · overall: 5"),
        names[0],
    ]
    assert stage.bounding_box()["width"] > small["width"]
    assert "/pictures/" in stage.get_attribute("src")
    page.keyboard.press("Escape")
    assert not page.locator(".viewer").is_visible()
    assert page.evaluate("document.activeElement.alt") == "output of anole_two"
    assert seen.problems == []


def test_an_image_opens_from_its_copy_where_the_run_is_not(chrome: Any, tmp_path: Path) -> None:
    path = _gallery(tmp_path)
    moved = path.parent.rename(tmp_path / "passed_on")
    (tmp_path / "pictures").rename(tmp_path / "gone")
    page, _ = opened(chrome, moved / path.name)
    page.locator("#samples .strip img").first.click()
    page.wait_for_function("document.querySelector('.stage img').src.includes('/thumbs/')")
    page.wait_for_function("document.querySelector('.stage img').naturalWidth > 0")


@pytest.mark.parametrize("single_file", [False, True])
def test_hostile_words_do_nothing_beside_a_large_image(
    chrome: Any, tmp_path: Path, single_file: bool
) -> None:
    written = write_report(hostile_run(tmp_path), tmp_path / "report", single_file=single_file)
    page, seen = opened(chrome, written.path)
    page.locator("#samples .strip img").first.click()
    for _ in range(page.locator(".others button").count()):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("window.harmed") is None
    assert page.locator(".viewer script, .viewer [onerror], .viewer [onload]").count() == 0
    assert page.locator(".about .prompt").inner_text() == WORDS[0]
    assert seen.problems == []


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_answer_is_on_the_first_screen_and_nothing_is_cut(
    chrome: Any, quickstart_run: Path, width: int, height: int
) -> None:
    page, _ = opened(chrome, quickstart_run / "report" / "index.html")
    page.set_viewport_size({"width": width, "height": height})
    assert page.locator("#answer > p").count() == 3
    board = page.locator("#answer .board").first.bounding_box()
    assert board["y"] + board["height"] <= height
    legend = page.locator("#win-rates .legend").first
    assert legend.locator("circle.dot, line.whisker").count() == 2
    assert "interval at 95 %" in legend.inner_text()
    cut = page.evaluate(
        """() => [...document.querySelectorAll("nav ul, .strip, .scroll")]
          .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
          .map((one) => one.ariaLabel || one.className)"""
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_link_opens_its_section_and_paper_has_all(chrome: Any, tmp_path: Path) -> None:
    page = chrome.new_page()
    path = _gallery(tmp_path)
    page.goto(f"{path.resolve().as_uri()}#gallery")

    def list_open() -> list[str]:
        opened: list[str] = page.evaluate(
            "[...document.querySelectorAll('.fold[open] > div')].map((part) => part.id)"
        )
        return opened

    assert list_open() == ["gallery"]
    page.click("#answer a[href='#win-rates']")
    page.wait_for_selector("#win-rates .board")
    assert list_open() == ["win-rates", "gallery"]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#samples").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert list_open() == ["win-rates", "gallery"]


def test_no_page_is_wider_than_its_window_and_text_has_contrast(
    chrome: Any, tmp_path: Path
) -> None:
    """Ink, soft ink and links have at least 4.5 to 1 on paper (WCAG AA), in light and in dark."""
    page, _ = opened(chrome, _gallery(tmp_path))
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRAST)
        assert min(found.values()) >= 4.5, found


# The definition of WCAG 2: relative luminance of linear red, green and blue.
CONTRAST = """() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue(name).trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const found = {};
  for (const name of ["--ink", "--soft", "--accent"]) found[name] = ratio(name, "--paper");
  found.raised = ratio("--soft", "--raised");
  found.warning = ratio("--warn-ink", "--warn-paper");
  for (const at of [1, 2, 3, 4, 5, 6, 7, 8]) found[`h${at}`] = ratio("--on-weak", `--h${at}`);
  found.h9 = ratio("--on-middle", "--h9");
  for (const at of [0, 10]) found[`h${at}`] = ratio("--on-strong", `--h${at}`);
  return found;
}"""


def test_names_in_print_are_whole(chrome: Any, tmp_path: Path) -> None:
    names = ["a_system-with-a-long-name-2026-03", "b", "another_one-with-a-long-name-2026"]
    drawing = tmp_path / "bars.svg"
    drawing.write_text(draw_bars("Win rate", [(name, 0.5, None) for name in names]), "utf-8")
    page = chrome.new_page(viewport={"width": 900, "height": 600})
    page.goto(drawing.as_uri())
    outside = page.evaluate(
        """() => {
          const whole = document.documentElement.getBoundingClientRect();
          return [...document.querySelectorAll("text")].filter((one) => {
            const box = one.getBoundingClientRect();
            return box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom;
          }).map((one) => one.textContent);
        }"""
    )
    assert outside == []
