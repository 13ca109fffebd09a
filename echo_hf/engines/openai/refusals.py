"""Which of a server's errors say that the content of a request is not answered.

A refusal is final and counts against a system under test, a failure is asked again and does not:
whatever is in doubt is no refusal.
"""

from __future__ import annotations

import re

from echo_hf.engines.openai.reply import OK, Fault

# Errors may quote the request, and so what people posted: only their beginning speaks of it.
BEGINNING = 300
# Codes as `_plain` writes them.
REFUSALS = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "data_inspection_failed",
        "datainspectionfailed",
        "image_content_policy_violation",
        "moderation_blocked",
        "responsibleaipolicyviolation",
    }
)
# Codes that name no cause: the words are left to tell.
GENERAL = frozenset(
    {
        "api_error",
        "bad_request",
        "bad_request_error",
        "badrequest",
        "badrequesterror",
        "error",
        "failed_precondition",
        "forbidden",
        "image_generation_user_error",
        "invalid_argument",
        "invalid_prompt",
        "invalid_request",
        "invalid_request_error",
        "permission_denied",
        "unprocessable_entity",
        "user_error",
    }
)
OF_CONTENT = re.compile(r"content|inappropriate|moderat|nsfw|polic|safety|sensitive")
STATUSES = frozenset({OK, 400, 403, 422, 451})
# From the first mark to the last one: what is quoted may hold marks of its own, or be cut.
QUOTED = tuple(
    re.compile(rf"(?<!\w){opening}(?:.*{closing}(?!\w)|.*)", re.DOTALL)
    for opening, closing in (('"', '"'), ("'", "'"), ("`", "`"), ("“", "”"), ("‘", "’"))
)
SENTENCE = re.compile(r"(?<=[.!?;])\s+")
RULE = re.compile(
    r"acceptable use|(?:content|safety|usage)[ _-](?:checker|filter|guideline|management|moderation"
    r"|polic|system)|by (?:our |the )?moderation|moderation (?:check|filter|guideline|polic|system)"
    r"|\b(?:input|prompt) was flagged",
    re.IGNORECASE,
)
BROKEN = re.compile(
    r"\b(?:against|block|declin|disallow|filtered|flag|not allow|prohibit|refus|reject|trigger"
    r"|violat)",
    re.IGNORECASE,
)
# A sentence with one of these is about who asks, or about how.
OTHERWISE = re.compile(
    r"\b(?:accounts?|api[ -]?keys?|billing|organi[sz]ations?|projects?|subscriptions?|workspaces?"
    r"|arguments?|expected|fields?|must|options?|parameters?|settings?|unknown"
    r"|(?:un|not )supported)\b",
    re.IGNORECASE,
)


def is_refusal(fault: Fault) -> bool:
    """Whether an error says that the content of the request is not answered.

    Args:
        fault: The error.

    Returns:
        True for a code of moderation; and where no code names another cause, for a sentence that
        speaks of a rule about content and of its being broken, and of neither an account nor an
        option of the request. What the error quotes does not count.

    Example:
        >>> is_refusal(Fault(400, "Your request was rejected by the safety system."))
        True
        >>> is_refusal(Fault(400, "Unknown parameter: 'style'. See our usage policies."))
        False
    """
    codes = {_plain(code) for code in fault.codes}
    if fault.flagged or codes & REFUSALS:
        return True
    if fault.status not in STATUSES or any(_names_another_cause(code) for code in codes):
        return False
    return any(_declines(one) for one in SENTENCE.split(unquoted(fault.message[:BEGINNING])))


def unquoted(text: str) -> str:
    """A text without what it quotes, which a stranger may have written.

    Args:
        text: The text.

    Returns:
        The text up to the first mark and behind the last one of each kind.

    Example:
        >>> unquoted("Can't read 'a fox' in `prompt`.")
        "Can't read   in  ."
    """
    for quoted in QUOTED:
        text = quoted.sub(" ", text)
    return text


def _plain(code: str) -> str:
    return code.strip().lower().replace("-", "_")


def _names_another_cause(code: str) -> bool:
    return not (code.isdecimal() or code in GENERAL or OF_CONTENT.search(code))


def _declines(sentence: str) -> bool:
    if OTHERWISE.search(sentence):
        return False
    return bool(RULE.search(sentence) and BROKEN.search(sentence))
