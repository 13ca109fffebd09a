"""OCR accuracy on drawn text, and the reader alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from echo_hf.metrics import OcrAccuracyResult, ocr_accuracy
from echo_hf.metrics.ocr_accuracy import Lines, TextReader, blue_first
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded
from tests.stages_for_tests import ROOT

HEIGHT, MARGIN = 32, 24


def written(lines: Sequence[str], ink: Any = "black", paper: Any = "white") -> Image.Image:
    font = ImageFont.load_default(HEIGHT)
    image = Image.new("RGB", (480, 2 * MARGIN + 2 * HEIGHT * len(lines)), paper)
    for number, line in enumerate(lines):
        place = MARGIN, MARGIN + 2 * HEIGHT * number
        ImageDraw.Draw(image).text(place, line, fill=ink, font=font)
    return image


CARD = 'a card with "Happy Birthday" and "to the best gardener"'
FOX = ["The quick brown fox", "jumps over fences"]


@pytest.fixture(scope="module")
def result() -> OcrAccuracyResult:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    pytest.importorskip("spellchecker", reason="needs the extra `ocr`")
    cut = encoded(written(FOX), "PNG")[:300]
    samples: list[tuple[str, Any]] = [
        (CARD, written(["HAPPY BIRTHDAY", "to the best gardner"])),
        ("a fox", written([*FOX, "under mooon"])),
        ("a sign «mixture of colours»", written(["mitture of colours"])),
        ("a cat", written(["Miau cat"])),
        (CARD, written(["I I I"])),
        (CARD, None),
        (CARD, cut),
        (CARD, Image.new("RGB", (64, 64), "white")),
        ("a red box", written(["same card"])),
        ("a blue box", written(["same card"])),
    ]
    return ocr_accuracy([one for one, _ in samples], [one for _, one in samples], n_boot=50)


@pytest.mark.extras
def test_known_errors_cost_what_they_are(result: OcrAccuracyResult) -> None:
    assert result.per_sample[0] == pytest.approx((1 + 16 / 17) / 2)
    assert result.per_sample[2] == pytest.approx(15 / 16)
    readings = result.readings
    assert readings[0] is not None
    assert readings[2] is not None
    assert [one.wanted for one in readings[0].quotes] == ["Happy Birthday", "to the best gardener"]
    assert [one.distance for one in readings[0].quotes] == [0, 1]
    assert readings[2].quotes[0].found == "mittureofcolours"


@pytest.mark.extras
def test_the_two_rules_are_never_mixed(result: OcrAccuracyResult) -> None:
    assert result.by == ("quoted", "vocabulary", "quoted", None, "quoted", *[None] * 5)
    assert result.in_vocabulary.per_sample[1] == pytest.approx(8 / 9)
    assert result.in_vocabulary.value == result.in_vocabulary.per_sample[1]
    assert result.per_sample[1] is None
    measured = [result.per_sample[at] for at in (0, 2, 4)]
    assert result.value == pytest.approx(np.mean([one for one in measured if one is not None]))
    assert (result.n, result.coverage) == (3, 0.3)


@pytest.mark.extras
def test_what_has_no_number_has_a_reason(result: OcrAccuracyResult) -> None:
    assert [one and one.reason.value for one in result.reasons] == [
        None,
        "nothing_quoted",
        None,
        "too_few_words",
        None,
        "missing_output",
        "bad_output",
        "blank_output",
        "placeholder",
        "placeholder",
    ]
    broken = result.reasons[6]
    assert broken is not None
    assert broken.cause == BadImage.TRUNCATED
    assert [one is None for one in result.readings] == [False] * 5 + [True] * 5


@pytest.mark.extras
def test_threads_and_a_vocabulary_of_ones_own() -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    options: dict[str, Any] = {"vocabulary": ["the", "quick", "brown"], "min_words": 2}
    sides = ([CARD, "a fox", CARD], [written(["Happy Brithday"]), written(FOX), None])
    one, three = (ocr_accuracy(*sides, threads=n, n_boot=20, **options) for n in (1, 3))
    assert one == three
    assert one.in_vocabulary.per_sample[1] == pytest.approx(3 / 7)


@pytest.mark.extras
def test_no_network_and_no_word_on_the_way(tmp_path: Path) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    written(["OPEN LATE"]).save(tmp_path / "sign.png")
    Image.linear_gradient("L").save(tmp_path / "nothing.png")
    code = """
import socket, sys
def refused(*_, **__):
    raise SystemExit("asked the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from echo_hf.metrics import ocr_accuracy
outputs = ["sign.png", "nothing.png"]
print(ocr_accuracy(['"open late"', '"open early"'], outputs).per_sample)
"""
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (shown.stdout, shown.stderr) == ("(1.0, 0.0)\n", "")


def test_channels_are_given_as_the_networks_take_them() -> None:
    given = blue_first(Image.new("RGB", (3, 2), (250, 100, 7)))
    assert given.shape == (2, 3, 3)
    assert given[1, 2].tolist() == [7, 100, 250]
    assert given.flags.c_contiguous


@pytest.fixture(scope="module")
def reader() -> TextReader:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    return TextReader()


@pytest.mark.extras
def test_nothing_is_read_where_nothing_is_written(reader: TextReader) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (2, 20, 3), np.uint8)
    assert reader.read(noise) == Lines(())


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3), (10, 101, 3)])
def test_a_strip_is_not_read(reader: TextReader, shape: tuple[int, ...]) -> None:
    said = f"{shape[1]} x {shape[0]} pixels, expected at most 1 to 10"
    assert reader.read(np.zeros(shape, np.uint8)) == Lines((), said)


@pytest.mark.extras
@pytest.mark.parametrize("levels", [np.zeros((4, 4, 7), np.uint8), np.zeros((9, 9, 3), object)])
def test_what_the_networks_fail_on_is_said(reader: TextReader, levels: Any) -> None:
    failed = reader.read(levels).failed
    assert "Error" in failed or "error" in failed
    assert "\n" not in failed


@pytest.mark.extras
def test_the_letters_that_it_can_write_are_known(reader: TextReader) -> None:
    english = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"-&%$")
    assert english | set("éèàüöÖñçß€łčāΩα中國国あア") <= reader.signs
    assert not set("жд한글مب") & reader.signs
