"""What errors of servers mean."""

from __future__ import annotations

import pytest

from echo_hf.engines.openai_messages import read_options
from echo_hf.engines.server_errors import Fault, is_refusal, verdict_on
from echo_hf.errors import EngineError

OPTIONS = read_options({"model": "tiny", "base_url": "https://models.example.org/v1"})


@pytest.mark.parametrize(
    "fault",
    [
        Fault(400, "x", frozenset({"content_policy_violation"})),
        Fault(400, "x", frozenset({"content_filter"})),
        Fault(400, "This prompt violates our usage policy", frozenset({"invalid_prompt"})),
        Fault(400, "x", frozenset({"400", "ResponsibleAIPolicyViolation"})),
        Fault(403, "x", flagged=True),
        Fault(403, "moderation is required and your input was flagged for violence"),
        Fault(400, "The prompt triggered the content management policy"),
        Fault(400, "Your request was rejected by the safety system"),
        Fault(400, "This violates our usage policies"),
    ],
)
def test_moderation_is_a_refusal(fault: Fault) -> None:
    """By code, by mark, or by the words that servers use; it is final."""
    assert is_refusal(fault)
    verdict = verdict_on(fault, OPTIONS)
    assert (verdict.completion.finish_reason, verdict.again) == ("refusal", False)
    assert verdict.completion.error == fault.message


@pytest.mark.parametrize(
    "fault",
    [
        Fault(400, "context length exceeded"),
        Fault(400, "Invalid prompt: expected a string", frozenset({"invalid_prompt"})),
        Fault(500, "the safety system is down"),
        Fault(400, "bad: " + "x" * 400 + " usage policies"),
    ],
    ids=lambda fault: fault.message[:20],
)
def test_other_errors_are_no_refusals(fault: Fault) -> None:
    """Nor are errors that quote, further on, what people posted."""
    assert not is_refusal(fault)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_passing_errors_are_worth_another_attempt(status: int) -> None:
    """With the wait that the server asked for."""
    verdict = verdict_on(Fault(status, "x"), OPTIONS, 3.0)
    assert (verdict.again, verdict.wait_s) == (True, 3.0)


def test_a_firewall_does_not_stop_the_run() -> None:
    """It stumbles over the words of one post, and answers with a page."""
    verdict = verdict_on(Fault(403, "<html>blocked", is_structured=False), OPTIONS)
    assert verdict.completion.error == "status 403: <html>blocked"
    assert not verdict.again


@pytest.mark.parametrize("status", [400, 405, 413, 415, 422, 431])
def test_bad_requests_are_not(status: int) -> None:
    """They are the failure of this request alone."""
    verdict = verdict_on(Fault(status, "x"), OPTIONS)
    assert (verdict.again, verdict.completion.finish_reason) == (False, "error")
    assert verdict.completion.error == f"status {status}: x"


@pytest.mark.parametrize(("wait_s", "again"), [(300.0, True), (301.0, False)])
def test_nobody_waits_for_longer_than_five_minutes(wait_s: float, again: bool) -> None:
    """Then it is the request's failure, and the run may be started again later."""
    assert verdict_on(Fault(429, "x"), OPTIONS, wait_s).again is again


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (Fault(401, "x"), "put a valid key into environment variable 'OPENAI_API_KEY'"),
        (Fault(402, "x"), "no credit left"),
        (Fault(429, "x", frozenset({"insufficient_quota"})), "no credit left"),
        (Fault(403, "x"), "the key may not use model 'tiny'"),
        (Fault(404, "The model `tiny` does not exist"), "model is 'tiny', expected one that"),
        (Fault(404, "x", frozenset({"model_not_found"})), "model is 'tiny', expected one that"),
        (Fault(400, "tiny is not a valid model ID"), "model is 'tiny', expected one that"),
        (Fault(404, "Not Found"), "base_url is 'https://models.example.org/v1'"),
        (Fault(301, "nothing"), "base_url is 'https://models.example.org/v1'"),
        (
            Fault(400, "x", frozenset({"unsupported_value"}), "temperature"),
            "set `temperature: null`",
        ),
        (Fault(400, "x", frozenset({"unsupported_parameter"}), "seed"), "set `seed: null`"),
    ],
)
def test_what_the_user_must_mend_is_told(fault: Fault, advice: str) -> None:
    """One line: the server, what it said, what to do."""
    with pytest.raises(EngineError) as caught:
        verdict_on(fault, OPTIONS)
    said = f"'models.example.org' answered with status {fault.status}, {fault.message!r}: "
    assert str(caught.value).startswith(said)
    assert advice in str(caught.value)


def test_a_server_that_wants_a_key_after_all_is_told() -> None:
    """The config said that it needs none."""
    options = read_options({"model": "tiny", "api_key_env": None})
    with pytest.raises(EngineError, match="put a valid key into a variable that api_key_env names"):
        verdict_on(Fault(401, "x"), options)
