"""What becomes of a task by a Gemini model's answer, without the client."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.config.systems import Price
from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.google_images import drawn_from
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import IMAGE

OTHER = encoded(noise((8, 8)), "PNG")
PRICE = Price.model_validate(
    {"text_in": 1, "image_in": 2, "text_out": 10, "image_out": 30, "as_of": "2026-11-21"}
)


def _image(data: bytes = IMAGE, **further: Any) -> dict[str, Any]:
    return {"inline_data": {"data": data, "mime_type": "image/png"}, "text": None, **further}


def _answer(*parts: dict[str, Any], reason: str | None = "STOP", **further: Any) -> dict[str, Any]:
    content = {"parts": list(parts), "role": "model"} if parts else None
    return {"candidates": [{"content": content, "finish_reason": reason}], **further}


def test_an_image_among_thoughts_is_no_output() -> None:
    """The one after them is; what was thought is kept as text."""
    parts = (
        {"text": "First I sketch.", "thought": True},
        _image(OTHER, thought=True),
        {"text": "Done."},
        _image(),
    )
    drawn = drawn_from(_answer(*parts), None)
    assert (drawn.outcome, drawn.image) == (Outcome.OK, IMAGE)
    assert drawn.text == "First I sketch.\nDone."
    assert drawn.details["pictures"] == 1
    only_thoughts = drawn_from(_answer(_image(OTHER, thought=True)), None)
    assert (only_thoughts.outcome, only_thoughts.image) == (Outcome.NO_IMAGE, None)


def test_of_several_images_the_first_is_taken() -> None:
    """How many there were is told."""
    drawn = drawn_from(_answer(_image(), _image(OTHER)), None)
    assert (drawn.image, drawn.details["pictures"]) == (IMAGE, 2)


@pytest.mark.parametrize(
    "reason",
    [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
        "ESCALATION",
    ],
)
def test_what_was_drawn_and_held_back_is_refused(reason: str) -> None:
    """At the output, with the reason as its code and what was said as its text."""
    drawn = drawn_from(_answer({"text": "Sorry."}, reason=reason), None)
    assert (drawn.outcome, drawn.stage) == (Outcome.REFUSED, OutcomeStage.OUTPUT)
    assert (drawn.code, drawn.text) == (reason, "Sorry.")


@pytest.mark.parametrize(
    "reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "SOMETHING"]
)
def test_a_blocked_prompt_is_refused(reason: str) -> None:
    """At the input; there are no candidates then."""
    feedback = {"block_reason": reason, "block_reason_message": "Not this."}
    drawn = drawn_from({"candidates": None, "prompt_feedback": feedback}, None)
    assert (drawn.outcome, drawn.stage) == (Outcome.REFUSED, OutcomeStage.INPUT)
    assert (drawn.code, drawn.text) == (reason, "Not this.")


@pytest.mark.parametrize("reason", ["STOP", "NO_IMAGE"])
def test_no_image_without_a_block_is_the_models_answer(reason: str) -> None:
    """With the reason of its end, and its words where there are some."""
    drawn = drawn_from(_answer({"text": "A fox is an animal."}, reason=reason), None)
    assert (drawn.outcome, drawn.stage) == (Outcome.NO_IMAGE, OutcomeStage.ANSWER)
    assert (drawn.code, drawn.text) == (reason, "A fox is an animal.")
    assert drawn_from(_answer(reason=reason), None).outcome is Outcome.NO_IMAGE


@pytest.mark.parametrize(
    "reason",
    [
        "CONTINUATION",
        "FINISH_REASON_UNSPECIFIED",
        "IMAGE_OTHER",
        "LANGUAGE",
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MAX_TOKENS",
        "MISSING_THOUGHT_SIGNATURE",
        "OTHER",
        "SOMETHING_NEW",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    ],
)
def test_an_answer_that_broke_off_is_a_failure(reason: str) -> None:
    """It is asked for again: neither a refusal nor the model's word; what came is told."""
    drawn = drawn_from(_answer({"text": "I beg"}, reason=reason), None)
    assert (drawn.outcome, drawn.stage, drawn.code) == (
        Outcome.FAILED,
        OutcomeStage.ANSWER,
        reason,
    )
    assert drawn.text == f"the answer holds no image and ended with {reason!r}: I beg"
    with_image = drawn_from(_answer(_image(), reason=reason), None)
    assert with_image.outcome is Outcome.OK


def test_a_block_without_a_reason_is_none() -> None:
    """The name stands for a field that nobody filled."""
    feedback = {"block_reason": "BLOCKED_REASON_UNSPECIFIED"}
    drawn = drawn_from({"candidates": None, "prompt_feedback": feedback}, None)
    assert drawn.outcome is Outcome.FAILED


@pytest.mark.parametrize("document", [{}, {"candidates": []}, _answer(reason=None)])
def test_an_answer_without_anything_is_a_failure(document: dict[str, Any]) -> None:
    """It is not scored as the model's."""
    drawn = drawn_from(document, None)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)


def test_a_stopped_account_ends_the_run() -> None:
    """No task could succeed."""
    with pytest.raises(GenerationError, match="the account is stopped"):
        drawn_from(_answer(reason="PUP_LIMITED_DISABLED"), None)


def test_tokens_are_priced_by_their_kind() -> None:
    """By hand: (100 x 1 + 500 x 2 + (10 + 40) x 10 + 1290 x 30) / 1 000 000."""
    usage = {
        "prompt_token_count": 600,
        "prompt_tokens_details": [
            {"modality": "TEXT", "token_count": 100},
            {"modality": "IMAGE", "token_count": 500},
        ],
        "candidates_token_count": 1300,
        "candidates_tokens_details": [{"modality": "IMAGE", "token_count": 1290}],
        "thoughts_token_count": 40,
        "cached_content_token_count": 64,
    }
    drawn = drawn_from(_answer(_image(), usage_metadata=usage), PRICE)
    assert drawn.usage == Usage(600, 1340, 64)
    assert drawn.cost_usd == pytest.approx(0.0403)


def test_a_refusal_costs_what_was_read() -> None:
    """By hand: 100 tokens of text that were sent, nothing that came."""
    usage = {
        "prompt_token_count": 100,
        "prompt_tokens_details": [{"modality": "TEXT", "token_count": 100}],
    }
    document = {"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": usage}
    assert drawn_from(document, PRICE).cost_usd == pytest.approx(0.0001)


@pytest.mark.parametrize(
    "usage",
    [None, {"prompt_token_count": 100, "candidates_token_count": 1300}],
)
def test_tokens_that_are_not_told_apart_have_no_price(usage: Any) -> None:
    """Nothing is guessed."""
    drawn = drawn_from(_answer(_image(), usage_metadata=usage), PRICE)
    assert drawn.outcome is Outcome.OK
    assert drawn.cost_usd is None
