"""What a model is asked the second time, after an answer that was cut or could not be read."""

from __future__ import annotations

from dataclasses import replace

from echo_hf.answers import Failure
from echo_hf.engines.base import Completion, Message, Request, Text
from echo_hf.reasons import Failed

LONGEST_SHOWN = 4000
NOT_USABLE = frozenset({Failed.UNREADABLE, Failed.OFF_SCHEMA})
SAID = (
    "That answer cannot be used: {error}. Answer the same question again, whole, in the form that "
    "was described, and say nothing else."
)


def second_request(request: Request, completion: Completion | None, failure: Failure) -> Request:
    """The request to make after one that failed.

    Args:
        request: What was asked.
        completion: What came back, null when nothing did.
        failure: Why it is no answer.

    Returns:
        The request with twice the room after a cut answer; after one that could not be read, with
        the answer and what was wrong with it; else the same.
    """
    if failure.reason is Failed.CUT:
        return replace(request, max_tokens=2 * request.max_tokens)
    has_form = request.answer is not None or request.regex is not None
    if failure.reason not in NOT_USABLE or not has_form:
        return request
    said = (completion.text or "").strip()[:LONGEST_SHOWN] if completion else ""
    if not said:  # two turns of the user in a row are refused by some chat templates
        return request
    correction = SAID.format(error=failure.detail.rstrip("."))
    turns = (Message("assistant", (Text(said),)), Message("user", (Text(correction),)))
    return replace(request, messages=(*request.messages, *turns))
