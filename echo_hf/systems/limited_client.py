"""HTTP clients that read an answer only so long and so far, whatever a server sends."""

from __future__ import annotations

import time
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from echo_hf.pictures import MOST_BYTES

# Base64 takes four characters for three bytes; the rest is room for texts.
MOST_ANSWER = 2 * MOST_BYTES
MOST_OF_AN_ERROR = 1_000_000
LEAST_ERROR = 300
# The body is handed on as it was read: decoded, and in one piece.
OF_THE_WAY = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class TooMuchError(Exception):
    """An answer has more bytes than any picture that is kept."""


def limited(client_class: type[Any], timeout_s: float) -> type[Any]:
    """A client that has read each answer whole before it hands it on.

    A client's own limit of time is for each piece of an answer, and it has none of size.

    Args:
        client_class: `Client` of httpx or httpx2, or a class made from it.
        timeout_s: Longest wait for a whole answer, in seconds.

    Returns:
        A class made from it. Its `send` raises `TooMuchError` and `TimeoutError`; of an error's
        body it keeps the first million bytes, so that its status still counts.
    """

    def send(self: Any, request: Any, **options: Any) -> Any:
        until = time.monotonic() + timeout_s
        response = client_class.send(self, request, **{**options, "stream": True})
        with closing(response):
            body = _body(response, until)
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in OF_THE_WAY]
        return type(response)(response.status_code, headers=headers, content=body, request=request)

    return type("LimitedClient", (client_class,), {"send": send})


def http_library() -> Any:
    """The HTTP library that is installed: httpx, or else its successor."""
    return import_module("httpx" if find_spec("httpx") is not None else "httpx2")


def _body(response: Any, until: float) -> bytes:
    is_error, data = response.status_code >= LEAST_ERROR, bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if is_error and len(data) > MOST_OF_AN_ERROR:
            return bytes(data[:MOST_OF_AN_ERROR])
        if len(data) > MOST_ANSWER:
            raise TooMuchError(f"the answer has more than {MOST_ANSWER} bytes")
        if time.monotonic() > until:
            raise TimeoutError
    return bytes(data)
