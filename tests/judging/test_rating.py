"""A rating in a free answer, against a parser that knows no regular expression."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.judges import JudgeConfig
from echo_hf.judging.rate import read_rating
from echo_hf.reasons import Unrated
from tests.judging.judges_for_tests import judge_of


def judge(lowest: float, highest: float, decimals: bool = False) -> JudgeConfig:
    """A judge with a scale."""
    known = judge_of(scale=(lowest, highest), decimals=decimals)
    return JudgeConfig(**known)


TEN = judge(1, 10)
DIGITS = "0123456789"
NUMBERS = ("10", "0", "1", "7", "11", "7.5", "8/10", "-3", "+4", "٣")
PIECES = st.sampled_from(["[", "]", "[[", "]]", " ", "\n", "\t", ".", "x", *NUMBERS])
ANSWERS = st.lists(PIECES | st.text(max_size=3), max_size=14).map("".join)


def bracketed(text: str) -> Iterator[str]:
    """What stands between two opening and the next two closing brackets, without its margins."""
    at = 0
    while (start := text.find("[[", at)) >= 0:
        end = text.find("]]", start + 2)
        inside = text[start + 2 : end] if end >= 0 else ""
        if inside and "[" not in inside and "]" not in inside:
            yield inside.strip()
            at = end + 2
        else:
            at = start + 1


def is_number(text: str) -> bool:
    """Digits with or without a sign and decimals."""
    text = text[1:] if text[:1] in ("+", "-") else text
    whole, point, decimals = text.partition(".")
    parts = [whole, decimals] if point else [whole]
    return all(part and all(one in DIGITS for one in part) for part in parts)


def published(text: str) -> float | None:
    """The first of the numbers from 1 to 10."""
    names = [str(number) for number in range(1, 11)]
    return next((float(one) for one in bracketed(text) if one in names), None)


def corrected(text: str, scale: JudgeConfig) -> float | None:
    """The last number, if the scale holds it."""
    numbers = [float(one) for one in bracketed(text) if is_number(one)]
    if not numbers or not scale.scale[0] <= numbers[-1] <= scale.scale[1]:
        return None
    return numbers[-1] if scale.decimals or numbers[-1] % 1 == 0 else None


def value(read: float | Unrated) -> float | None:
    """The rating, null for none."""
    return None if isinstance(read, Unrated) else read


@given(ANSWERS)
def test_the_published_rating_is_the_first_from_1_to_10(text: str) -> None:
    """Whatever an answer holds."""
    assert value(read_rating(text, TEN, "published")) == published(text)


@given(ANSWERS, st.booleans(), st.sampled_from([(1, 10), (0, 100), (-5, 5)]))
def test_the_corrected_rating_is_the_last_of_the_scale(
    text: str, decimals: bool, bounds: tuple[int, int]
) -> None:
    """Whatever an answer holds, on any scale."""
    scale = judge(*bounds, decimals)
    assert value(read_rating(text, scale, "corrected")) == corrected(text, scale)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Rating: [[7]]", 7, 7),
        ("[[3]] at first, in the end [[8]]", 3, 8),
        ("[[ 10 ]]", 10, 10),
        ("the form is [[rating]]; Rating: [[6]]", 6, 6),
        ("[[7.5]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        ("[[8.0]]", Unrated.NO_RATING, 8),
        ("[[0]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        ("[[11]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        ("[[4]], no, [[11]]", 4, Unrated.BEYOND_SCALE),
        ("[[8/10]]", Unrated.NO_RATING, Unrated.NO_RATING),
        ("[5]", Unrated.NO_RATING, Unrated.NO_RATING),
        ("a fine image, 9 of 10", Unrated.NO_RATING, Unrated.NO_RATING),
        ("", Unrated.NO_RATING, Unrated.NO_RATING),
    ],
)
def test_known_answers(text: str, first: float | Unrated, last: float | Unrated) -> None:
    """By hand; those of the released code are what it was seen to give. Nothing becomes 0."""
    assert read_rating(text, TEN, "published") == first
    assert read_rating(text, TEN, "corrected") == last


def test_decimals_count_where_the_scale_has_them() -> None:
    """By hand."""
    assert read_rating("[[7.25]]", judge(1, 10, decimals=True), "corrected") == 7.25


def test_a_number_without_end_is_off_the_scale() -> None:
    """Four hundred digits are more than a floating-point number holds."""
    assert read_rating(f"[[{'9' * 400}]]", TEN, "corrected") is Unrated.BEYOND_SCALE
