"""What an HTTP answer that is no success means for a crawl, the same for all platforms."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import SecretStr

from echo_hf.collect.deep_json import deep_loads
from echo_hf.collect.platforms.access import quiet
from echo_hf.collect.platforms.base import RateLimitedError, UnanswerableError
from echo_hf.errors import PlatformError
from echo_hf.retry_after import retry_after

RESETS = ("x-rate-limit-reset", "ratelimit-reset", "x-ratelimit-reset")
TOO_SOON_S = 2.0
UNKNOWN_WAIT_S = 60.0
WORDS = ("title", "detail", "error", "message", "error_description")
KEYS_FAIL = frozenset({401, 402, 403})
MAY_PASS = frozenset({408, 409, 425})
Json = Mapping[str, Any]


def check_answer(
    platform: str,
    status: int,
    headers: Mapping[str, str],
    body: str,
    keys: Mapping[str, SecretStr],
) -> None:
    """Raises what an answer means that is no success.

    Args:
        platform: Name of the platform.
        status: Of the answer.
        headers: Of the answer, by any case of their names.
        body: Of the answer.
        keys: Keys that were used, by the environment variable that holds them.

    Raises:
        RateLimitedError: The platform wants to be left alone.
        PlatformError: A key is refused.
        UnanswerableError: This question will never be answered.
        ConnectionError: Another try may do.
    """
    if 200 <= status < 300:
        return
    if status == 429:
        raise RateLimitedError(seconds_to_wait(headers))
    said = quiet(f"{status} {' '.join(_words(body))}", keys.values())
    if status in KEYS_FAIL:
        held = " and ".join(keys) or "no key"
        raise PlatformError(
            f"{platform!r} refuses {held}, or what it may do: {said}; see docs/platforms.md"
        )
    if 300 <= status < 400:
        said = f"{said}, which leads elsewhere: expected the address that it leads to"
    if 400 <= status < 500 and status not in MAY_PASS:
        raise UnanswerableError(f"{platform!r} does not answer this: {said}")
    raise ConnectionError(f"{platform!r} answered {said}")


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """How long a platform wants to be left alone.

    Args:
        headers: Of its answer.

    Returns:
        Seconds, at least 1; a minute when it does not say.

    Example:
        >>> seconds_to_wait({"Retry-After": "30"})
        30.0
    """
    lower = {name.lower(): value for name, value in headers.items()}
    told = retry_after(lower)
    if told is None and lower.get("x-rate-limit-remaining", "0") not in ("0", ""):
        told = TOO_SOON_S  # not the limit itself: two requests came too close together
    if told is None:
        ends = (_moment(lower[name]) for name in RESETS if name in lower)
        end = next((one for one in ends if one is not None), None)
        told = UNKNOWN_WAIT_S if end is None else end - _now(lower) + 1
    return max(1.0, told)


def json_object(platform: str, body: str, **parts: type) -> Json:
    """An answer that has to be a JSON object.

    Args:
        platform: Name of the platform.
        body: Of the answer.
        parts: What has to stand in it, and of which type that has to be.

    Returns:
        The object.

    Raises:
        ConnectionError: It is something else, such as the page of a proxy, or a trouble that is
            told as a success.
    """
    read = json_of(body)
    if not isinstance(read, dict):
        raise ConnectionError(f"{platform!r} answered something else than a JSON object")
    for name, kind in parts.items():
        if not isinstance(read.get(name), kind):
            said = quiet(" ".join(["answered without", repr(name), *_words(body)]))
            raise ConnectionError(f"{platform!r} {said}")
    return read


def json_of(body: str) -> object:
    """What a JSON text holds; null for a text that is none."""
    try:
        return deep_loads(body)
    except ValueError:
        return None


def _now(headers: Mapping[str, str]) -> float:
    """The time by the server's own clock, which the reset is told by; this machine's without it."""
    try:
        return parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        return time.time()


def _moment(text: str) -> float | None:
    """Seconds since 1970, of such a number or of an ISO 8601 time."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _words(body: str) -> Iterator[str]:
    read = json_of(body)
    errors = read.get("errors") if isinstance(read, dict) else None
    for one in [read, *(errors if isinstance(errors, list) else [])]:
        if isinstance(one, dict):
            yield from _different(one[name] for name in WORDS if isinstance(one.get(name), str))


def _different(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
