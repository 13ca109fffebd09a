"""Classify a server's errors: retry, give up, a refusal, or the end of all requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from echo_hf._infra.retry import RequestError, parse_retry_after

OK = 200
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
REDIRECTS = range(300, 400)
MAX_RAW_CHARACTERS = 200
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
MAX_SEARCHED_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    headers: Mapping[str, str]
    text: str


class NoResponseError(RequestError):
    """No response: a timeout, or a connection that was cut or (`unreached`) never made."""

    def __init__(self, text: str, code: str = "connection", *, unreached: bool = False) -> None:
        super().__init__(text, code)
        self.unreached = unreached


class ErrorKind(Enum):
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
        """The part of the message that is about the error itself."""
        return self.message[:MAX_SEARCHED_CHARACTERS]

    @property
    def code(self) -> str:
        """Its single code: the server's own, else the status."""
        codes = [self.error.get(name) for name in ("code", "status", "type")]
        codes.append(as_mapping(self.error.get("innererror")).get("code"))
        return next((code for code in codes if isinstance(code, str) and code), str(self.status))

    @property
    def summary(self) -> str:
        return f"status {self.status}: {self.message}"

    def find_kind(self, model: str) -> ErrorKind:
        if is_refusal(self):
            return ErrorKind.REFUSED
        if self.codes & RETIRED_CODES or (
            # Other errors may speak of an option that a model no longer has.
            self.status in (404, 410) and RETIRED_MODEL.search(self.beginning)
        ):
            return ErrorKind.RETIRED
        if self.status == 401 or (
            self.status in (400, 403) and BAD_KEY.search(remove_quotations(self.beginning))
        ):
            return ErrorKind.BAD_KEY
        if self.status == 402 or NO_CREDIT in self.codes:
            return ErrorKind.NO_CREDIT
        has_code = any(ACCOUNT_CODE.match(code) for code in self.codes)
        has_words = self.status == 403 and ACCOUNT_STOPPED.search(remove_quotations(self.beginning))
        if not is_transient(self.status) and (has_code or has_words):
            return ErrorKind.ACCOUNT_STOPPED
        if self.status == 403 and self.is_structured:  # a firewall's own is about one request
            return ErrorKind.FORBIDDEN
        if self.has_no_model(model):
            return ErrorKind.NO_MODEL
        if self.status == 404 or self.status in REDIRECTS:
            return ErrorKind.NO_SUCH_ADDRESS
        return ErrorKind.MAY_PASS if is_transient(self.status) else ErrorKind.FAILED

    def has_no_model(self, model: str) -> bool:
        """Return whether the server lacks the model, or hides it from this key."""
        if NO_MODEL in self.codes or f"{model} is not a valid model" in self.message:
            return True
        return self.status == 404 and self.is_structured and bool(MODEL_WORD.search(self.beginning))

    def find_advice(self, model: str, base_url: str, api_key_env: str | None) -> str | None:
        """Return advice for an error that would meet every request; null for others."""
        variable = f"environment variable {api_key_env!r}"
        key = variable if api_key_env else "a variable that api_key_env names"
        advice = ADVICE.get(self.find_kind(model))
        return advice and advice.format(key=key, model=model, base_url=base_url)

    def describe_answer(self, host: str) -> str:
        return f"{host!r} answered with status {self.status}, {self.message!r}"


MODEL_ADVICE = "model is {model!r}, expected one that the server has and the key may use"
ADVICE = {
    ErrorKind.RETIRED: MODEL_ADVICE,
    ErrorKind.BAD_KEY: "put a valid key into {key}",
    ErrorKind.NO_CREDIT: "the account has no credit left; the same command resumes from here",
    ErrorKind.ACCOUNT_STOPPED: "the account is stopped: fix that, or use another account's key",
    ErrorKind.FORBIDDEN: "the key may not use model {model!r}; name another key or model",
    ErrorKind.NO_MODEL: MODEL_ADVICE,
    ErrorKind.NO_SUCH_ADDRESS: (
        "base_url is {base_url!r}, expected the server's own, for OpenAI's API mostly ending in /v1"
    ),
}
NO_CREDIT, NO_MODEL = "insufficient_quota", "model_not_found"
RETIRED_CODES = frozenset({"model_deprecated", "model_retired"})
# Google says so with status 400, and a reason inside the error.
BAD_KEY = re.compile(r"api[ _]key (?:not valid|expired|not found|invalid)", re.IGNORECASE)
# A model, and not the address `/v1/models/NAME` that a server without it repeats.
MODEL_WORD = re.compile(r"(?<![\w/.-])models?\b", re.IGNORECASE)
RETIRED_MODEL = re.compile(
    r"(?<![\w/.-])models?\b.{0,120}?(?:no longer (?:available|supported|served)"
    r"|(?:been|was) (?:shut ?down|retired|deprecated|discontinued|decommissioned|removed))",
    re.IGNORECASE,
)
ACCOUNT_CODE = re.compile(r"(?:account|billing|organization)_")
ACCOUNT_STOPPED = re.compile(
    r"\b(?:account|organi[sz]ation)\b.{0,40}\b(?:suspended|deactivated|disabled|terminated|banned)",
    re.IGNORECASE,
)


GOOGLE_RETRY_DELAY = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s?"')


def is_transient(status: int) -> bool:
    return status in TRANSIENT_STATUSES or status >= 500


def read_api_error(response: HttpResponse) -> ApiError:
    try:
        document = json.loads(response.text)
    except (ValueError, RecursionError):
        return replace(parse_error(response, response.text), is_structured=False)
    if isinstance(document, list) and document:  # Gemini puts its error into a list
        document = document[0]
    if isinstance(document, dict):
        document = document.get("error") or document.get("detail") or document
    return parse_error(response, document)


