"""Reading what a model said."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from echo_hf.engines.base import Completion
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.answers import (
    DirectAnswers,
    Failure,
    RawText,
    StoredAnswers,
    answers_of,
    parse,
)
from echo_hf.reasons import Failed
from tests.stages_for_tests import Color, Scripted, request

RED = '{"name": "red", "number": 3}'
KEY = bytes.fromhex("ab" * 32)
# Any code points at all, halves of surrogate pairs and control characters included.
ANYTHING = st.text(st.characters() | st.characters(categories=["Cs", "Cc"]))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()


def _failure(text: str | None, **more: Any) -> Failure:
    answer = parse(request("red"), Completion(text, **more), KEY)
    assert isinstance(answer, Failure)
    return answer


@pytest.mark.parametrize(
    "text",
    [
        RED,
        f"\n {RED} \n",
        f"```json\n{RED}\n```",
        f"Sure, here it is: {RED} I hope that helps.",
        '{"number": 3,\n "name": "red", "why": "it {said} so"}\n',
    ],
    ids=["bare", "spaced", "fenced", "in prose", "with further keys"],
)
def test_the_object_is_found_in_what_surrounds_it(text: str) -> None:
    assert parse(request("red"), Completion(text), KEY) == Color(name="red", number=3)


@pytest.mark.parametrize(
    "text",
    ["", "I cannot say.", "[]", "}{", "{", '{"name": "red", "number": 3', f"{RED}\n{RED}"],
    ids=["empty", "prose", "list", "reversed", "brace", "unclosed", "two objects"],
)
def test_what_holds_no_single_object_is_unreadable(text: str) -> None:
    assert _failure(text).reason is Failed.UNREADABLE


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"name": "red"}', "number"),
        ('{"name": "red", "number": 10}', "number"),
        ('{"name": "red", "number": "many"}', "number"),
        ('{"name": null, "number": 3}', "name"),
        (json.dumps({"name": "r" * 21, "number": 3}), "name"),
    ],
)
def test_an_object_of_another_shape_is_off_schema(text: str, place: str) -> None:
    failure = _failure(text)
    assert failure.reason is Failed.OFF_SCHEMA
    assert failure.detail.startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("completion", "reason", "detail"),
    [
        (Completion(None, "no power", "error"), Failed.ENGINE_ERROR, "no power"),
        (Completion(RED, "no power", "stop"), Failed.ENGINE_ERROR, "no power"),
        (Completion(None), Failed.ENGINE_ERROR, "stop"),
        (Completion(RED[:9], None, "length"), Failed.CUT, "length"),
        (Completion(RED, None, "length"), Failed.CUT, "length"),
        (Completion("I will not.", None, "refusal"), Failed.REFUSED, "refusal"),
        (Completion(RED, None, "tool_calls"), Failed.ENGINE_ERROR, "tool_calls"),
        (
            Completion(None, "needs_model", "error"),
            Failed.NEEDS_MODEL,
            "an engine without a model has no answer; run it with one",
        ),
        (
            Completion(None, "not_answered", "error"),
            Failed.NOT_ANSWERED,
            "no answer is stored, and none was asked for",
        ),
        (None, Failed.NOT_ANSWERED, "no stored answer"),
    ],
)
def test_what_is_no_answer_is_never_read_as_one(
    completion: Completion | None, reason: Failed, detail: str
) -> None:
    assert parse(request("red"), completion, KEY) == Failure(reason, detail, "ab" * 32)


def _raw(completion: Completion | None) -> BaseModel | Failure:
    return parse(replace(request("red"), answer=None), completion, KEY)


@pytest.mark.parametrize("text", ["8", " [[8]]\n", RED, "{", "赤"])
def test_without_a_declared_shape_the_text_is_the_answer(text: str) -> None:
    assert _raw(Completion(text)) == RawText(text)


@pytest.mark.parametrize("text", ["", " \n", "8 \ud83d"])
def test_a_blank_or_broken_text_is_unreadable(text: str) -> None:
    failure = _raw(Completion(text))
    assert isinstance(failure, Failure)
    assert failure.reason is Failed.UNREADABLE
    assert failure.detail.encode()


def test_a_text_that_is_not_accepted_is_unreadable() -> None:
    asked = replace(request("red"), answer=None, accepts=lambda text: text.strip() == "safe")
    assert parse(asked, Completion("\nsafe"), KEY) == RawText("\nsafe")
    assert parse(asked, Completion("safe\x1b?"), KEY) == Failure(
        Failed.UNREADABLE, r"none of the answers that may be given: 'safe\x1b?'", "ab" * 32
    )


@pytest.mark.parametrize(
    ("text", "read"),
    [("[[7]]", "[[7]]"), (" [[10]]\n", "[[10]]"), ("[[7]] or so", None), ("7", None)],
)
def test_a_text_has_the_form_that_was_asked_for(text: str, read: str | None) -> None:
    asked = replace(request("red", answer=None), regex=r"\[\[\d{1,2}\]\]")  # type: ignore[arg-type]
    found = parse(asked, Completion(text), b"")
    if read is None:
        assert isinstance(found, Failure)
        assert found.reason is Failed.OFF_SCHEMA
    else:
        assert found == RawText(read)


def test_the_form_of_a_text_is_part_of_its_key() -> None:
    plain = request("red", answer=None)  # type: ignore[arg-type]
    forms = [plain, replace(plain, regex="a"), replace(plain, regex="b"), replace(plain)]
    first, a, b, again = request_keys({}, forms)
    assert len({first, a, b}) == 3
    assert again == first


@given(ANYTHING)
def test_no_text_whatever_breaks_the_reading(text: str) -> None:
    answer = parse(request("red"), Completion(text), KEY)
    assert isinstance(answer, (Color, Failure))
    if isinstance(answer, Failure):
        assert answer.detail.encode()


@given(ANYTHING, st.sampled_from(["error", "length", "refusal"]))
def test_no_error_message_breaks_the_reading(said: str, finish: str) -> None:
    detail = _failure(None, error=said, finish_reason=finish).detail
    assert detail.encode()
    assert len(detail) <= 300 * len(r"\ud800")


@given(ANYTHING, ANYTHING)
def test_prose_without_braces_never_hides_an_object(before: str, after: str) -> None:
    around = [text.translate({ord("{"): "(", ord("}"): ")"}) for text in (before, after)]
    text = f"{around[0]}{RED}{around[1]}"
    assert parse(request("red"), Completion(text), KEY) == Color(name="red", number=3)


@pytest.mark.parametrize("text", ["{" * 400_000, "{" * 200_000 + "}" * 200_000, "[" * 400_000])
def test_reading_takes_no_time_worth_naming(text: str) -> None:
    started = time.process_time()
    assert _failure(text).reason is Failed.UNREADABLE
    assert time.process_time() - started < 5


def test_stored_answers_come_in_the_order_of_the_requests(store: Store) -> None:
    signature = {"model": "one"}
    asked = [request("red"), request("blue"), request("green")]
    keys = request_keys(signature, asked)
    store.put(keys[0], asked[0], Completion(RED), signature)
    store.put(keys[1], asked[1], Completion(None, "no power", "error"), signature)
    given = StoredAnswers(store, signature).read([asked[2], asked[1], asked[0], asked[0]])
    assert given == [
        Failure(Failed.NOT_ANSWERED, "no stored answer", keys[2].hex()),
        Failure(Failed.ENGINE_ERROR, "no power", keys[1].hex()),
        Color(name="red", number=3),
        Color(name="red", number=3),
    ]
    assert StoredAnswers(store, signature).read([]) == []


def test_an_engine_without_a_store_answers_directly() -> None:
    answers = answers_of(Scripted(stored=False), None)
    assert isinstance(answers, DirectAnswers)
    asked = [request(line) for line in ("red", "silent blue", "green", "off pink")]
    given = answers.read(asked)
    assert given[0] == Color(name="red", number=3)
    assert given[2] == Color(name="green", number=5)
    failed = [one.reason for one in given if isinstance(one, Failure)]
    assert failed == [Failed.NOT_ANSWERED, Failed.OFF_SCHEMA]


def test_an_engine_whose_answers_are_kept_needs_a_store(store: Store) -> None:
    with pytest.raises(EngineError, match="'Scripted' needs a store"):
        answers_of(Scripted(), None)
    assert answers_of(Scripted(), store).signature == {"kind": "scripted", "model": "one"}
