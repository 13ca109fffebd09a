"""The client library of X, so that its key stays out of its log, and its host can be another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import requests
from pydantic import SecretStr
from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    import tweepy

OLD_HOST = "https://api.twitter.com"
TIMEOUT_S = 60.0


class _ToHost(HTTPAdapter):
    """Sends what the library addresses to the old host to another one."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host.rstrip("/")

    def send(self, request: requests.PreparedRequest, *args: Any, **named: Any) -> Any:
        request.url = self._host + (request.url or "").removeprefix(OLD_HOST)
        named["timeout"] = named.get("timeout") or TIMEOUT_S
        return super().send(request, *args, **named)


def x_client(key: SecretStr, host: str) -> tweepy.Client:
    """A client that gives answers as they came.

    Args:
        key: A bearer token. The library logs the headers that it makes, so that it never sees the
            key: it is put in place of a stand-in when a request is sent.
        host: Where the API is.

    Returns:
        The client.
    """
    import tweepy

    client = tweepy.Client(bearer_token="-", return_type=requests.Response)  # noqa: S106
    client.session.auth = _with(key)
    client.session.mount(OLD_HOST, _ToHost(host))
    client.session.max_redirects = 0
    return client


def _with(
    key: SecretStr,
) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    def put(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {key.get_secret_value()}"
        return request

    return put
