"""What errors of servers mean, and how servers of many makes write them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra import http_errors
from echo_hf._infra.http_errors import ApiError, ErrorKind, HttpResponse, NoResponseError
from echo_hf._infra.retry import RequestError

PAGE = ApiError(403, "<html>blocked", is_structured=False)


def error(status: int, message: str, *codes: str) -> ApiError:
    return ApiError(status, message, frozenset(codes))


def named(value: object) -> str | None:
    if not isinstance(value, ApiError):
        return None
    return f"{value.status}-{value.message[:40]}-{'-'.join(sorted(value.codes))}"


REFUSED = [
    # By code, whatever else is said.
    error(400, "x", "moderation_blocked", "image_generation_user_error"),
    error(400, "x", "400", "ResponsibleAIPolicyViolation"),
    ApiError(403, "x", flagged=True),
    # By a rule about content, and that it is broken, in one sentence.
    error(400, "This prompt violates our usage policy", "invalid_prompt"),
    error(403, "moderation is required and your input was flagged for violence"),
    error(400, "Not drawn. The prompt was flagged by safety filters."),
    error(400, "The prompt triggering Lumen's content management policy was filtered", "400"),
    error(200, "blocked by safety system", "image_generation_user_error"),
    error(451, "This is against our content policy", "forbidden"),
]
IN_DOUBT = [
    error(403, "Your account has been suspended for violating our usage policies."),
    error(403, "Your organization's content policy does not allow: blocked", "policy"),
    error(400, "Unknown parameter: 'moderation'. See our usage policies.", "unknown_parameter"),
    error(400, "'A poster that our content policy blocked' is too long", "string_too_long"),
    error(400, "rejected by the safety system", "string_above_max_length"),
    error(400, "Bad prompt 'it violates our content policy, and is cut"),
    error(400, "The request was rejected. Read our usage policies."),
    error(400, "Content policy"),
    error(500, "rejected by the safety system"),
    error(400, "bad: " + "x" * 400 + " violates our usage policies"),
]


@pytest.mark.parametrize("said", [*REFUSED, *IN_DOUBT], ids=named)
def test_refusals_are_told_by_code_else_by_words_and_not_in_doubt(said: ApiError) -> None:
    assert (said.find_kind("tiny") is ErrorKind.REFUSED) == (said in REFUSED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the users' own, can't 'a fox don't' be", "the users' own, can't   be"),
        ('a "b" c "d" e', "a   e"),
        ("from “here", "from  "),
        ("nothing", "nothing"),
    ],
)
def test_quotes_end_at_their_last_mark(text: str, expected: str) -> None:
    assert http_errors.remove_quotations(text) == expected


@pytest.mark.parametrize(
    ("given_error", "expected"),
    [
        *(
            (error(status, "x"), ErrorKind.MAY_PASS)
            for status in (408, 409, 425, 429, 500, 503, 529)
        ),
        *((error(status, "x"), ErrorKind.FAILED) for status in (400, 405, 413, 415, 422, 431)),
        (error(429, "slow down", "account_rate_limit"), ErrorKind.MAY_PASS),
        (PAGE, ErrorKind.FAILED),
        (error(401, "x"), ErrorKind.BAD_KEY),
        (error(400, "API key not valid. Pass one."), ErrorKind.BAD_KEY),
        (error(400, "Bad prompt 'the api key expired'"), ErrorKind.FAILED),
        (error(402, "x"), ErrorKind.NO_CREDIT),
        (error(429, "x", "insufficient_quota"), ErrorKind.NO_CREDIT),
        (error(400, "x", "account_deactivated"), ErrorKind.ACCOUNT_STOPPED),
        (error(403, "Your account was suspended.", "forbidden"), ErrorKind.ACCOUNT_STOPPED),
        (error(403, "our content policy 'blocked' is closed"), ErrorKind.FORBIDDEN),
        (error(404, "The model `tiny` does not exist"), ErrorKind.NO_MODEL),
        (error(404, "models/lumne is not found for API version v1beta"), ErrorKind.NO_MODEL),
        (error(400, "tiny is not a valid model ID"), ErrorKind.NO_MODEL),
        (error(404, "Not Found"), ErrorKind.NO_SUCH_ADDRESS),
        (ApiError(404, "not a model here", is_structured=False), ErrorKind.NO_SUCH_ADDRESS),
        (error(404, "Cannot GET /v1/models/lumen: no longer available"), ErrorKind.NO_SUCH_ADDRESS),
        (error(301, "nothing"), ErrorKind.NO_SUCH_ADDRESS),
        (error(404, "The model `lumen-1` has been deprecated, see the docs"), ErrorKind.RETIRED),
        (error(410, "Model lumen was shut down on 2026-10-23."), ErrorKind.RETIRED),
        (error(400, "sorry", "model_deprecated"), ErrorKind.RETIRED),
        (error(400, "The model lumen: `style` is no longer supported"), ErrorKind.FAILED),
        (error(503, "The model is no longer available, try again"), ErrorKind.MAY_PASS),
    ],
    ids=named,
)
def test_every_error_has_one_meaning(given_error: ApiError, expected: ErrorKind) -> None:
    assert given_error.find_kind("tiny") is expected
    is_mended = expected not in (ErrorKind.MAY_PASS, ErrorKind.FAILED)
    assert (given_error.find_advice("tiny", "https://a.example", None) is not None) is is_mended


def test_a_wrong_key_is_told_by_its_variable() -> None:
    said = "environment variable 'MY_KEY'", "a variable that api_key_env names"
    for key, variable in zip(("MY_KEY", None), said, strict=True):
        advice = error(401, "x").find_advice("tiny", "https://a.example", key)
        assert advice == f"put a valid key into {variable}"


DELAYS = [{"retryDelay": "17.5s"}, {"retryDelay": "3s"}]  # the first one counts
FORMS: list[tuple[Any, ApiError]] = [
    (
        {"error": {"message": "no", "type": "t", "param": "p", "code": "c"}},
        ApiError(400, "no", frozenset({"t", "c"}), "p"),
    ),
    ({"error": "no"}, error(400, "no")),
    ({"object": "error", "message": "no", "type": "t"}, error(400, "no", "t")),
    ({"detail": "no"}, error(400, "no")),
    (
        {
            "detail": [
                {"loc": ["body", "prompt"], "msg": "no", "type": "content_policy_violation"},
                {"loc": ["body", "n"], "msg": "too few", "type": "missing", "input": "ours"},
            ]
        },
        error(400, "body.prompt: no; body.n: too few", "content_policy_violation", "missing"),
    ),
    ({"detail": ["no"]}, error(400, '["no"]')),
    (
        [{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}],
        error(400, "no", "INVALID_ARGUMENT"),
    ),
    (
        {"error": {"message": "no", "code": "c", "innererror": {"code": "ResponsibleAI"}}},
        error(400, "no", "c", "ResponsibleAI"),
    ),
    (
        {"error": {"message": "no", "code": 403, "metadata": {"flagged_input": "x"}}},
        ApiError(400, "no", flagged=True),
    ),
    (
        {"error": {"message": "busy", "details": [{"@type": "Help"}, *DELAYS]}},
        ApiError(400, "busy", wait_s=17.5),
    ),
    ({"error": {"message": None, "code": 1}}, error(400, '{"message": null, "code": 1}')),
    (7, error(400, "7")),
]


@pytest.mark.parametrize(("document", "expected"), FORMS)
def test_every_form_is_read(document: Any, expected: ApiError) -> None:
    assert http_errors.read_api_error(HttpResponse(400, {}, json.dumps(document))) == expected


def test_what_is_no_json_is_shown_in_one_line() -> None:
    page = "<html>\n <b>Bad  gateway</b>" + "x" * 1000
    shown = "<html> <b>Bad gateway</b>" + "x" * 173
    assert http_errors.read_api_error(HttpResponse(502, {}, page)) == ApiError(
        502, shown, is_structured=False
    )
    assert http_errors.read_api_error(HttpResponse(502, {}, "")).message == "nothing"


def test_a_header_tells_the_wait_before_the_details_do() -> None:
    told = {"details": [{"retryDelay": "17s"}]}
    for body in ("busy", '{"error": "busy"}', json.dumps({"error": told})):
        assert (
            http_errors.read_api_error(HttpResponse(429, {"Retry-After": "3"}, body)).wait_s == 3.0
        )


def test_a_status_inside_a_response_that_claims_success_counts() -> None:
    for status, code, expected in ((200, 429, 429), (200, 7, 200), (500, 429, 500)):
        assert (
            http_errors.parse_error(
                HttpResponse(status, {}, ""), {"message": "no", "code": code}
            ).status
            == expected
        )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": {"code": "moderation_blocked", "type": "user_error"}}', "moderation_blocked"),
        ('{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}', "RESOURCE_EXHAUSTED"),
        ('{"error": {"code": null, "type": "server_error"}}', "server_error"),
        ('{"error": {"innererror": {"code": "Policy"}, "message": "no"}}', "Policy"),
        ("<html>", "418"),
    ],
)
def test_an_error_has_one_code(body: str, expected: str) -> None:
    assert http_errors.read_api_error(HttpResponse(418, {}, body)).code == expected


@given(st.text(), st.integers(300, 599))
def test_no_body_breaks_it(text: str, status: int) -> None:
    """The message is one line and never empty."""
    read = http_errors.read_api_error(HttpResponse(status, {}, text))
    assert read.message
    assert read.message == " ".join(read.message.split())


# As HTTP libraries name what their clients raise.
ConnectTimeout = type("ConnectTimeout", (OSError,), {})


@pytest.mark.parametrize(
    ("lost", "code", "unreached", "text"),
    [
        (TimeoutError(), "timeout", False, "no answer within 2.5 s"),
        (ConnectTimeout("late"), "timeout", True, "the connection to 'u' failed: late"),
        (OSError(), "connection", False, "the connection to 'u' failed: OSError"),
    ],
)
def test_silence_is_late_or_lost(lost: Exception, code: str, unreached: bool, text: str) -> None:
    wrapped = RuntimeError("Connection error.")
    wrapped.__cause__ = lost
    with pytest.raises(NoResponseError) as caught:
        http_errors.get_response(wrapped, "u", 2.5)
    assert (caught.value.code, caught.value.unreached, str(caught.value)) == (code, unreached, text)


def test_an_error_of_our_own_comes_through_a_client() -> None:
    wrapped = RuntimeError("Connection error.")
    wrapped.__cause__ = RequestError("too long", again=False)
    with pytest.raises(RequestError, match="too long"):
        http_errors.get_response(wrapped, "u", 2.5)
