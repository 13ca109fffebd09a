"""Verdicts on comments, keywords of failures, and the kinds of tasks."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from echo_hf.curate.feedback import (
    MAX_COMMENTS,
    MAX_TEXT,
    MAX_TEXTS,
    VERDICTS,
    Feedback,
    FeedbackAnswer,
    FeedbackNotice,
    FeedbackVerdict,
    JudgedComment,
    PhraseAnswer,
    SampleKind,
    TaskName,
    add_verdicts,
    normalize_phrase,
    read_failure_keyword,
    split_comments,
)
from echo_hf.engines.base import Failed
from echo_hf.pipeline.answer_store import compute_request_keys
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.reasons import NoticeReason
from echo_hf.samples.sample import SampleNotice
from echo_hf.tables import SAMPLES
from tests.samples_for_tests import TARGET, digest, kept, noted, post, said, sample, table, url

STAGE = Feedback(TARGET)
FAILURE = Failure(Failed.CUT, "length", "ff")
NO_MODEL = Failure(Failed.NEEDS_MODEL, "no model", "")
CONTEXT = [
    post(0, -1, "prompt"),
    post(1, 0, "so good", author="bo"),
    post(2, 0, "six fingers again"),
]
SAMPLE = sample(CONTEXT, [0], [1, 2], input_images=[digest("a")], output_images=[digest("b")])
GOOD = {"comment": 0, "verdict": "success", "keyword": None}
PHRASE = PhraseAnswer(task_phrase="Turn a pet into a pastry.")
BAD = {"comment": 1, "verdict": "failure", "keyword": "extra fingers"}


def answer(*feedback: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {"kind": "task", "task": "edit", "feedback": list(feedback), **values}


def made(
    *given_: tuple[dict[str, Any], list[Any]], phrase: BaseModel | Failure = PHRASE
) -> list[dict[str, Any]]:
    answers: list[list[BaseModel | Failure]] = [
        [FAILURE if one is None else FeedbackAnswer.model_validate(one) for one in said]
        + ([phrase] if said else [])
        for _, said in given_
    ]
    return list(STAGE.finish(table(*(row for row, _ in given_)), answers).to_pylist())


def verdicts(row: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    return [(one["verdict"], one["keyword"]) for one in row["community_feedback"]]


def test_a_sample_says_what_it_is_and_what_failed() -> None:
    """By hand: kind and task, a success and a failure with its keyword, nothing else changed."""
    (row,) = made((SAMPLE, [answer(GOOD, BAD)]))
    touched = {"kind", "task", "task_phrase", "community_feedback", "provenance"}

    assert (row["kind"], row["task"]) == ("task", "edit")
    assert row["task_phrase"] == "turn a pet into a pastry"
    assert verdicts(row) == [("success", None), ("failure", "extra fingers")]
    assert [one["feedback"] for one in row["community_feedback"]] == [
        "so good",
        "six fingers again",
    ]
    untouched = set(SAMPLES.columns) - touched
    assert {name: row[name] for name in untouched} == {name: SAMPLE[name] for name in untouched}
    provenance = json.loads(row["provenance"])
    assert provenance == {
        "extract": {"digest": "d"},
        "feedback": {"digest": STAGE.digest(), "engine": {}},
    }


def test_a_failed_part_leaves_its_comments_without_verdicts() -> None:
    context = [post(0, -1, "p"), *(post(n, 0, "hm") for n in range(1, MAX_COMMENTS + 2))]
    many = sample(context, [0], range(1, len(context)))
    rows = made((many, [None, answer({**BAD, "comment": MAX_COMMENTS})]))

    assert verdicts(kept(rows)[0]) == [(None, None)] * MAX_COMMENTS + [("failure", "extra fingers")]
    assert [row["_status"] for row in rows] == ["kept", "quarantined"]
    assert kept(rows)[0]["kind"] == "task"


@pytest.mark.parametrize(
    ("other", "detail"),
    [
        ({}, []),
        ({"kind": "probe"}, ["task edit, probe edit"]),
        ({"task": None}, ["task edit, task null"]),
    ],
)
def test_parts_that_disagree_are_noted(other: dict[str, Any], detail: list[str]) -> None:
    """A part that failed leaves its comments without verdicts."""
    count = 2 * MAX_COMMENTS + 1
    context = [post(0, -1, "p"), *(post(n, 0, "hm") for n in range(1, count + 1))]
    every = [{**GOOD, "comment": number} for number in range(count)]
    first, last = every[:MAX_COMMENTS], every[2 * MAX_COMMENTS :]
    parts = [answer(*first), None, answer(*last, **other)]
    rows = made((sample(context, [0], range(1, count + 1)), parts))
    (row,) = kept(rows)

    assert (row["kind"], row["task"]) == ("task", "edit")
    assert row["task_phrase"] == "turn a pet into a pastry"
    assert noted(rows) == [("parts_disagree", each) for each in detail]
    failed = [("success", None)] * MAX_COMMENTS + [(None, None)] * MAX_COMMENTS
    assert verdicts(row) == [*failed, ("success", None)]
    assert [one["_status"] for one in rows].count("quarantined") == 1


def test_the_phrase_is_asked_for_last_of_the_prompt_alone() -> None:
    """Equal prompts are one request, whatever is said about them; the part counts in no key."""
    trash = {**SAMPLE, "quality": "Trash"}
    quiet = sample(CONTEXT, [0], [], input_images=[digest("a")], output_images=[digest("b")])
    first, none, other = STAGE.requests(table(SAMPLE, trash, quiet))
    (request, again) = (first[-1], other[-1])
    shown = {"prompt": "a fox in the snow", "inputs": 1, "outputs": 1}

    assert none == []
    assert request.inputs == {**shown, "target": TARGET.model_dump(mode="json")}
    assert (request.sources, request.part, request.answer) == ((url(0),), 1, PhraseAnswer)
    assert compute_request_keys({}, [request]) == compute_request_keys({}, [again])
    assert STAGE.phrase_prompt.text in STAGE.describe()["prompt"]


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("phrase", [PHRASE, PhraseAnswer(), FAILURE, NO_MODEL])
def test_a_phrase_and_verdicts_do_not_wait_for_each_other(
    phrase: BaseModel | Failure, failed: bool
) -> None:
    """Of an engine that is no model a phrase is not expected: all else of the row is there."""
    rows = made((SAMPLE, [None if failed else answer(GOOD, BAD)]), phrase=phrase)
    waits = failed or phrase is FAILURE
    assert [row["_status"] for row in rows] == ["kept", *["quarantined"] * waits]
    (row,) = kept(rows)
    assert row["task_phrase"] == ("turn a pet into a pastry" if phrase is PHRASE else None)
    assert row["task"] == (None if failed else "edit")
    if failed:
        same = SAMPLE.keys() - {"provenance", "community_feedback", "task_phrase"}
        assert {name: row[name] for name in same} == {name: SAMPLE[name] for name in same}
        assert verdicts(row) == [(None, None)] * 2


@pytest.mark.parametrize(
    ("given_", "phrase"),
    [
        (' "Turn a  Photo\ninto a\u200b map!" ', "turn a photo into a map"),
        ("restore a photo", "restore a photo"),
        ("ｄｒａｗ a cat", "draw a cat"),
        ("draw", None),
        ("", None),
        (" ".join("abcdefghijklm"), None),
        ("draw <b>it</b>", None),
        ("write to @mira now", None),
        ("look at https://example.org now", None),
    ],
)
def test_a_phrase_is_a_few_plain_words(given_: str, phrase: str | None) -> None:
    assert normalize_phrase(given_) == phrase
    rows = made((SAMPLE, [answer(GOOD, BAD)]), phrase=PhraseAnswer(task_phrase=given_))
    assert kept(rows)[0]["task_phrase"] == phrase
    is_named = bool(given_) and phrase is None
    assert noted(rows) == ([("bad_phrase", repr(given_))] if is_named else [])


def test_the_names_are_those_of_the_prompt() -> None:
    names = [*get_args(SampleKind), *get_args(TaskName), *get_args(FeedbackVerdict)]

    assert [name for name in names if f'"{name}"' not in STAGE.prompt.text] == []
    assert set(VERDICTS) == set(get_args(FeedbackVerdict))
    assert len(set(names)) == len(names)  # the tally counts them together


def test_the_counts_by_hand() -> None:
    mixed = {**BAD, "verdict": "mixed"}
    answers = [answer(GOOD, BAD), answer(GOOD, mixed), answer(kind="probe", task=None)]
    parsed: list[list[BaseModel | Failure]] = [
        [FeedbackAnswer.model_validate(a), phrase]
        for a, phrase in zip(answers, (PHRASE, PHRASE, PhraseAnswer()), strict=True)
    ]
    done = STAGE.finish(table(SAMPLE, SAMPLE, SAMPLE), parsed)
    tally = STAGE.tally(done.filter(pc.equal(done["_status"], "kept")))

    counts = {"edit": 2, "failure": 1, "mixed": 1, "probe": 1, "success": 2, "task": 2}
    assert tally == {**counts, "phrased": 2}
    assert Feedback.headline({"feedback": StageStats("feedback", 3, 3, tally=tally)}) == (
        "2 of 4 comments speak of a failure (50 %); 1 samples explore the model itself"
    )


def test_comments_are_numbered_and_say_who_wrote_them() -> None:
    """By hand: the author of the task answers, and somebody else."""
    context = [
        post(0, -1, "look", author="bo"),
        post(1, 0, "prompt"),
        post(2, 1, "it failed"),
        post(3, 1, "x" * (MAX_TEXT + 5), author=None),
    ]
    cut = "x" * MAX_TEXT + "\n[... 5 characters left out]"
    assert split_comments(sample(context, [1, 0], [2, 3])) == [
        [
            {"comment": 0, "text": "it failed", "by_author": True},
            {"comment": 1, "text": cut, "by_author": False},
        ]
    ]
    nobody = [{**one, "author": None} for one in context]
    assert not any(one["by_author"] for one in split_comments(sample(nobody, [1, 0], [2, 3]))[0])


LENGTHS = st.sampled_from([0, 3, 3, 1000, 4000, 9000])


@given(st.lists(LENGTHS, max_size=150) | st.lists(st.just(1), min_size=60, max_size=200))
def test_parts_hold_each_comment_once(lengths: list[int]) -> None:
    said_ = (post(n, 0, "x" * length, author="bo") for n, length in enumerate(lengths, 1))
    context = [post(0, -1, "prompt"), *said_]
    parts = split_comments(sample(context, [0], range(1, len(context))))
    numbers = [one["comment"] for part in parts for one in part]
    sizes = [sum(len(one["text"]) for one in part) for part in parts]

    assert numbers == list(range(len(lengths)))
    assert all(len(part) <= MAX_COMMENTS for part in parts)
    assert all(size <= MAX_TEXTS for size in sizes)
    assert all(part for part in parts) or parts == [[]]
    for part, following in pairwise(parts):  # no part is left half empty
        size = sum(len(one["text"]) for one in [*part, following[0]])
        assert len(part) == MAX_COMMENTS or size > MAX_TEXTS


def test_a_keyword_that_is_left_out_is_named() -> None:
    long = "six\u202e fingers on his own left hand"
    parts = [
        ([(0, "failure", long), (1, "success", "great"), (7, "failure", long)], [0, 1]),
        ([(2, "none", "hands"), (2, "failure", long), (0, "none", None)], [2, 3]),
    ]
    names = ("comment", "verdict", "keyword")
    answers = [
        (answer(*(dict(zip(names, one, strict=True)) for one in judged)), shown)
        for judged, shown in parts
    ]
    made_, findings = add_verdicts(
        [said(post(number, 0, "hm")) for number in range(4)],
        [
            (FeedbackAnswer.model_validate(one), [{"comment": number} for number in shown])
            for one, shown in answers
        ],
    )

    verdicts_ = verdicts({"community_feedback": made_})
    assert verdicts_ == [("failure", None), ("success", None), ("none", None), (None, None)]
    assert findings == [
        (FeedbackNotice.BAD_KEYWORD, r"comment 0: 'six\u202e fingers on his own left hand'"),
        (FeedbackNotice.KEYWORD_WITHOUT_FAILURE, "comment 1: 'great'"),
        (SampleNotice.UNKNOWN_NUMBER, "comment 7"),
        (FeedbackNotice.KEYWORD_WITHOUT_FAILURE, "comment 2: 'hands'"),
        (FeedbackNotice.JUDGED_TWICE, "comment 2"),
        (SampleNotice.UNKNOWN_NUMBER, "comment 0"),
        (FeedbackNotice.UNJUDGED_COMMENT, url(3)),
    ]


def found(keyword: str | None, verdict: str = "failure") -> tuple[str | None, NoticeReason | None]:
    return read_failure_keyword(
        JudgedComment.model_validate({"comment": 0, "verdict": verdict, "keyword": keyword})
    )


@pytest.mark.parametrize("verdict", get_args(FeedbackVerdict))
@pytest.mark.parametrize(
    ("given_", "keyword", "notice"),
    [
        ("hands", "hands", None),
        (" Colour\n\tCast ", "colour cast", None),
        ("too many fingers on one hand", "too many fingers on one hand", None),
        ("\x1b[31mred\u202e cast", "[31mred cast", None),
        ("mis\u00adspelt \u200b text\ue000", "misspelt text", None),
        *(
            (text, None, FeedbackNotice.BAD_KEYWORD)
            for text in ("a b c d e f g", "\u200b", "\x1b \u202e")
        ),
        *((text, None, None) for text in (None, "", " \n")),
    ],
)
def test_a_keyword_is_the_short_name_of_a_failure(
    given_: str | None, keyword: str | None, notice: NoticeReason | None, verdict: str
) -> None:
    if verdict in ("success", "none") and (keyword or notice):
        keyword, notice = None, FeedbackNotice.KEYWORD_WITHOUT_FAILURE
    assert found(given_, verdict) == (keyword, notice)
