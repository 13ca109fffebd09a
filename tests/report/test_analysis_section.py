"""The section about prompts, feedback and activity."""

from __future__ import annotations

import base64
import re
from html import unescape
from pathlib import Path

import pytest

from echo_hf.report.analysis_sections import analysis as drawn
from echo_hf.report.run_data import ReportSample
from tests.report.analysis_for_tests import PARTS, SVG, analysis, every_part
from tests.report.hostile import WORDS
from tests.report.run_data_for_tests import run_data

SAMPLE = ReportSample(id="s", split="image_to_image", prompt="x", task="edit")


def _page(folder: Path, found: object) -> str:
    return str(drawn(run_data(folder, [SAMPLE], analysis=found)))


def _words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_no_analysis_no_section(tmp_path: Path) -> None:
    """A run that was not analyzed has no such section."""
    assert drawn(run_data(tmp_path, [SAMPLE])) is None


def test_a_missing_part_says_why(tmp_path: Path) -> None:
    """Each part stands alone: one without figures says what to do, and the others are there."""
    page = _page(tmp_path, analysis(activity=every_part()["activity"]))
    assert _words(page).count("Not analyzed: name a language model") == len(PARTS) - 1
    assert "posts a day from 2026-03-01 to 2026-04-09" in page


def test_figures_are_those_of_the_file(tmp_path: Path) -> None:
    """Values, intervals and ratios stand in the page as they are in the file."""
    said = _words(_page(tmp_path, analysis(**every_part())))
    assert "benchmark 690 678 – 702 –" in said
    assert "yellow tint 300 288 – 312 2.30x" in said
    assert "yellow tint 73.0 70.0 – 76.0 1.20x" in said
    assert "Edit 30 (75 %) yellow tint" in said
    assert "collect 900 posts 820 posts repost 80" in said


def test_a_word_cloud_can_run_nothing(tmp_path: Path) -> None:
    """The drawing is shown as an image, in which no script runs and nothing is fetched."""
    page = _page(tmp_path, analysis(**every_part()))
    (source,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert base64.b64decode(source).decode() == SVG


@pytest.mark.parametrize("word", [one for one in WORDS if "\ud800" not in one])
def test_words_of_posts_stay_words(tmp_path: Path, word: str) -> None:
    """Keywords, prompts, names of sets and addresses make no element."""
    plain = re.findall(r"<(\w+)", _page(tmp_path, analysis(**every_part("tint"))))
    harmful = re.findall(r"<(\w+)", _page(tmp_path, analysis(**every_part(word))))
    assert sorted(set(harmful)) == sorted(set(plain))
