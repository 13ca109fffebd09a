"""The gallery's data: what a script reads is what was said, and the page around it stays whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.report.markup import printable
from echo_hf.report.report import gallery_data
from echo_hf.report.run_data import Output, Rating, ReportSample
from echo_hf.report.thumbnails import Thumbnail
from tests.report.hostile import WORDS
from tests.report.run_data_for_tests import SYSTEMS, run_data

DIGEST = "a" * 64


@pytest.mark.parametrize("word", WORDS)
def test_nothing_ends_the_element(tmp_path: Path, word: str) -> None:
    """No text can close the script element that holds the data, and each is read as it was."""
    sample = ReportSample(id="s", split="text_to_image", prompt=word, task=word, urls=(word,))
    text = gallery_data(run_data(tmp_path, [sample]), {}, {})
    text.encode("utf-8")
    assert not {"<", ">", "&", "\u2028", "\u2029"} & set(text)
    (found,) = json.loads(text)["samples"]
    assert found["prompt"] == printable(word)
    assert "urls" not in found


def test_texts_and_images_stand_once(tmp_path: Path) -> None:
    """Two judges who say the same, and an image shown twice, are one text and one image."""
    sample = ReportSample(id="s", split="text_to_image", prompt="x", inputs=(DIGEST,))
    ratings = {"s": [Rating(name, "mira", "overall", 0, 4.0, "too dark", "ok") for name in SYSTEMS]}
    outputs = {("s", name): Output(DIGEST, "ok") for name in SYSTEMS}
    thumbnails = {DIGEST: Thumbnail(DIGEST, "thumbs/a.webp", 40, 20)}
    found = json.loads(gallery_data(run_data(tmp_path, [sample], outputs, ratings), thumbnails, {}))
    assert found["pictures"] == [["thumbs/a.webp", 40, 20]]
    assert found["texts"] == ["mira", "overall", "too dark"]
    (one,) = found["samples"]
    assert one["outputs"] == [[0], [0]]
    assert one["ratings"] == [[0, 0, 1, 0, 4.0, 2, None], [1, 0, 1, 0, 4.0, 2, None]]


def test_a_system_that_was_not_tried(tmp_path: Path) -> None:
    """Where a system was never asked there is null, which is not the same as no image."""
    sample = ReportSample(id="s", split="text_to_image", prompt="x")
    outputs = {("s", "bravo"): Output(None, "no_image", "answer, empty", "Sorry.")}
    found = json.loads(gallery_data(run_data(tmp_path, [sample], outputs), {}, {}))
    assert found["samples"][0]["outputs"] == [None, [None, "no_image", "answer, empty", 0]]
    assert found["texts"] == ["Sorry."]
