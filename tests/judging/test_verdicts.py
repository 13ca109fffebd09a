"""What is read of a judge's free answer."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.rubrics import Scale
from echo_hf.judging.verdicts import read_choice, read_rating, read_yes_no
from echo_hf.scores.rating_table import Unrated

TEN = (1.0, 10.0)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Rating: [[7]]", 7, 7),
        ("[[3]] at first, in the end [[8]]", 3, 8),
        ("[[ 10 ]]", 10, 10),
        ("[[7.5]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        ("[[8.0]]", Unrated.NO_RATING, 8),
        ("[[11]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        ("[[4]], no, [[11]]", 4, Unrated.BEYOND_SCALE),
        ("[[0]] or [[2]]\n[[x]]", 2, 2),
        ("[[[7]]] [[\t5", 7, 7),
        ("[[+4]]", Unrated.NO_RATING, 4),
        ("<think>maybe [[3]]. Hmm", 3, Unrated.NO_RATING),
        ("<think>maybe [[3]].</think>Rating: [[6]]", 3, 6),
        (f"[[{'9' * 400}]]", Unrated.NO_RATING, Unrated.BEYOND_SCALE),
        *(
            (text, Unrated.NO_RATING, Unrated.NO_RATING)
            for text in ("a fine image, [9] of 10", "[[\u0663]]", "[[7.]]", "[[]]", "")
        ),
    ],
)
def test_known_answers(text: str, first: float | Unrated, last: float | Unrated) -> None:
    """By hand; those of the released code are what it was seen to give. Nothing becomes 0."""
    assert read_rating(text, TEN, "published") == first
    assert read_rating(text, TEN, "corrected") == last


@pytest.mark.parametrize(
    ("scale", "decimals", "text", "expected"),
    [
        ((1, 10), True, "[[7.25]]", 7.25),
        ((1, 10), True, "[[10.5]]", Unrated.BEYOND_SCALE),
        ((0, 100), False, "[[0]]", 0),
        ((-5, 5), False, "[[-3]], [[-5]]", -5),
        ((-5, 5), False, "[[-6]]", Unrated.BEYOND_SCALE),
    ],
    ids=str,
)
def test_the_scale_is_the_judges_own(
    scale: Scale, decimals: bool, text: str, expected: Any
) -> None:
    assert read_rating(text, scale, "corrected", decimals=decimals) == expected


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The hand has six fingers. [[yes]]", "yes"),
        ("[[ No ]], I see none", "no"),
        ("<think>[[yes]]?</think> None is there: [[no]]", "no"),
        ("[[yes]] at first. [[yes]]", "yes"),
        ("[[yes]], or [[no]]", Unrated.AMBIGUOUS),
        ("Yes, six fingers", Unrated.NO_RATING),
        ("[[maybe]]", Unrated.NO_RATING),
        ("", Unrated.NO_RATING),
    ],
)
def test_yes_and_no(text: str, answer: str | Unrated) -> None:
    assert read_yes_no(text) == answer


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("It is sharp. [[8/10]]", 8),
        ("[[8 out of 10]]", 8),
        ("[[4/5]]", Unrated.BEYOND_SCALE),
        ("[8]", 8),
        ("A fine image. [8]", 8),
        ("The first input [2] is kept, the second [1] is lost", Unrated.NO_RATING),
        ("It keeps what is shown in [2]", Unrated.NO_RATING),
        ("so \\boxed{8}", 8),
        ("Score: 7", 7),
        ("**Final rating:** 7/10\nIt is sharp.", 7),
        ("## Overall score = **7**", 7),
        ("Rating (1-10): 7.", 7),
        ("Rating: 70", Unrated.BEYOND_SCALE),
        ("Rating: 7-8", Unrated.NO_RATING),
        ("Score: 70 %", Unrated.NO_RATING),
        ("I saw a score: 3 fans cheered", Unrated.NO_RATING),
        ('{"rating": 7}', 7),
        ('Here: {"explanation": "sharp", "score": 7}', 7),
        ('{"rating": 7, "rating": 8}', Unrated.AMBIGUOUS),
        ("Realism score: 3\nText score: 4", Unrated.NO_RATING),
        ("Score: 3\nScore: 4", Unrated.AMBIGUOUS),
        ("Score: 3\nScore: 4\nFinal score: 3", 3),
    ],
)
def test_other_plain_forms_count_where_the_asked_form_is_missing(
    text: str, rating: float | Unrated
) -> None:
    assert read_rating(text, TEN, "corrected") == rating


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("Overall: [[6]]\nRealism: [[4]]", Unrated.AMBIGUOUS),
        ("**Overall:** [[6]], **Realism** - [[4]]", Unrated.AMBIGUOUS),
        ("## Overall\n[[6]]\n## Realism\n[[4]]", Unrated.AMBIGUOUS),
        ("| Overall | [[6]] |\n| Realism | [[4]] |", Unrated.AMBIGUOUS),
        ("Rating [[6]], though realism is [[3]].", Unrated.AMBIGUOUS),
        ("[[7]] (where [[10]] is best)", Unrated.AMBIGUOUS),
        ("[[7]], on a scale from [[1]] to [[10]]", Unrated.AMBIGUOUS),
        ("[[7]]. [[10]] would be perfect", Unrated.AMBIGUOUS),
        ("[[7]], for example [[9]]", Unrated.AMBIGUOUS),
        ("Rating: [[7]]\nScore: 8", Unrated.AMBIGUOUS),
        ('{"rating": 6}\nRating: [[7]]', Unrated.AMBIGUOUS),
        ("\\boxed{3} [[7]]", Unrated.AMBIGUOUS),
        ('[[7]] {"b": {"rating": 1, "rating": 2}, X', Unrated.AMBIGUOUS),
        ("Score: 8, \\boxed{9}", Unrated.AMBIGUOUS),
        # The same rating twice, and sub-scores before the rating, leave nothing open.
        ("Overall: [[4]]\nRealism: [[4]]", 4),
        ("Realism: [[4]]\nText: [[5]]\nOverall: [[6]]", 6),
        ("Realism: [[4]]\nFinal quality score: [[6]]", 6),
        ("Realism: [[4]]\nRating: [[6]]", 6),
        ("[[1]] is worst and [[10]] is best. Rating: [[7]]", 7),
        ("Score: 3\nScore: 4\nRating: [[6]]", 6),
        ("Score: 7\nRating: [[7]]", 7),
        ("I gave [[3]] at first, and after a second look I say: [[8]]", 8),
        ("The text [2] is blurred. [[7]]", 7),
        ("[[3]] for a start, but it is [[8]]", 8),
        ("[[3]] for a start. My rating is [[8]]", 8),
        ("[[3]] for a start. The overall impression is [[8]]", 8),
    ],
)
def test_ratings_that_contradict_each_other_are_none(text: str, rating: float | Unrated) -> None:
    assert read_rating(text, TEN, "corrected") == rating


@pytest.mark.parametrize(
    "piece",
    [
        *("\n", " ", "-", "w", "w ", "the\n", "my final\n", "(", "[1]", "[[1]] ", "[[1]]\n#w "),
        *("Score: 1\n", '{"a":1}', "<think>"),
    ],
)
def test_no_answer_takes_long(piece: str) -> None:
    started = time.thread_time()
    read_rating(f"[[2]]{piece * 50_000}[[3]]", TEN, "corrected")
    read_rating(f"[[2]] x [[3]]{piece * 50_000}", TEN, "corrected")
    read_rating(piece * 50_000, TEN, "corrected")
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    "between", ["|" * 19 + "a" * 42 + " " * 37, "." * 28 + "b" * 70, "\n#" + "a" * 50 + " " * 48]
)
def test_no_label_takes_long(between: str) -> None:
    started = time.thread_time()
    for _ in range(10):
        read_rating(f"[[3]] {between}[[4]]", TEN, "corrected")
    assert time.thread_time() - started < 5


@given(st.text(st.sampled_from('[]{}/:.-+12340 \nRatingScore|()\\boxed"<think>')))
def test_no_text_breaks_the_reading(text: str) -> None:
    """And whatever is read is on the scale."""
    rating = read_rating(text, TEN, "corrected")
    assert isinstance(rating, Unrated) or rating in range(1, 11)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("[[first]]", "first"),
        ("So: [[ Second ]]\n[[SECOND]]", "second"),
        ("[[[tie]]]", "tie"),
        ("[[first]] or [[tie]]", "two_choices"),
        ("<think>[[first]]?</think>[[second]]", "second"),
        ("<think>[[first]]", "no_choice"),
        *((text, "no_choice") for text in ("", "first", "[first]", "[[fir\u017ft]]", "[[third]]")),
    ],
)
def test_the_choice_is_the_one_in_double_brackets(text: str, choice: str) -> None:
    assert str(read_choice(text)) == choice
