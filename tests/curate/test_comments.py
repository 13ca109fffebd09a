"""Comments as a model is shown them, and the verdicts that are taken from its answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.feedback import (
    LONGEST_TEXT,
    LONGEST_TEXTS,
    MOST_COMMENTS,
    FeedbackAnswer,
    Verdicts,
    parts_of,
)
from echo_hf.reasons import Notice
from tests.samples_for_tests import post, said, sample, url


def commented(*texts: str, author: str = "bo") -> dict[str, Any]:
    """A sample with these comments on it."""
    context = [
        post(0, -1, "prompt"),
        *(post(n, 0, text, author=author) for n, text in enumerate(texts, 1)),
    ]
    return sample(context, [0], range(1, len(context)))


def answer(*judged: tuple[int, str, str | None]) -> FeedbackAnswer:
    """Verdict and keyword by the number of the comment."""
    feedback = [
        {"comment": number, "verdict": verdict, "keyword": keyword}
        for number, verdict, keyword in judged
    ]
    return FeedbackAnswer.model_validate({"kind": "task", "task": "edit", "feedback": feedback})


def verdicts(
    *answers: tuple[FeedbackAnswer, list[int]], count: int = 3
) -> tuple[list[tuple[str | None, str | None]], list[tuple[Notice, str]]]:
    """Verdict and keyword of each comment, and the findings, for answers about these comments."""
    made = Verdicts([said(post(number, 0, "hm")) for number in range(count)])
    for one, shown in answers:
        made.add(one, [{"comment": number} for number in shown])
    return [(one["verdict"], one["keyword"]) for one in made.feedback()], made.findings


def test_comments_are_numbered_and_say_who_wrote_them() -> None:
    """By hand: the author of the task answers, and somebody else."""
    context = [
        post(0, -1, "look", author="bo"),
        post(1, 0, "prompt"),
        post(2, 1, "it failed"),
        post(3, 1, "wow", author="bo"),
    ]
    assert parts_of(sample(context, [1, 0], [2, 3])) == [
        [
            {"comment": 0, "text": "it failed", "by_author": True},
            {"comment": 1, "text": "wow", "by_author": False},
        ]
    ]


def test_nobody_knows_who_wrote_it() -> None:
    """Two posts without an author are not by the same one."""
    context = [post(0, -1, "prompt", author=None), post(1, 0, "wow", author=None)]
    assert not parts_of(sample(context, [0], [1]))[0][0]["by_author"]


def test_a_sample_without_comments_is_one_part() -> None:
    """Its task is still to be named."""
    assert parts_of(commented()) == [[]]


def test_a_very_long_comment_says_how_much_is_left_out() -> None:
    """No comment is longer than a request can show."""
    ((first, second),) = parts_of(commented("x" * (LONGEST_TEXT + 5), "wow"))

    assert first["text"] == "x" * LONGEST_TEXT + "\n[... 5 characters left out]"
    assert second["text"] == "wow"


def test_long_comments_are_shared_out() -> None:
    """By hand: four of 4,000 characters fill a part of 16,000, and every part alike."""
    parts = parts_of(commented(*["x" * 4000] * 10))
    assert [[one["comment"] for one in part] for part in parts] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]


LENGTHS = st.sampled_from([0, 3, 3, 1000, 4000, 9000])


@given(st.lists(LENGTHS, max_size=150) | st.lists(st.just(1), min_size=60, max_size=200))
def test_parts_hold_each_comment_once(lengths: list[int]) -> None:
    """In order, no more than an answer can name, and no longer than a model can read."""
    parts = parts_of(commented(*("x" * length for length in lengths)))
    numbers = [one["comment"] for part in parts for one in part]
    sizes = [sum(len(one["text"]) for one in part) for part in parts]

    assert numbers == list(range(len(lengths)))
    assert all(len(part) <= MOST_COMMENTS for part in parts)
    assert all(size <= LONGEST_TEXTS for size in sizes)
    assert all(part for part in parts) or parts == [[]]
    for part, following in pairwise(parts):  # no part is left half empty
        size = sum(len(one["text"]) for one in [*part, following[0]])
        assert len(part) == MOST_COMMENTS or size > LONGEST_TEXTS


def test_verdicts_stand_with_their_comments() -> None:
    """Whatever the order of the answer; keywords in small letters, for failures alone."""
    said_, findings = verdicts(
        (
            answer((2, "mixed", " Colour\n Cast "), (0, "success", " "), (1, "failure", "")),
            [0, 1, 2],
        )
    )

    assert said_ == [("success", None), ("failure", None), ("mixed", "colour cast")]
    assert findings == []


def test_a_comment_without_a_verdict_is_named() -> None:
    """Only those that were shown in an answered part; the others wait for their own answer."""
    said_, findings = verdicts((answer((0, "none", None)), [0, 1]))

    assert said_ == [("none", None), (None, None), (None, None)]
    assert findings == [(Notice.UNJUDGED_COMMENT, url(1))]


def test_a_part_judges_its_own_comments_only() -> None:
    """An answer about comments it was not shown does not reach them."""
    said_, findings = verdicts(
        (answer((0, "success", None), (1, "success", None), (9, "success", None)), [0]),
        (answer((1, "failure", "hands"), (0, "failure", "hands")), [1]),
        count=2,
    )

    assert said_ == [("success", None), ("failure", "hands")]
    assert findings == [
        (Notice.UNKNOWN_NUMBER, "comment 1"),
        (Notice.UNKNOWN_NUMBER, "comment 9"),
        (Notice.UNKNOWN_NUMBER, "comment 0"),
    ]


def test_the_first_of_two_verdicts_counts() -> None:
    """A second one is noted, unless it says the same."""
    said_, findings = verdicts(
        (answer((0, "success", None), (0, "failure", "hands"), (0, "success", None)), [0]),
        count=1,
    )

    assert said_ == [("success", None)]
    assert findings == [(Notice.JUDGED_TWICE, "comment 0")]


def test_a_keyword_that_is_left_out_is_named() -> None:
    """Once, as it was given, and only where its verdict counts; the verdict stays."""
    long = "six\u202e fingers on his own left hand"
    said_, findings = verdicts(
        (
            answer((0, "failure", long), (1, "success", "great"), (7, "failure", long)),
            [0, 1],
        ),
        (answer((2, "none", "hands"), (2, "failure", long)), [2]),
    )

    assert said_ == [("failure", None), ("success", None), ("none", None)]
    assert findings == [
        (Notice.BAD_KEYWORD, r"comment 0: 'six\u202e fingers on his own left hand'"),
        (Notice.KEYWORD_WITHOUT_FAILURE, "comment 1: 'great'"),
        (Notice.UNKNOWN_NUMBER, "comment 7"),
        (Notice.KEYWORD_WITHOUT_FAILURE, "comment 2: 'hands'"),
        (Notice.JUDGED_TWICE, "comment 2"),
    ]
