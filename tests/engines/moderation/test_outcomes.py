"""What responses of a moderation endpoint mean."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.http_errors import Reply
from echo_hf._infra.retry import RequestError
from echo_hf.engines.base import Completion, Usage
from echo_hf.engines.moderation import ModerationEngine
from tests.engines.moderation.moderations import CLEAN, MODEL

NO = "the response is not a moderation: "


def _judged(document: Any, **options: Any) -> Completion:
    return ModerationEngine(**options).judged(Reply(200, {}, json.dumps(document)))


def _response(*results: Any, **further: Any) -> dict[str, Any]:
    return {"id": "modr-1", "model": MODEL, "results": list(results), **further}


def test_a_verdict_is_one_object_of_four_keys() -> None:
    """In the order of the alphabet, whatever the server's order and whatever else it says."""
    result = {
        "flagged": True,
        "category_scores": {"violence": 1, "hate": 0.5, "illicit": None},
        "categories": {"violence": True, "hate": False, "illicit": None},
        "category_applied_input_types": {"violence": ["image"]},
    }
    assert _judged(_response(result)) == Completion(
        '{"categories": {"hate": false, "illicit": null, "violence": true}, '
        '"category_scores": {"hate": 0.5, "illicit": null, "violence": 1.0}, '
        '"flagged": true, "model": "omni-moderation-2024-09-26"}',
        cost_usd=0.0,
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "it is not an object"),
        ({}, "model: field required"),
        ({"model": MODEL}, "results: field required"),
        (_response(), "results: list should have at least 1 item after validation, not 0"),
        (_response(CLEAN, CLEAN), "results: list should have at most 1 item after validation, not"),
        (_response({**CLEAN, "flagged": "false"}), "results.0.flagged: input should be a valid b"),
        (_response({**CLEAN, "flagged": None}), "results.0.flagged: input should be a valid bool"),
        (
            _response({**CLEAN, "categories": {"hate": "no"}}),
            "results.0.categories.hate: input should be a valid boolean",
        ),
        (
            _response({**CLEAN, "category_scores": {"hate": float("nan")}}),
            "results.0.category_scores.hate: input should be a finite number",
        ),
        (
            _response({**CLEAN, "category_scores": [0.5]}),
            "results.0.category_scores: input should be a valid dictionary",
        ),
        (
            {"choices": [{"message": {"content": "safe"}, "finish_reason": "stop"}]},
            "model: field required",
        ),
    ],
    ids=str,
)
def test_other_documents_are_failures(document: Any, said: str) -> None:
    """With a name; two results for one request would leave one of them unread."""
    completion = _judged(document)
    assert (completion.text, completion.finish_reason) == (None, "error")
    assert (completion.error or "").startswith(NO + said)


def test_what_was_posted_is_not_repeated() -> None:
    """A server that answers with the request in it does not get it into an error."""
    completion = _judged(_response({**CLEAN, "flagged": "what somebody posted"}))
    assert "posted" not in (completion.error or "posted")


def test_errors_inside_a_response_are_worth_another_attempt() -> None:
    """As with any server."""
    with pytest.raises(RequestError, match="status 503: upstream is busy"):
        _judged({"error": {"message": "upstream is busy", "code": 503}})


@pytest.mark.parametrize(
    ("options", "document", "cost"),
    [
        ({}, {}, 0.0),
        ({"model": MODEL}, {}, 0.0),
        ({"model": "other"}, {}, None),
        ({"base_url": "https://moderation.example.org/v1"}, {}, None),
        ({"base_url": "https://moderation.example.org/v1"}, {"usage": {"cost": 0.25}}, 0.25),
    ],
    ids=str,
)
def test_what_a_call_costs(
    options: dict[str, Any], document: dict[str, Any], cost: float | None
) -> None:
    """Nothing at OpenAI's own; elsewhere what the response says, and else nobody knows."""
    assert _judged(_response(CLEAN, **document), **options).cost_usd == cost


def test_tokens_are_billed_where_a_server_counts_them() -> None:
    """By hand: 2000 tokens at 0.1 dollars a million."""
    prices = {"usd_per_million_prompt_tokens": 0.1, "usd_per_million_completion_tokens": 0.0}
    usage = {"prompt_tokens": 2000, "completion_tokens": 0, "total_tokens": 2000}
    completion = _judged(_response(CLEAN, usage=usage), **prices)
    assert completion.usage == Usage(2000)
    assert completion.cost_usd == pytest.approx(0.0002)


@given(st.integers(200, 299) | st.integers(410, 424), st.text() | st.binary().map(repr))
def test_no_response_breaks_it(status: int, text: str) -> None:
    """Whatever comes is an outcome, and no answer is made of what is none."""
    assert not ModerationEngine().judged(Reply(status, {}, text)).is_answer
