"""Which errors are refusals: by code, else by words, and never in doubt."""

from __future__ import annotations

import pytest

from echo_hf.engines.server_errors import Fault, is_refusal, unquoted


def _fault(status: int, message: str, *codes: str) -> Fault:
    return Fault(status, message, frozenset(codes))


def _named(fault: Fault) -> str:
    """The same in every process, whatever the order of a set is there."""
    return f"{fault.status}-{fault.message[:40]}-{'-'.join(sorted(fault.codes))}"


@pytest.mark.parametrize(
    "fault",
    [
        _fault(400, "x", "moderation_blocked", "image_generation_user_error"),
        _fault(400, "x", "content_policy_violation", "string_too_long"),
        _fault(400, "x", "image_content_policy_violation"),
        _fault(400, "x", "400", "ResponsibleAIPolicyViolation"),
        _fault(400, "x", "DataInspectionFailed"),
        Fault(403, "x", flagged=True),
    ],
    ids=_named,
)
def test_codes_of_moderation_are_refusals(fault: Fault) -> None:
    """Whatever else is said."""
    assert is_refusal(fault)


@pytest.mark.parametrize(
    "fault",
    [
        _fault(400, "Generated image rejected by content moderation."),
        _fault(400, "Your request was blocked by our content moderation system", "moderation_x"),
        _fault(400, "Not drawn. The prompt was flagged by safety filters."),
        _fault(400, "Your prompt was flagged as violating our usage policy", "invalid_prompt"),
        _fault(400, "The prompt triggering Lumen's content management policy was filtered", "400"),
        _fault(403, "Content violates usage guidelines. Failed check: X", "permission-denied"),
        _fault(200, "blocked by safety system", "image_generation_user_error"),
        _fault(422, "material flagged by a content checker"),
        _fault(451, "This is against our content policy", "forbidden"),
    ],
    ids=_named,
)
def test_words_tell_where_no_code_does(fault: Fault) -> None:
    """A rule about content, and that it is broken, in one sentence."""
    assert is_refusal(fault)


@pytest.mark.parametrize(
    "fault",
    [
        _fault(
            403, "Your account has been suspended for violating our usage policies.", "forbidden"
        ),
        _fault(403, "Your organization's content policy does not allow: blocked", "policy"),
        _fault(
            400, "Unknown parameter: 'moderation'. See our usage policies.", "unknown_parameter"
        ),
        _fault(400, "The moderation filter parameter was rejected", "invalid_request_error"),
        _fault(400, "'A poster that our content policy blocked' is too long", "string_too_long"),
        _fault(400, "rejected by the safety system", "string_above_max_length"),
        _fault(400, 'Invalid value: "rejected by our "safety" system"'),
        _fault(400, "Bad prompt 'it violates our content policy, and is cut"),
        _fault(400, "Invalid prompt: expected a string", "invalid_prompt"),
        _fault(400, "The request was rejected. Read our usage policies."),
        _fault(400, "Content policy"),
        _fault(500, "rejected by the safety system"),
        _fault(429, "blocked by the content filter"),
        _fault(400, "bad: " + "x" * 400 + " violates our usage policies"),
    ],
    ids=_named,
)
def test_what_is_in_doubt_is_no_refusal(fault: Fault) -> None:
    """Accounts, options, other codes, passing troubles, and what errors quote of a prompt."""
    assert not is_refusal(fault)


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
    """Or with the text; an apostrophe is no mark."""
    assert unquoted(text) == expected
