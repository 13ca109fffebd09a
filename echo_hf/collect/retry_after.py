"""How long a server asks to wait before the next request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

LONGEST_NUMBER = 9


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Reads a Retry-After header.

    Args:
        headers: Headers of a response, by lower-case name.
        now: Seconds since 1970; null for this machine's clock.

    Returns:
        Seconds, at least 0; null when there is none, or none that can be read.

    Example:
        >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:30 GMT"}, now=60)
        30.0
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER:
        return float(text)
    try:
        then = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, then - (time.time() if now is None else now))
