"""What a server's response means: a document, a retry, a failed row, a refusal, or the end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echo_hf._infra.retry import retry_after
from echo_hf.engines.base import Completion
from echo_hf.engines.server import ServerOptions
from echo_hf.errors import EngineError

OK = 200
LONGEST_RAW = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """No response: a time limit, or a connection that failed or was cut."""

    error: str
    unreached: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What a server says went wrong."""

    status: int
    message: str
    codes: frozenset[str] = frozenset()
    param: str | None = None
    flagged: bool = False
    is_structured: bool = True
    error: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def fault_of(reply: Reply) -> Fault:
    """What a response with an error status says."""
    try:
        document = json.loads(reply.text)
    except (ValueError, RecursionError):
        return Fault(reply.status, _line(reply.text[:LONGEST_RAW]), is_structured=False)
    if isinstance(document, list) and document:  # Gemini puts its error into a list
        document = document[0]
    error = document
    if isinstance(document, dict):
        error = document.get("error") or document.get("detail") or document
    if isinstance(error, list):
        return _fault_in_each(error, reply.status)
    return fault_in(error, reply.status)


def fault_in(error: Any, status: int) -> Fault:
    """What an error object says."""
    if not isinstance(error, Mapping):
        said = error if isinstance(error, str) else json.dumps(error)
        return Fault(status, _line(said[:LONGEST_RAW]))
    inner, metadata = _mapping(error.get("innererror")), _mapping(error.get("metadata"))
    codes = (error.get("code"), error.get("type"), error.get("status"), inner.get("code"))
    code = error.get("code")
    if status < 300 and isinstance(code, int) and 300 <= code < 600:
        status = code
    param = error.get("param")
    return Fault(
        status=status,
        message=_line(str(error.get("message") or json.dumps(error)[:LONGEST_RAW])),
        codes=frozenset(one for one in codes if isinstance(one, str)),
        param=param if isinstance(param, str) else None,
        flagged="flagged_input" in metadata,
        error=error,
    )


def _fault_in_each(errors: list[Any], status: int) -> Fault:
    """What FastAPI, and servers built on it, say of each part that they do not take."""
    kinds = (_mapping(one).get("type") for one in errors)
    said = [_said_of_part(one) for one in map(_mapping, errors) if one.get("msg")]
    return Fault(
        status=status,
        message=_line("; ".join(said) or json.dumps(errors)[:LONGEST_RAW]),
        codes=frozenset(kind for kind in kinds if isinstance(kind, str)),
        error=_mapping(errors[0]) if errors else {},
    )


def _said_of_part(error: Mapping[str, Any]) -> str:
    place = error.get("loc")
    named = ".".join(str(part) for part in place) if isinstance(place, list) else ""
    return f"{named}: {error['msg']}" if named else str(error["msg"])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _line(text: str) -> str:
    return " ".join(text.split()) or "nothing"


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
    """Whether an error says that the content of the request is not answered."""
    codes = {_plain(code) for code in fault.codes}
    if fault.flagged or codes & REFUSALS:
        return True
    if fault.status not in STATUSES or any(_names_another_cause(code) for code in codes):
        return False
    return any(_declines(one) for one in SENTENCE.split(unquoted(fault.message[:BEGINNING])))


def unquoted(text: str) -> str:
    """A text without what it quotes, which a stranger may have written."""
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


LONGEST_WAIT_S = 300
PASSING = frozenset({408, 409, 425, 429})
REDIRECTS = range(300, 400)
NO_CREDIT = "insufficient_quota"
UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
OPTIONAL = ("temperature", "top_p", "seed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an attempt."""

    completion: Completion
    again: bool = False
    wait_s: float | None = None


def failed(error: str) -> Completion:
    """A failure of one request."""
    return Completion(None, error, "error")


def refused(reason: str, given: Completion | None = None) -> Completion:
    """A refusal, with the tokens and price of the call that ended so."""
    given = given or Completion(None)
    return Completion(None, reason, "refusal", given.usage, given.cost_usd)


def verdict_on(fault: Fault, options: ServerOptions, wait_s: float | None = None) -> Verdict:
    """What a server's error means."""
    if is_refusal(fault):
        return Verdict(refused(fault.message))
    _raise_for_config(fault, options)
    said = f"status {fault.status}: {fault.message}"
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        asks = f"the server asks to wait {wait_s:.0f} s, longer than {LONGEST_WAIT_S} s"
        return Verdict(failed(f"{said}; {asks}"))
    again = fault.status in PASSING or fault.status >= 500
    return Verdict(failed(said), again, wait_s)


def _raise_for_config(fault: Fault, options: ServerOptions) -> None:
    advice = _advice(fault, options)
    if advice is not None:
        raise EngineError(
            f"{options.server.host!r} answered with status {fault.status}, "
            f"{fault.message!r}: {advice}"
        )


def _advice(fault: Fault, options: ServerOptions) -> str | None:
    status, variable = fault.status, options.api_key_env
    if status == 401:
        holder = f"environment variable {variable!r}" if variable else "a variable that api_key_env"
        return f"put a valid key into {holder}{'' if variable else ' names'}"
    if status == 402 or NO_CREDIT in fault.codes:
        return "the account has no credit left; the same command goes on from here"
    if status == 403 and fault.is_structured:  # a firewall's own is about what somebody posted
        return f"the key may not use model {options.model!r}; name another key or model"
    if _no_such_model(fault, options):
        return f"model is {options.model!r}, expected one that the server has"
    if status == 404 or status in REDIRECTS:
        return f"base_url is {options.base_url!r}, expected the server's own, mostly ending in /v1"
    if fault.param in OPTIONAL and fault.codes & UNSUPPORTED:
        return f"set `{fault.param}: null`, which sends none"
    return None


def _no_such_model(fault: Fault, options: ServerOptions) -> bool:
    if "model_not_found" in fault.codes or f"{options.model} is not a valid model" in fault.message:
        return True
    return fault.status == 404 and "model" in fault.message[:BEGINNING].lower()


Document = Mapping[str, Any]


def read_document(
    reply: Reply | Silence, options: ServerOptions, otherwise: str
) -> tuple[Document, float | None] | Verdict:
    """Reads a response."""
    if isinstance(reply, Silence):
        return Verdict(failed(reply.error), again=True)
    wait_s = retry_after(reply.headers)
    if reply.status != OK:
        return verdict_on(fault_of(reply), options, wait_s)
    try:
        document = json.loads(reply.text)
    except (ValueError, RecursionError) as error:
        return Verdict(failed(f"the response is no whole JSON document: {error}"))
    if not isinstance(document, Mapping):
        return Verdict(failed(f"{otherwise}: it is no object"))
    if fault := document.get("error"):
        return verdict_on(fault_in(fault, reply.status), options, wait_s)
    return document, wait_s
