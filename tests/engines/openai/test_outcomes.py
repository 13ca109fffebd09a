"""What responses mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.http_errors import Reply
from echo_hf._infra.retry import RequestError
from echo_hf.engines.base import Completion, Usage
from echo_hf.engines.openai import OpenAIEngine

JUDGED = OpenAIEngine(model="tiny").judged
USAGE = {"prompt_tokens": 9, "completion_tokens": 2}
PAID = Usage(9, 2)
NO = "the response is not a chat completion: "


def _judged(document: Any) -> Completion:
    return JUDGED(Reply(200, {}, json.dumps(document)))


def _done(content: Any, finish_reason: Any = "stop", **message: Any) -> Completion:
    choice = {"message": {"content": content, **message}, "finish_reason": finish_reason}
    return _judged({"choices": [choice], "usage": USAGE})


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (_done("red"), Completion("red", usage=PAID)),
        (_done(""), Completion("", usage=PAID)),
        (_done("red", refusal=None), Completion("red", usage=PAID)),
        (_done("re", "length"), Completion("re", None, "length", PAID)),
        (_done(None, "length"), Completion("", None, "length", PAID)),
        (_done(None, refusal="I will not."), Completion(None, "I will not.", "refusal", PAID)),
        (_done("re", "content_filter"), Completion(None, "content_filter", "refusal", PAID)),
        (_done(None), Completion(None, "the answer has no content", "error", PAID)),
        (
            _done("red", "abort"),
            Completion(None, "the answer ended with finish_reason 'abort'", "error", PAID),
        ),
        (
            _done("red", None),
            Completion(None, "the answer ended with finish_reason None", "error", PAID),
        ),
        (_done(["red"]), Completion(None, f"{NO}its content is not text", "error", PAID)),
    ],
)
def test_endings_are_told_apart(done: Completion, expected: Completion) -> None:
    """Only a text that the model ended itself is an answer; all of them were paid for."""
    assert done == expected


def test_half_a_character_is_kept() -> None:
    """An answer that was cut inside an emoji is a cut answer like any other."""
    assert _done("\ud83d", "length").text == "\ud83d"


@pytest.mark.parametrize(
    "document",
    [[], 5, None, {}, {"choices": []}, {"choices": 3}, {"choices": [None]}, {"choices": [{}]}],
    ids=str,
)
def test_other_documents_are_failures(document: Any) -> None:
    """With a name."""
    completion = _judged(document)
    assert completion.finish_reason == "error"
    assert (completion.error or "").startswith(NO)


def test_errors_inside_a_response_are_errors() -> None:
    """In the document, or in the choice that a provider broke off."""
    error = {"message": "upstream is busy", "code": 503}
    for document in ({"error": error}, {"choices": [{"error": error, "message": {}}]}):
        with pytest.raises(RequestError, match="status 503: upstream is busy"):
            _judged(document)


@given(st.integers(200, 299) | st.integers(410, 424), st.text() | st.binary().map(repr))
def test_no_response_breaks_it(status: int, text: str) -> None:
    """Whatever comes is an outcome, and no answer is made of what is none."""
    assert not JUDGED(Reply(status, {}, text)).is_answer
