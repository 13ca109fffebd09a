"""What every system that is asked over the network has in common: errors, and its key."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr

from echo_hf._infra.http_errors import ApiError
from echo_hf.engines.server import ApiKey, Server
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome
from echo_hf.systems.base import GenerationResult, Retired
from echo_hf.systems.hosted import Host, fate, one_line, retired_by, without_key
from tests.systems.drawing_for_tests import KEY

HELD = ApiKey(SecretStr(KEY))
HOST = Host("tiny", Server("https://draw.example/v1"), "lumen", "MY_KEY")


@pytest.mark.parametrize(
    "error",
    [
        ApiError(404, "The model 'lumne' does not exist or you do not have access to it."),
        ApiError(404, "x", codes=frozenset({"model_not_found"})),
        ApiError(404, "models/lumne is not found for API version v1beta"),
    ],
    ids=str,
)
def test_a_model_that_may_be_mistyped_is_not_retired(error: ApiError) -> None:
    """Its name is told, before and during a run; that of a model once shut down is enough."""
    typo = replace(HOST, model="lumne")
    for answered in (retired_by, fate):
        with pytest.raises(GenerationError, match="model is 'lumne', expected one that"):
            answered(error, typo)
    closed = replace(HOST, model="gpt-image-1")
    assert retired_by(error, closed) == Retired(error.message, error.code)
    assert fate(error, closed).outcome is Outcome.RETIRED


def test_a_firewalls_own_refusal_is_the_tasks() -> None:
    """Its page is about what one task holds, not about the key."""
    page = ApiError(403, "<html>blocked", is_structured=False)
    drawn = fate(page, HOST)
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "403")
    assert retired_by(page, HOST) is None


@pytest.mark.parametrize("name", ["code", "text", "revised_prompt", "model_reported"])
def test_no_text_of_an_outcome_holds_the_key(name: str) -> None:
    """Nor does it end the row that it stands in: half characters are replaced."""
    drawn = GenerationResult(Outcome.FAILED, **{name: f"a {KEY} \ud83e"})
    assert getattr(without_key(drawn, HELD), name) == "a (key) ?"


def test_no_detail_holds_the_key() -> None:
    """However deep it is."""
    drawn = GenerationResult(
        Outcome.FAILED, details={"a": [{KEY: f"x{KEY}"}], "n": 1.5, "none": None}
    )
    assert without_key(drawn, HELD).details == {"a": [{"(key)": "x(key)"}], "n": 1.5, "none": None}


def test_a_message_is_one_line_without_the_key() -> None:
    """Whatever a server puts into it."""
    assert one_line(f"a\n\t{KEY}  b ", HELD) == "a (key) b"
