"""How servers of many makes say what went wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.server_errors import Fault, Reply, fault_in, fault_of

FORMS: list[tuple[Any, Fault]] = [
    (
        {"error": {"message": "no", "type": "t", "param": "p", "code": "c"}},
        Fault(400, "no", frozenset({"t", "c"}), "p"),
    ),
    ({"error": "no"}, Fault(400, "no")),
    ({"object": "error", "message": "no", "type": "t"}, Fault(400, "no", frozenset({"t"}))),
    ({"detail": "no"}, Fault(400, "no")),
    ({"detail": [{"msg": "no"}]}, Fault(400, "no")),
    (
        {
            "detail": [
                {"loc": ["body", "prompt"], "msg": "no", "type": "content_policy_violation"},
                {"loc": ["body", "n"], "msg": "too few", "type": "missing", "input": "ours"},
            ]
        },
        Fault(
            400,
            "body.prompt: no; body.n: too few",
            frozenset({"content_policy_violation", "missing"}),
        ),
    ),
    ({"detail": ["no"]}, Fault(400, '["no"]')),
    (
        [{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}],
        Fault(400, "no", frozenset({"INVALID_ARGUMENT"})),
    ),
    (
        {"error": {"message": "no", "code": "c", "innererror": {"code": "ResponsibleAI"}}},
        Fault(400, "no", frozenset({"c", "ResponsibleAI"})),
    ),
    (
        {"error": {"message": "no", "code": 403, "metadata": {"flagged_input": "x"}}},
        Fault(400, "no", flagged=True),
    ),
    ({"error": {"message": None, "code": 1}}, Fault(400, '{"message": null, "code": 1}')),
    ({}, Fault(400, "{}")),
    (7, Fault(400, "7")),
]


@pytest.mark.parametrize(("document", "expected"), FORMS)
def test_every_form_is_read(document: Any, expected: Fault) -> None:
    """OpenAI's, vLLM's, FastAPI's, Gemini's, Azure's, OpenRouter's, and none at all."""
    assert fault_of(Reply(400, {}, json.dumps(document))) == expected


def test_what_is_no_json_is_shown_in_one_line() -> None:
    """Its beginning."""
    page = "<html>\n <b>Bad  gateway</b>" + "x" * 1000
    shown = "<html> <b>Bad gateway</b>" + "x" * 173
    assert fault_of(Reply(502, {}, page)) == Fault(502, shown, is_structured=False)
    assert fault_of(Reply(502, {}, "")).message == "nothing"


def test_a_status_inside_a_response_that_claims_success_counts() -> None:
    """A status inside one that does not is no news."""
    assert fault_in({"message": "no", "code": 429}, 200).status == 429
    assert fault_in({"message": "no", "code": 7}, 200).status == 200
    assert fault_in({"message": "no", "code": 429}, 500).status == 500


@given(st.text(), st.integers(300, 599))
def test_no_body_breaks_it(text: str, status: int) -> None:
    """The message is one line and never empty."""
    fault = fault_of(Reply(status, {}, text))
    assert fault.message
    assert fault.message == " ".join(fault.message.split())
