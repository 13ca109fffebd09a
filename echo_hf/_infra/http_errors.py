"""What a server's error, or its silence, means: try again, give up, a refusal, or the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from echo_hf._infra.retry import RequestError, retry_after

OK = 200
PASSING = frozenset({408, 409, 425, 429})
REDIRECTS = range(300, 400)
LONGEST_RAW = 200
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
BEGINNING = 300


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str


class NoResponse(RequestError):  # noqa: N818 - it may not be one: another attempt may do
    """No response: a time limit, or a connection that was cut or, `unreached`, never made."""

    def __init__(self, text: str, code: str = "connection", *, unreached: bool = False) -> None:
        super().__init__(text, code)
        self.unreached = unreached


class Meaning(Enum):
    REFUSED = auto()  # the content of this request is not answered
    RETIRED = auto()  # the model was there once
    BAD_KEY = auto()
    NO_CREDIT = auto()
    ACCOUNT_STOPPED = auto()
    FORBIDDEN = auto()
    NO_MODEL = auto()
    NO_SUCH_ADDRESS = auto()
    MAY_PASS = auto()
    FAILED = auto()  # this request alone


@dataclass(frozen=True, slots=True)
class ApiError:
    status: int
    message: str
    codes: frozenset[str] = frozenset()
    param: str | None = None
    flagged: bool = False
    is_structured: bool = True
    wait_s: float | None = None
    error: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def beginning(self) -> str:
        """As much of the message as speaks of the error itself."""
        return self.message[:BEGINNING]

    @property
    def code(self) -> str:
        """The one code that it goes by: the server's own, else its status."""
        named = [self.error.get(name) for name in ("code", "status", "type")]
        named.append(mapping(self.error.get("innererror")).get("code"))
        return next((one for one in named if isinstance(one, str) and one), str(self.status))

    @property
    def said(self) -> str:
        return f"status {self.status}: {self.message}"

    def meaning(self, model: str) -> Meaning:
        if is_refusal(self):
            return Meaning.REFUSED
        if self.codes & RETIRED_CODES or (
            # Other errors may speak of an option that a model no longer has.
            self.status in (404, 410) and RETIRED.search(self.beginning)
        ):
            return Meaning.RETIRED
        if self.status == 401 or (
            self.status in (400, 403) and BAD_KEY.search(unquoted(self.beginning))
        ):
            return Meaning.BAD_KEY
        if self.status == 402 or NO_CREDIT in self.codes:
            return Meaning.NO_CREDIT
        by_code = any(ACCOUNT_CODE.match(code) for code in self.codes)
        in_words = self.status == 403 and ACCOUNT_STOPPED.search(unquoted(self.beginning))
        if not may_pass(self.status) and (by_code or in_words):
            return Meaning.ACCOUNT_STOPPED
        if self.status == 403 and self.is_structured:  # a firewall's own is about one request
            return Meaning.FORBIDDEN
        if self.lacks_model(model):
            return Meaning.NO_MODEL
        if self.status == 404 or self.status in REDIRECTS:
            return Meaning.NO_SUCH_ADDRESS
        return Meaning.MAY_PASS if may_pass(self.status) else Meaning.FAILED

    def lacks_model(self, model: str) -> bool:
        """Whether the server does not have a model, or the key may not know of it."""
        if NO_MODEL in self.codes or f"{model} is not a valid model" in self.message:
            return True
        return self.status == 404 and self.is_structured and bool(MODEL.search(self.beginning))

    def advice(self, model: str, base_url: str, api_key_env: str | None) -> str | None:
        """What a user mends whom no request would serve; null where others may do."""
        known = f"environment variable {api_key_env!r}"
        key = known if api_key_env else "a variable that api_key_env names"
        advice = ADVICE.get(self.meaning(model))
        return advice and advice.format(key=key, model=model, base_url=base_url)

    def answered_by(self, host: str) -> str:
        return f"{host!r} answered with status {self.status}, {self.message!r}"


NO_SUCH_MODEL = "model is {model!r}, expected one that the server has and the key may use"
ADVICE = {
    Meaning.RETIRED: NO_SUCH_MODEL,
    Meaning.BAD_KEY: "put a valid key into {key}",
    Meaning.NO_CREDIT: "the account has no credit left; the same command resumes from here",
    Meaning.ACCOUNT_STOPPED: "the account is stopped: fix that, or use another account's key",
    Meaning.FORBIDDEN: "the key may not use model {model!r}; name another key or model",
    Meaning.NO_MODEL: NO_SUCH_MODEL,
    Meaning.NO_SUCH_ADDRESS: (
        "base_url is {base_url!r}, expected the server's own, for OpenAI's API mostly ending in /v1"
    ),
}
NO_CREDIT, NO_MODEL = "insufficient_quota", "model_not_found"
RETIRED_CODES = frozenset({"model_deprecated", "model_retired"})
# Google says so with status 400, and a reason inside the error.
BAD_KEY = re.compile(r"api[ _]key (?:not valid|expired|not found|invalid)", re.IGNORECASE)
# A model, and not the address `/v1/models/NAME` that a server without it repeats.
MODEL = re.compile(r"(?<![\w/.-])models?\b", re.IGNORECASE)
RETIRED = re.compile(
    r"(?<![\w/.-])models?\b.{0,120}?(?:no longer (?:available|supported|served)"
    r"|(?:been|was) (?:shut ?down|retired|deprecated|discontinued|decommissioned|removed))",
    re.IGNORECASE,
)
ACCOUNT_CODE = re.compile(r"(?:account|billing|organization)_")
ACCOUNT_STOPPED = re.compile(
    r"\b(?:account|organi[sz]ation)\b.{0,40}\b(?:suspended|deactivated|disabled|terminated|banned)",
    re.IGNORECASE,
)


