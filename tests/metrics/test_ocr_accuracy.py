"""OCR accuracy: text without a reader, on drawn text, and the reader alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from echo_hf.images.loader import BadImage
from echo_hf.metrics import OcrAccuracyResult, ocr_accuracy
from echo_hf.metrics.ocr_accuracy import (
    TextLine,
    TextLines,
    TextReader,
    TextWindow,
    Thresholds,
    Vocabulary,
    find_best_window,
    find_quoted_text,
    is_mostly_latin,
    list_signs,
    list_words,
    load_english,
    make_vocabulary,
    normalize_text,
    order_blue_first,
    score_text,
)
from echo_hf.metrics.result import MetricReason
from tests.images_for_tests import encoded
from tests.stages_for_tests import ROOT


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ('a sign that says "HELLO"', ["HELLO"]),
        ("“Fish & Chips”, then ‘Tea’", ["Fish & Chips", "Tea"]),
        ("a mug with 'World's best dad' on it", ["World's best dad"]),
        ("‘Don’t panic’ in large letters", ["Don’t panic"]),
        ("看板に「いらっしゃいませ」と『本日休業』", ["いらっしゃいませ", "本日休業"]),
        ('写着"你好"的牌子', ["你好"]),
        ("une affiche « Bonne année »", ["Bonne année"]),
        ("ein Schild „Geöffnet“", ["Geöffnet"]),
        ("en skylt ”Öppet”", ["Öppet"]),
        ("「彼は『はい』と言った」", ["彼は『はい』と言った"]),
        ("\"She said 'hi' to me\"", ["She said 'hi' to me"]),
        ('"two\nlines"', ["two\nlines"]),
        ('"SALE" and again "Sale"', ["SALE"]),
        ('"50%" off', ["50%"]),
    ],
)
def test_what_stands_in_marks_is_quoted(prompt: str, expected: list[str]) -> None:
    assert list(find_quoted_text(prompt)) == expected


@pytest.mark.parametrize(
    "prompt",
    [
        "a cat in the rain",
        "don't draw the dog's tail, it's odd",
        "the dogs' toys and the cats' beds",
        "rock 'n' roll in the '90s, and 'em all '85",
        'a 24" x 36" poster',
        "a 5'10\" tall man",
        '"..." and "!!" and ""',
        'an opening mark " alone',
        '"one paragraph\n\nanother"',
        "",
    ],
)
def test_apostrophes_inches_and_lone_marks_quote_nothing(prompt: str) -> None:
    assert find_quoted_text(prompt) == ()


@pytest.mark.parametrize("mark", ["'", '"', "‘", "«", "’", " '"])
def test_a_prompt_of_marks_ends(mark: str) -> None:
    find_quoted_text(f"{mark}a" * 100_000)
    long = "a" * 1000
    assert find_quoted_text(f'"{long}"') == (long,)
    assert find_quoted_text(f'"{long}a"') == ()


TEXTS = st.one_of(st.text("ab", max_size=9), st.text("abc漢𝄞", max_size=9))


def _table(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row = row, [at]
        for to, wanted in enumerate(other, 1):
            row.append(min(last[to] + 1, row[-1] + 1, last[to - 1] + (letter != wanted)))
    return row[-1]


@pytest.mark.parametrize(
    ("wanted", "text", "window"),
    [
        ("kitten", "the sitting room", TextWindow(2, 4, 10)),
        ("hello", "xxheloxx", TextWindow(1, 2, 6)),
        ("abab", "abcab", TextWindow(1, 0, 5)),
        ("abcd", "abxyzcd", TextWindow(2, 0, 2)),
        ("abc", "xyz", TextWindow(3, 0, 0)),
        ("", "abc", TextWindow(0, 0, 0)),
        ("\ud800", "a\ud800", TextWindow(0, 1, 2)),
    ],
)
def test_windows_are_as_by_hand(wanted: str, text: str, window: TextWindow) -> None:
    assert find_best_window(wanted, text) == window


@given(TEXTS, TEXTS)
@example("abab", "abcab")
def test_no_window_is_nearer(wanted: str, text: str) -> None:
    windows = [
        text[start:end] for start in range(len(text) + 1) for end in range(start, len(text) + 1)
    ]
    found = find_best_window(wanted, text)
    assert found.distance == min(_table(wanted, one) for one in windows)
    assert found.distance == _table(wanted, text[found.start : found.end])
    assert found.distance <= len(wanted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Happy\n Birthday\t!", "happybirthday!"),
        ("ＨＥＬＬＯ　１２", "hello12"),
        ("ﬁne ﬂags", "fineflags"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("It’s ‘so’ `so´", "it's'so''so'"),
        ("“a” „b“ «c»", '"a""b""c"'),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphenzerowidth"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("9–5 — 3−2", "9-5-3-2"),
        ("\u00a8\u00b8", "\u0327\u0308"),
    ],
)
def test_what_does_not_count_is_folded(text: str, expected: str) -> None:
    assert normalize_text(text) == expected


@pytest.mark.parametrize(
    ("text", "signs", "words", "latin"),
    [
        ("", "", [], True),
        ("12:30", "12:30", [], True),
        ("Straße", "Straße", ["strasse"], True),
        ("Cafe\u0301 ", "Caf\u00e9", ["caf\u00e9"], True),
        ("Ｈ１ ﬁ", "H1fi", [], True),
        ("The quick, brown fox.", "Thequick,brownfox.", ["the", "quick", "brown", "fox"], True),
        ("a to be or 3rd", "atobeor3rd", [], True),
        ("well-known e.g. vis-à-vis", "wel-knoe.g.visà", ["well", "known", "vis", "vis"], True),
        ("O’Neill ’tis dogs’", "O'Neiltsdog", ["o'neill", "tis", "dogs"], True),
        ("abc_def x1yz", "abc_defx1yz", ["abc", "def"], True),
        ("東京タワー", "東京タワー", ["東京タワー"], False),
        ("дом", "дом", ["дом"], False),
        ("ab 漢字", "ab漢字", [], True),
        ("a 漢字", "a漢字", [], False),
    ],
)
def test_a_text_has_signs_and_words_of_three_letters_and_is_latin_when_half_of_it_is(
    text: str, signs: str, words: list[str], latin: bool
) -> None:
    assert list_signs(text) == set(signs)
    assert list_words(text) == words
    assert is_mostly_latin(text) is latin


def test_a_list_of_the_users_own_knows_its_words_alone() -> None:
    own = make_vocabulary(["Straße", "Ж", "gardener"])
    assert [own.knows(word) for word in ("strasse", "ж", "gardener's", "garden")] == [
        True, True, True, False
    ]  # fmt: skip
    assert own.definition == make_vocabulary({"gardener", "Ж", "straße"}).definition
    assert own.definition != make_vocabulary(["gardener"]).definition


@pytest.mark.extras
def test_english_words_are_known_and_misspelt_ones_are_not() -> None:
    pytest.importorskip("spellchecker", reason="needs the extra `ocr`")
    found = load_english()
    known = ["mixture", "birthday", "gardener's", "don't"]
    assert all(map(found.knows, known))
    assert not any(map(found.knows, ["mitture", "brithday", "happybirthday"]))
    assert found.latin
    assert found.definition["language"] == "English"
    assert found.definition["words"] > 100_000


OWN = make_vocabulary(["the", "quick", "brown", "fox", "дом"])
LATIN = Vocabulary(OWN.words, True, {})


def _score(prompt: str, *lines: str, vocabulary: Vocabulary = OWN, signs: Any = None) -> Any:
    read = TextLines(tuple(TextLine(line, 0.9) for line in lines))
    return score_text(prompt, read, vocabulary, Thresholds(2, 0.5), signs)


def test_strings_of_the_prompt_are_looked_for() -> None:
    found = _score('"Happy Birthday" and "Mia, 7"', "HAPPY", "BRTHDAY", "Mia, 1")
    assert (found.by, found.unmeasured) == ("quoted", None)
    assert [one.distance for one in found.reading.quotes] == [1, 1]
    assert [one.accuracy for one in found.reading.quotes] == pytest.approx([12 / 13, 4 / 5])
    assert found.value == pytest.approx((12 / 13 + 4 / 5) / 2)
    assert found.reading.quotes[0].found == "happybrthday"


def test_words_count_where_nothing_is_quoted() -> None:
    found = _score("a fox", "The quick", "borwn fox of 7")
    assert (found.by, found.value) == ("vocabulary", 0.75)
    assert (found.reading.words, found.reading.known) == (4, 3)


@pytest.mark.parametrize("lines", [(), ("of to", "fox a b")])
def test_few_words_are_no_evidence(lines: tuple[str, ...]) -> None:
    found = _score("a fox", *lines)
    assert (found.by, found.value) == (None, None)
    assert found.unmeasured.reason == MetricReason.TOO_FEW_WORDS
    assert found.unmeasured.detail == f"{found.reading.words}, expected 2"


def test_other_scripts_have_no_words_in_an_english_list() -> None:
    lines = ("дом дом", "здание fox")
    found = _score("дом", *lines, vocabulary=LATIN)
    assert found.unmeasured.reason == MetricReason.OTHER_SCRIPT
    assert _score("дом", *lines).value == 0.75
    assert _score("«дом»", *lines, vocabulary=LATIN).value == 1


def test_unsure_lines_are_kept_and_do_not_count() -> None:
    read = TextLines((TextLine("the fox", 0.5), TextLine("quick brown", 0.49)))
    found = score_text("a fox", read, OWN, Thresholds(2, 0.5))
    assert (found.reading.lines, found.reading.unsure) == (("the fox",), ("quick brown",))
    assert found.reading.words == 2


def test_what_the_reader_fails_on_has_no_number() -> None:
    found = score_text('"OPEN"', TextLines((), "error: too thin"), OWN, Thresholds(2, 0.5))
    assert (found.by, found.value) == (None, None)
    assert found.unmeasured is not None
    assert found.unmeasured.reason == MetricReason.MODEL_FAILED
    assert found.unmeasured.detail == "output: error: too thin"


SIGNS = {*map(chr, range(33, 127)), "é"}


def test_a_string_that_the_reader_cannot_write_has_no_number() -> None:
    found = _score('"ДОМ" and "Mia" and "Größe"', "Mio GroBe", signs=SIGNS)
    assert found.value == pytest.approx(2 / 3)
    assert [one.accuracy for one in found.reading.quotes] == [None, pytest.approx(2 / 3), None]
    assert [one.distance for one in found.reading.quotes] == [None, 1, None]
    assert [one.unknown for one in found.reading.quotes] == ["ДМО", "", "ßö"]


@pytest.mark.parametrize(("wanted", "unknown"), [("한글", "'글', '한'"), ("CAFÉ", "'É'")])
def test_a_prompt_of_such_strings_has_a_reason(wanted: str, unknown: str) -> None:
    found = _score(f'a sign "{wanted}"', "the quick brown fox", signs=SIGNS)
    assert (found.by, found.value, found.exact) == (None, None, None)
    assert found.unmeasured.reason == MetricReason.UNKNOWN_LETTERS
    assert found.unmeasured.detail == unknown


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
    given = order_blue_first(Image.new("RGB", (3, 2), (250, 100, 7)))
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
    assert reader.read(noise) == TextLines(())


@pytest.mark.extras
@pytest.mark.parametrize("shape", [(3, 2000, 3), (2000, 2, 3), (10, 101, 3)])
def test_a_strip_is_not_read(reader: TextReader, shape: tuple[int, ...]) -> None:
    said = f"{shape[1]} x {shape[0]} pixels, expected at most 1 to 10"
    assert reader.read(np.zeros(shape, np.uint8)) == TextLines((), said)


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