def parse_error(response: HttpResponse, error: Any) -> ApiError:
    # FastAPI, and servers built on it, name each part that they do not take.
    parts = list(map(as_mapping, error if isinstance(error, list) else [error]))
    first = parts[0] if parts else {}
    messages = []
    for part in (part for part in parts if part.get("msg")):
        place = part.get("loc")
        location = [".".join(map(str, place))] if place and isinstance(place, list) else []
        messages.append(": ".join([*location, str(part["msg"])]))
    raw = error if isinstance(error, str) else json.dumps(error)
    code, param, wait_s = first.get("code"), first.get("param"), parse_retry_after(response.headers)
    status = response.status
    if status < 300 and isinstance(code, int) and 300 <= code < 600:
        status = code
    codes = [part.get(name) for part in parts for name in ("code", "type", "status")]
    codes.append(as_mapping(first.get("innererror")).get("code"))
    message = "; ".join(messages) or str(first.get("message") or raw[:MAX_RAW_CHARACTERS])
    delay = GOOGLE_RETRY_DELAY.search(json.dumps(first.get("details")))
    if delay and wait_s is None:
        wait_s = float(delay[1])
    return ApiError(
        status=status,
        message=" ".join(message.split()) or "nothing",
        codes=frozenset(name for name in codes if isinstance(name, str)),
        param=param if isinstance(param, str) else None,
        flagged="flagged_input" in as_mapping(first.get("metadata")),
        wait_s=wait_s,
        error=first,
    )


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# Codes in small letters, with _ for -.
REFUSAL_CODES = frozenset(
    {
        *("content_filter", "content_policy_violation", "image_content_policy_violation"),
        *("data_inspection_failed", "datainspectionfailed", "moderation_blocked"),
        "responsibleaipolicyviolation",
    }
)
# Codes that name no cause: the words are left to tell.
GENERAL_CODES = frozenset(
    {
        *("api_error", "bad_request", "bad_request_error", "badrequest", "badrequesterror"),
        *("error", "failed_precondition", "forbidden", "image_generation_user_error"),
        *("invalid_argument", "invalid_prompt", "invalid_request", "invalid_request_error"),
        *("permission_denied", "unprocessable_entity", "user_error"),
    }
)
CONTENT_CODE = re.compile(r"content|inappropriate|moderat|nsfw|polic|safety|sensitive")
REFUSAL_STATUSES = frozenset({OK, 400, 403, 422, 451})
# From the first mark to the last one: what is quoted may hold marks of its own, or be cut.
QUOTATIONS = tuple(
    re.compile(rf"(?<!\w){opening}(?:.*{closing}(?!\w)|.*)", re.DOTALL)
    for opening, closing in (('"', '"'), ("'", "'"), ("`", "`"), ("“", "”"), ("‘", "’"))
)
SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
RULE_WORDS = re.compile(
    r"acceptable use|(?:content|safety|usage)[ _-](?:checker|filter|guideline|management|moderation"
    r"|polic|system)|by (?:our |the )?moderation|moderation (?:check|filter|guideline|polic|system)"
    r"|\b(?:input|prompt) was flagged",
    re.IGNORECASE,
)
BREACH_WORDS = re.compile(
    r"\b(?:against|block|declin|disallow|filtered|flag|not allow|prohibit|refus|reject|trigger"
    r"|violat)",
    re.IGNORECASE,
)
# A sentence with one of these is about who asks, or about how.
OTHER_CAUSES = re.compile(
    r"\b(?:accounts?|api[ -]?keys?|billing|organi[sz]ations?|projects?|subscriptions?|workspaces?"
    r"|arguments?|expected|fields?|must|options?|parameters?|settings?|unknown"
    r"|(?:un|not )supported)\b",
    re.IGNORECASE,
)


def is_refusal(error: ApiError) -> bool:
    """Return whether an error says that the request's content is refused."""
    codes = {code.strip().lower().replace("-", "_") for code in error.codes}
    if error.flagged or codes & REFUSAL_CODES:
        return True
    others = {code for code in codes - GENERAL_CODES if not code.isdecimal()}
    if error.status not in REFUSAL_STATUSES or not all(map(CONTENT_CODE.search, others)):
        return False
    return any(
        RULE_WORDS.search(sentence)
        and BREACH_WORDS.search(sentence)
        and not OTHER_CAUSES.search(sentence)
        for sentence in SENTENCE_END.split(remove_quotations(error.beginning))
    )


def remove_quotations(text: str) -> str:
    """Remove quotations from a text, which a stranger may have written."""
    for quotation in QUOTATIONS:
        text = quotation.sub(" ", text)
    return text


# Names, because clients stand on either of two libraries that have the same ones.
UNREACHED_ERRORS = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})


def get_response(error: Exception, base_url: str, timeout_s: float) -> HttpResponse:
    """Return the response that caused a client's error; raise where there was none."""
    response = getattr(error, "response", None)
    if response is not None:
        return HttpResponse(response.status_code, response.headers, response.text)
    chain = list(iterate_causes(error))
    request_error = next((cause for cause in chain if isinstance(cause, RequestError)), None)
    if request_error is not None:
        raise request_error from None
    names = {type(cause).__name__ for cause in chain}
    is_late, unreached = (
        any("timeout" in name.lower() for name in names),
        bool(names & UNREACHED_ERRORS),
    )
    if is_late and not unreached:
        raise NoResponseError(f"no answer within {timeout_s:g} s", "timeout") from None
    message = str(chain[-1]) or type(chain[-1]).__name__
    text = f"the connection to {base_url!r} failed: {message}"
    raise NoResponseError(
        text, "timeout" if is_late else "connection", unreached=unreached
    ) from None


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and all its causes, down to the first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
