"""Reading what a model said."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion, Failed, Request
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.answers import (
    DirectAnswers,
    Failure,
    NotedAnswer,
    RawText,
    StoredAnswers,
    as_source,
    parse,
)
from tests.stages_for_tests import Color, Scripted, request

RED = '{"name": "red", "number": 3}'
KEY = bytes.fromhex("ab" * 32)
# Any code points at all, halves of surrogate pairs and control characters included.
ANYTHING = st.text(st.characters() | st.characters(categories=["Cs", "Cc"]))


def _failure(text: str | None, **more: Any) -> Failure:
    answer = parse(request("red"), Completion(text, **more), KEY)
    assert isinstance(answer, Failure)
    return answer


@pytest.mark.parametrize(
    "text",
    [
        f"\n {RED} \n",
        f"```json\n{RED}\n```",
        f"Sure, here it is: {RED} I hope that helps.",
        '{"number": 3,\n "name": "red", "why": "it {said} so"}\n',
        f'<think>A form {{like}} this: {{"name": "blue", "number": 9}}</think>{RED}',
        f'First {{"name": "blue", "number": 9}}, no: {RED}',
        f"[{RED}]",
        '{"name": "red", "number": 3, "number": 3}',
    ],
    ids=["spaced", "fenced", "in prose", "keys", "after a thought", "last", "array", "repeated"],
)
def test_the_object_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse(request("red"), Completion(text), KEY) == Color(name="red", number=3)


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        *((text, Failed.UNREADABLE, "") for text in ("", "I cannot say.", "[]", "}{", "{")),
        ('{"name": "red", "number": 3', Failed.UNREADABLE, ""),
        (f"<think>{RED}</think>\nThere is no color here.", Failed.UNREADABLE, ""),
        (f"<reasoning>{RED}, I guess", Failed.UNREADABLE, ""),
        ('{"name": "red", "number": 3, "number": 4}', Failed.OFF_SCHEMA, "'number' occurs twice"),
        (f"[{RED}, {RED}]", Failed.OFF_SCHEMA, "answer: "),
        ('{"name": "red"}', Failed.OFF_SCHEMA, "number: "),
        (json.dumps({"name": "r" * 21, "number": 3}), Failed.OFF_SCHEMA, "name: "),
    ],
)
def test_what_is_no_object_of_the_shape_is_told_apart(
    text: str, reason: Failed, place: str
) -> None:
    failure = _failure(text)
    assert (failure.reason, failure.detail[: len(place)]) == (reason, place)


NO_MODEL = "an engine without a model has no answer; run it with one"
NOT_ASKED = "no answer is stored, and none was asked for"
TEXT = replace(request("red"), answer=None)
SAFE = replace(TEXT, accepts=lambda text: text.strip() == "safe")
RATING = replace(TEXT, regex=r"\[\[\d{1,2}\]\]")


@pytest.mark.parametrize(
    ("asked", "text", "read"),
    [
        *((TEXT, text, text) for text in ("8", " [[8]]\n", RED, "{", "赤")),
        *((TEXT, text, Failed.UNREADABLE) for text in ("", " \n", "8 \ud83d")),
        (SAFE, "\nsafe", "\nsafe"),
        (SAFE, "safe\x1b?", Failed.UNREADABLE),
        (SAFE, "<think>unsafe?</think>safe", "safe"),
        (TEXT, "<think>[[3]]</think>[[4]]", "<think>[[3]]</think>[[4]]"),
        (RATING, "[[7]]", "[[7]]"),
        (RATING, " [[10]]\n", "[[10]]"),
        (RATING, "[[7]] or so", Failed.OFF_SCHEMA),
        (RATING, "7", Failed.OFF_SCHEMA),
    ],
)
def test_without_a_declared_shape_the_text_is_the_answer(
    asked: Request, text: str, read: str | Failed
) -> None:
    found = parse(asked, Completion(text), KEY)
    if isinstance(read, Failed):
        assert isinstance(found, Failure)
        assert found.reason is read
        assert found.detail.encode()
        assert found.detail.isprintable()
    else:
        assert found == RawText(read)


@pytest.mark.parametrize(
    ("completion", "reason", "detail"),
    [
        (Completion(RED, "no power", "stop"), Failed.ENGINE_ERROR, "no power"),
        (Completion(None), Failed.ENGINE_ERROR, "stop"),
        (Completion(RED, None, "length"), Failed.CUT, RED),
        (Completion(None, None, "length"), Failed.CUT, "length"),
        (Completion("I will not.", None, "refusal"), Failed.REFUSED, "I will not."),
        (Completion(None, "needs_model", "error"), Failed.NEEDS_MODEL, NO_MODEL),
        (Completion(None, "not_answered", "error"), Failed.NOT_ANSWERED, NOT_ASKED),
        (
            Completion(None, "damaged_answer", "error"),
            Failed.DAMAGED_ANSWER,
            Failed.DAMAGED_ANSWER.meaning,
        ),
        (None, Failed.NOT_ANSWERED, "no stored answer"),
    ],
)
def test_what_is_no_answer_is_never_read_as_one(
    completion: Completion | None, reason: Failed, detail: str
) -> None:
    assert parse(request("red"), completion, KEY) == Failure(reason, detail, "ab" * 32)


@example("\ud83d", "", "error")
@given(ANYTHING, ANYTHING, st.sampled_from(["error", "length", "refusal"]))
def test_no_text_whatever_breaks_the_reading(text: str, after: str, finish: str) -> None:
    """And prose without braces never hides an object."""
    answer = parse(request("red"), Completion(text), KEY)
    assert isinstance(answer, Color) or _failure(text).detail.encode()
    detail = _failure(None, error=text, finish_reason=finish).detail
    assert detail.encode()
    assert len(detail) <= 300 * len(r"\ud800")
    around = [one.translate({ord("{"): "(", ord("}"): ")"}) for one in (text, after)]
    found = parse(request("red"), Completion(f"{around[0]}{RED}{around[1]}"), KEY)
    assert found == Color(name="red", number=3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{" * 400_000, Failed.UNREADABLE),
        ("{" * 200_000 + "}" * 200_000, Failed.OFF_SCHEMA),  # the empty object in the middle
    ],
    ids=["never closed", "nested"],
)
def test_reading_takes_no_time_worth_naming(text: str, reason: Failed) -> None:
    started = time.thread_time()
    assert _failure(text).reason is reason
    assert time.thread_time() - started < 5


def test_stored_answers_come_in_the_order_of_the_requests(store: Store) -> None:
    signature = {"model": "one"}
    asked = [request("red"), request("blue"), request("green")]
    keys = compute_request_keys(signature, asked)
    store.put(keys[0], asked[0], Completion(RED), signature)
    store.put(keys[1], asked[1], Completion(None, "no power", "error"), signature)
    given = StoredAnswers(store, signature).read([asked[2], asked[1], asked[0], asked[0]])
    assert given[:2] == [
        Failure(Failed.NOT_ANSWERED, "no stored answer", keys[2].hex()),
        Failure(Failed.ENGINE_ERROR, "no power", keys[1].hex()),
    ]
    assert given[2:] == [Color(name="red", number=3)] * 2


def test_an_engine_without_a_store_answers_directly() -> None:
    answers = as_source(Scripted(stored=False), None)
    assert isinstance(answers, DirectAnswers)
    asked = [request(line) for line in ("red", "silent blue", "green", "off pink")]
    given = answers.read(asked)
    assert given[0] == Color(name="red", number=3)
    assert given[2] == Color(name="green", number=5)
    failed = [one.reason for one in given if isinstance(one, Failure)]
    assert failed == [Failed.NOT_ANSWERED, Failed.OFF_SCHEMA]


def test_an_engine_whose_answers_are_kept_has_a_store_of_its_own_where_none_is_given() -> None:
    answers = as_source(engine := Scripted(), None)
    assert answers.signature == engine.signature()
    assert [one.reason for one in answers.read([request("red")])] == [Failed.NOT_ANSWERED]  # type: ignore[union-attr]


class Graded(NotedAnswer):
    score: int
    note: str | None = None


@pytest.mark.parametrize(
    ("answer", "text", "score"),
    [
        (Graded, '{"score": 4, "note": "It is uncl', 4),
        (Graded, '<think>{</think>{"score": 4, "note": "', 4),
        (Graded, '{"score": 4, "note": "whole"', None),
        (Graded, '{"score": 4', None),
        (Color, '{"name": "red", "number": 3, "note": "It is uncl', None),
    ],
)
def test_a_cut_answer_counts_where_only_its_note_is_cut(
    store: Store, answer: Any, text: str, score: int | None
) -> None:
    asked, signature = replace(request("red"), answer=answer), {"model": "lumen"}
    (key,), completion = compute_request_keys(signature, [asked]), Completion(text, None, "length")
    found = parse(asked, completion, key)
    store.put(key, asked, completion, signature, readable=not isinstance(found, Failure))
    assert StoredAnswers(store, signature).read([asked]) == [found]
    if score is None:
        assert found == Failure(Failed.CUT, text, key.hex())
    else:
        assert isinstance(found, Graded)
        assert (found.score, found.note, found.note_is_cut) == (score, None, True)
        assert store.records([key])[key].is_settled
