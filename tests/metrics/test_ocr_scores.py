"""What a reading scores, without reading anything."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.metrics.ocr_scores import Least, match_quotes, score
from echo_hf.metrics.text_reader import Lines, TextLine, Vocabulary, vocabulary_of
from echo_hf.reasons import MetricReason

OWN = vocabulary_of(["the", "quick", "brown", "fox", "дом"])
LATIN = Vocabulary(OWN.words, True, {})


def _score(prompt: str, *lines: str, vocabulary: Vocabulary = OWN, signs: Any = None) -> Any:
    read = Lines(tuple(TextLine(line, 0.9) for line in lines))
    return score(prompt, read, vocabulary, Least(2, 0.5), signs)


def test_strings_of_the_prompt_are_looked_for() -> None:
    """Over line ends, whatever the case; distances by hand, the mean is over strings."""
    found = _score('"Happy Birthday" and "Mia, 7"', "HAPPY", "BRTHDAY", "Mia, 1")
    assert (found.by, found.unmeasured) == ("quoted", None)
    assert [one.distance for one in found.reading.quotes] == [1, 1]
    assert [one.accuracy for one in found.reading.quotes] == pytest.approx([12 / 13, 4 / 5])
    assert found.value == pytest.approx((12 / 13 + 4 / 5) / 2)
    assert found.reading.quotes[0].found == "happybrthday"


def test_quoted_text_that_is_not_there_is_wrong() -> None:
    """0 where nothing was read, and no reason: the text was asked for."""
    found = _score('a sign "OPEN"')
    assert (found.by, found.value, found.unmeasured) == ("quoted", 0, None)
    assert match_quotes('"OPEN"', ["xyz"])[0].accuracy == 0


def test_words_count_where_nothing_is_quoted() -> None:
    """Three of four are known."""
    found = _score("a fox", "The quick", "borwn fox of 7")
    assert (found.by, found.value) == ("vocabulary", 0.75)
    assert (found.reading.words, found.reading.known) == (4, 3)


@pytest.mark.parametrize("lines", [(), ("fox",), ("of to", "fox a b")])
def test_few_words_are_no_evidence(lines: tuple[str, ...]) -> None:
    """A reason in place of 0 or 1."""
    found = _score("a fox", *lines)
    assert (found.by, found.value) == (None, None)
    assert found.unmeasured.reason == MetricReason.TOO_FEW_WORDS
    assert found.unmeasured.detail == f"{found.reading.words}, expected 2"


def test_other_scripts_have_no_words_in_an_english_list() -> None:
    """A list of the user's own may hold them."""
    lines = ("дом дом", "здание fox")
    found = _score("дом", *lines, vocabulary=LATIN)
    assert found.unmeasured.reason == MetricReason.OTHER_SCRIPT
    assert _score("дом", *lines).value == 0.75
    assert _score("«дом»", *lines, vocabulary=LATIN).value == 1


def test_unsure_lines_are_kept_and_do_not_count() -> None:
    """The least confidence is still sure."""
    read = Lines((TextLine("the fox", 0.5), TextLine("quick brown", 0.49)))
    found = score("a fox", read, OWN, Least(2, 0.5))
    assert (found.reading.lines, found.reading.unsure) == (("the fox",), ("quick brown",))
    assert found.reading.words == 2


def test_what_the_reader_fails_on_has_no_number() -> None:
    """Also where the prompt quotes: nothing was read, and that is nobody's fault."""
    found = score('"OPEN"', Lines((), "error: too thin"), OWN, Least(2, 0.5))
    assert (found.by, found.value) == (None, None)
    assert found.unmeasured is not None
    assert found.unmeasured.reason == MetricReason.MODEL_FAILED
    assert found.unmeasured.detail == "output: error: too thin"


SIGNS = {*map(chr, range(33, 127)), "é"}


def test_a_string_that_the_reader_cannot_write_has_no_number() -> None:
    """The others of its prompt count, and it is kept with the letters in question."""
    found = _score('"ДОМ" and "Mia" and "Größe"', "Mio GroBe", signs=SIGNS)
    assert found.value == pytest.approx(2 / 3)
    assert [one.accuracy for one in found.reading.quotes] == [None, pytest.approx(2 / 3), None]
    assert [one.distance for one in found.reading.quotes] == [None, 1, None]
    assert [one.unknown for one in found.reading.quotes] == ["ДМО", "", "ßö"]


@pytest.mark.parametrize(
    ("wanted", "unknown"),
    [
        ("مرحبا", "'ا', 'ب', 'ح', 'ر', 'م'"),
        ("한글", "'글', '한'"),
        ("Ωμέγα", "'Ω', 'έ', 'α', 'γ', 'μ'"),
        ("jalapeño", "'ñ'"),
        ("Straße", "'ß'"),
        ("5 €", "'€'"),
        ("CAFÉ", "'É'"),
    ],
)
def test_a_prompt_of_such_strings_has_a_reason(wanted: str, unknown: str) -> None:
    """By neither rule: what was read in its place says nothing of the system."""
    found = _score(f'a sign "{wanted}"', "the quick brown fox", signs=SIGNS)
    assert (found.by, found.value, found.exact) == (None, None, None)
    assert found.unmeasured.reason == MetricReason.UNKNOWN_LETTERS
    assert found.unmeasured.detail == unknown


@pytest.mark.parametrize("wanted", ["ＯＰＥＮ", "open", "Cafe\u0301", "ﬁsh – “and” chips", "9—5"])
def test_what_is_folded_alike_can_be_written(wanted: str) -> None:
    """Width, composition, ligatures, marks, dashes and spaces need no letter of their own."""
    found = _score(f"「{wanted}」", wanted, signs=SIGNS)
    assert (found.value, found.exact) == (1, 1)


def test_short_strings_are_near_to_any_text_and_seldom_in_it() -> None:
    """Half of the letters by chance; the share of strings without a fault tells them apart."""
    prose = _score('"SALE" "Tea"', "We are glad to see you", "in our old house")
    assert prose.value >= 0.5
    assert prose.exact == 0
    one = _score('"SALE" "Tea"', "sale of the year")
    assert (one.exact, one.value) == (0.5, pytest.approx(1 / 2 + 1 / 3))
