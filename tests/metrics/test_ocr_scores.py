"""What a reading scores, without reading anything."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.metrics.ocr_scores import Least, match_quotes, score
from echo_hf.metrics.text_reader import Line, Lines
from echo_hf.metrics.vocabulary import Vocabulary, vocabulary_of
from echo_hf.reasons import MetricReason

OWN = vocabulary_of(["the", "quick", "brown", "fox", "дом"])
LATIN = Vocabulary(OWN.words, True, {})


def _score(prompt: str, *lines: str, vocabulary: Vocabulary = OWN, **least: Any) -> Any:
    read = Lines(tuple(Line(line, 0.9) for line in lines))
    return score(prompt, read, vocabulary, Least(**{"words": 2, "confidence": 0.5, **least}))


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
    read = Lines((Line("the fox", 0.5), Line("quick brown", 0.49)))
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