GOOGLES_WAIT = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s?"')


def may_pass(status: int) -> bool:
    return status in PASSING or status >= 500


def api_error(reply: Reply) -> ApiError:
    try:
        document = json.loads(reply.text)
    except (ValueError, RecursionError):
        return replace(error_in(reply, reply.text), is_structured=False)
    if isinstance(document, list) and document:  # Gemini puts its error into a list
        document = document[0]
    if isinstance(document, dict):
        document = document.get("error") or document.get("detail") or document
    return error_in(reply, document)


def error_in(reply: Reply, error: Any) -> ApiError:
    # FastAPI, and servers built on it, name each part that they do not take.
    parts = list(map(mapping, error if isinstance(error, list) else [error]))
    first = parts[0] if parts else {}
    said = []
    for part in (one for one in parts if one.get("msg")):
        place = part.get("loc")
        named = [".".join(map(str, place))] if place and isinstance(place, list) else []
        said.append(": ".join([*named, str(part["msg"])]))
    raw = error if isinstance(error, str) else json.dumps(error)
    code, param, wait_s = first.get("code"), first.get("param"), retry_after(reply.headers)
    status = reply.status
    if status < 300 and isinstance(code, int) and 300 <= code < 600:
        status = code
    codes = [part.get(name) for part in parts for name in ("code", "type", "status")]
    codes.append(mapping(first.get("innererror")).get("code"))
    message = "; ".join(said) or str(first.get("message") or raw[:LONGEST_RAW])
    asked = GOOGLES_WAIT.search(json.dumps(first.get("details")))
    if asked and wait_s is None:
        wait_s = float(asked[1])
    return ApiError(
        status=status,
        message=" ".join(message.split()) or "nothing",
        codes=frozenset(name for name in codes if isinstance(name, str)),
        param=param if isinstance(param, str) else None,
        flagged="flagged_input" in mapping(first.get("metadata")),
        wait_s=wait_s,
        error=first,
    )


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# Codes in small letters, with _ for -.
REFUSALS = frozenset(
    {
        *("content_filter", "content_policy_violation", "image_content_policy_violation"),
        *("data_inspection_failed", "datainspectionfailed", "moderation_blocked"),
        "responsibleaipolicyviolation",
    }
)
# Codes that name no cause: the words are left to tell.
GENERAL = frozenset(
    {
        *("api_error", "bad_request", "bad_request_error", "badrequest", "badrequesterror"),
        *("error", "failed_precondition", "forbidden", "image_generation_user_error"),
        *("invalid_argument", "invalid_prompt", "invalid_request", "invalid_request_error"),
        *("permission_denied", "unprocessable_entity", "user_error"),
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


def is_refusal(error: ApiError) -> bool:
    """Whether an error says that the content of the request is not answered."""
    codes = {code.strip().lower().replace("-", "_") for code in error.codes}
    if error.flagged or codes & REFUSALS:
        return True
    others = {code for code in codes - GENERAL if not code.isdecimal()}
    if error.status not in STATUSES or not all(map(OF_CONTENT.search, others)):
        return False
    return any(
        RULE.search(sentence) and BROKEN.search(sentence) and not OTHERWISE.search(sentence)
        for sentence in SENTENCE.split(unquoted(error.beginning))
    )


def unquoted(text: str) -> str:
    """A text without what it quotes, which a stranger may have written."""
    for quoted in QUOTED:
        text = quoted.sub(" ", text)
    return text


# Names, because clients stand on either of two libraries that have the same ones.
UNREACHED = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})


def reply_in(error: Exception, base_url: str, timeout_s: float) -> Reply:
    """The response that a client raised its error of; where there was none, it raises why."""
    response = getattr(error, "response", None)
    if response is not None:
        return Reply(response.status_code, response.headers, response.text)
    chain = list(causes(error))
    known = next((one for one in chain if isinstance(one, RequestError)), None)
    if known is not None:
        raise known from None
    names = {type(one).__name__ for one in chain}
    is_late, unreached = any("timeout" in name.lower() for name in names), bool(names & UNREACHED)
    if is_late and not unreached:
        raise NoResponse(f"no answer within {timeout_s:g} s", "timeout") from None
    said = str(chain[-1]) or type(chain[-1]).__name__
    text = f"the connection to {base_url!r} failed: {said}"
    raise NoResponse(text, "timeout" if is_late else "connection", unreached=unreached) from None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that it came of, down to what the system said first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
