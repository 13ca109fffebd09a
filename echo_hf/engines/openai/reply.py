"""What comes back from a server, and how servers of many makes say what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OK = 200
LONGEST_RAW = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response.

    Attributes:
        status: Its status code.
        headers: Its headers, by lower-case name.
        text: Its body.
    """

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """No response: a time limit, or a connection that failed or was cut.

    Attributes:
        error: What happened.
        unreached: Whether no connection came about: nobody heard the request.
    """

    error: str
    unreached: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What a server says went wrong.

    Attributes:
        status: The status code, that in the body where the response itself claims success.
        message: What it says to people, in one line.
        codes: What it calls the error, in all the places where servers write that.
        param: The part of the request that it blames.
        flagged: Whether it says that moderation stopped the request.
        is_structured: Whether it came as data, which a firewall in front of the server rarely says
            its own errors in.
        error: The error itself, empty where it is a text.
    """

    status: int
    message: str
    codes: frozenset[str] = frozenset()
    param: str | None = None
    flagged: bool = False
    is_structured: bool = True
    error: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def fault_of(reply: Reply) -> Fault:
    """What a response with an error status says.

    Args:
        reply: The response.

    Returns:
        The error, whatever dialect it is in.

    Example:
        >>> fault_of(Reply(404, {}, '{"detail": "Not Found"}')).message
        'Not Found'
    """
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
    """What an error object says.

    Args:
        error: The object, or a text in its place.
        status: Status code of the response.

    Returns:
        The error; a status code inside it counts where the response claims success.
    """
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
