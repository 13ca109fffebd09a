"""What servers' errors say: of a model that is gone, a code, a stage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from echo_hf.engines.server import Server
from echo_hf.engines.server_errors import Fault, Reply, fault_of
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome
from echo_hf.systems.base import Passing, Retired
from echo_hf.systems.hosted import Host, code_of, fate, is_gone, retired_by

HOST = Host("tiny", Server("https://draw.example/v1"), "lumen", "MY_KEY")


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (404, "The model `lumen-1` has been deprecated, see the docs", True),
        (404, "This model models/lumen-2.5 is no longer available to new users.", True),
        (410, "Model lumen was shut down on 2026-10-23.", True),
        (404, "The model lumen was retired", True),
        (404, "models/lumen is not found for API version v1beta", False),
        (404, "Cannot GET /v1/models/lumen: this page is no longer available", False),
        (404, "The supermodel page is no longer available", False),
        (400, "The model lumen: `style` is no longer supported", False),
        (503, "The model is no longer available, try again", False),
    ],
)
def test_a_model_that_was_there_once_is_told_by_its_maker(
    status: int, message: str, expected: bool
) -> None:
    """About the model, with a status that says that nothing is there."""
    assert is_gone(Fault(status, message), "lumen") is expected


@pytest.mark.parametrize("code", ["model_deprecated", "model_retired"])
def test_codes_say_it_with_any_status(code: str) -> None:
    """Whatever the words are."""
    assert is_gone(Fault(400, "sorry", codes=frozenset({code})), "lumen")


@pytest.mark.parametrize(
    "fault",
    [
        Fault(404, "The model 'lumne' does not exist or you do not have access to it."),
        Fault(404, "x", codes=frozenset({"model_not_found"})),
        Fault(404, "models/lumne is not found for API version v1beta"),
    ],
    ids=str,
)
def test_a_model_that_may_be_mistyped_is_not_retired(fault: Fault) -> None:
    """Its name is told, before and during a run; that of a model once shut down is enough."""
    typo = replace(HOST, model="lumne")
    for answered in (retired_by, fate):
        with pytest.raises(GenerationError, match="model is 'lumne', expected one that"):
            answered(fault, typo)
    closed = replace(HOST, model="gpt-image-1")
    assert retired_by(fault, closed) == Retired(fault.message, code_of(fault))
    assert fate(fault, closed).outcome is Outcome.RETIRED


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"error": {"code": "moderation_blocked", "type": "user_error"}}', "moderation_blocked"),
        ('{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}', "RESOURCE_EXHAUSTED"),
        ('{"error": {"code": null, "type": "server_error"}}', "server_error"),
        ('{"error": {"innererror": {"code": "Policy"}, "message": "no"}}', "Policy"),
        ('{"error": "a text"}', "418"),
        ("<html>", "418"),
    ],
)
def test_an_error_has_one_code(body: str, expected: str) -> None:
    """The server's own, in whichever place it writes one, else the status."""
    assert code_of(fault_of(Reply(418, {}, body))) == expected


def test_an_error_without_a_key_of_its_own_names_the_variable_to_set() -> None:
    """And where none is named, the option that names one."""
    unnamed = Host("tiny", HOST.server, "lumen", None)
    with pytest.raises(GenerationError, match="into environment variable 'MY_KEY'"):
        fate(Fault(401, "who are you"), HOST)
    with pytest.raises(GenerationError, match="into a variable that api_key_env names"):
        fate(Fault(401, "who are you"), unnamed)


def test_a_firewalls_own_refusal_is_the_tasks() -> None:
    """Its page is about what one task holds, not about the key."""
    drawn = fate(Fault(403, "<html>blocked", is_structured=False), HOST)
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "403")
    assert retired_by(Fault(403, "<html>blocked", is_structured=False), HOST) is None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(400, "x", frozenset({"account_deactivated"})), "the account is stopped"),
        (Fault(403, "Your account was suspended.", frozenset({"forbidden"})), "account is stopped"),
        (Fault(403, "our content policy 'blocked' is closed"), "may not use model 'lumen'"),
    ],
    ids=str,
)
def test_a_stopped_account_ends_the_run(fault: Fault, message: str) -> None:
    """Whatever policy it broke, no task could succeed."""
    with pytest.raises(GenerationError, match=message):
        fate(fault, HOST)


def test_an_account_that_is_too_fast_is_asked_again() -> None:
    """Its limit passes."""
    with pytest.raises(Passing):
        fate(Fault(429, "slow down", frozenset({"account_rate_limit"})), HOST)
