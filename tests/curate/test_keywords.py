"""Keywords of failures as they are kept, whatever a model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.feedback import LONGEST_KEYWORD, JudgedComment, failure_keyword
from echo_hf.reasons import Notice


def found(keyword: str | None, verdict: str = "failure") -> tuple[str | None, Notice | None]:
    """What is kept of a keyword, and why it is not."""
    return failure_keyword(
        JudgedComment.model_validate({"comment": 0, "verdict": verdict, "keyword": keyword})
    )


@pytest.mark.parametrize(
    ("given_", "keyword"),
    [
        ("hands", "hands"),
        (" Colour\n\tCast ", "colour cast"),
        ("too many fingers on one hand", "too many fingers on one hand"),
        ("\x1b[31mred\u202e cast", "[31mred cast"),
        ("mis\u00adspelt \u200b text\ue000", "misspelt text"),
    ],
)
def test_a_short_name_is_kept(given_: str, keyword: str) -> None:
    """In small letters, one space between words, nothing that steers a terminal or hides."""
    assert found(given_) == (keyword, None)
    assert found(given_, "mixed") == (keyword, None)


@pytest.mark.parametrize("given_", ["one two three four five six seven", "\u200b", "\x1b \u202e"])
def test_what_is_no_short_name_is_left_out(given_: str) -> None:
    """Seven words are a sentence, and what nobody can see is no name."""
    assert found(given_) == (None, Notice.BAD_KEYWORD)


@pytest.mark.parametrize("verdict", ["success", "none"])
def test_a_keyword_without_a_failure_is_left_out(verdict: str) -> None:
    """Only failures have one, and it does not go unseen."""
    assert found("hands", verdict) == (None, Notice.KEYWORD_WITHOUT_FAILURE)


@pytest.mark.parametrize("verdict", ["success", "failure", "mixed", "none"])
@pytest.mark.parametrize("given_", [None, "", " \n"])
def test_no_keyword_is_no_fault(given_: str | None, verdict: str) -> None:
    """Null and white space say the same."""
    assert found(given_, verdict) == (None, None)


@given(st.text(max_size=LONGEST_KEYWORD))
def test_every_kept_keyword_can_be_shown(given_: str) -> None:
    """Whatever was written: at most six words, each character printable or a plain space."""
    keyword, notice = found(given_)
    if keyword is None:
        assert notice or not given_.strip()
    else:
        assert keyword.split(" ") == keyword.split()
        assert 1 <= len(keyword.split()) <= 6
        assert keyword.replace(" ", "").isprintable()
