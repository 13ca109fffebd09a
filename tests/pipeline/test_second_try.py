"""What is asked the second time."""

from __future__ import annotations

import pytest

from echo_hf.engines.base import Completion, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.batch_inference import LONGEST_SHOWN, second_request
from echo_hf.reasons import Failed
from tests.stages_for_tests import MOST_TOKENS, request

ASKED = request("red")


def failed(reason: Failed) -> Failure:
    """A failure for this reason."""
    return Failure(reason, "name: too long.", "00")


def test_a_cut_answer_gets_twice_the_room() -> None:
    """Nothing else of the request changes."""
    second = second_request(ASKED, Completion('{"na', None, "length"), failed(Failed.CUT))
    assert second.max_tokens == 2 * MOST_TOKENS
    assert second.messages == ASKED.messages


@pytest.mark.parametrize("reason", [Failed.ENGINE_ERROR, Failed.NOT_ANSWERED])
def test_a_failed_call_is_made_as_it_was(reason: Failed) -> None:
    """A server's trouble is no fault of the question."""
    assert second_request(ASKED, None, failed(reason)) == ASKED


@pytest.mark.parametrize("text", ["", " \n", None])
def test_a_blank_answer_is_not_shown(text: str | None) -> None:
    """Chat templates refuse an empty turn, and two turns of the user in a row."""
    assert second_request(ASKED, Completion(text), failed(Failed.UNREADABLE)) == ASKED


def test_a_long_answer_is_shown_in_part() -> None:
    """The second question is bounded, whatever the model rambled."""
    second = second_request(ASKED, Completion("ha" * 10_000), failed(Failed.OFF_SCHEMA))
    assert second.messages[-2].parts == (Text("ha" * (LONGEST_SHOWN // 2)),)


def test_a_raw_text_has_no_form_to_be_told() -> None:
    """A request that declares no shape is asked again as it was."""
    raw = type(ASKED)(ASKED.task, ASKED.messages, None, ASKED.max_tokens)
    assert second_request(raw, Completion("\ud800"), failed(Failed.UNREADABLE)) == raw
