"""Fetching from a server on loopback, as the tests of all its parts do it."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_network
from typing import Any

from PIL import Image

from echo_hf.collect.fetch import FetchResult, fetch_images
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.store import ImageStore
from tests.collect.loopback import ImageServer
from tests.images_for_tests import encoded, noise

RED, BLUE = (encoded(Image.new("RGB", (20, 10), name), "PNG") for name in ("red", "blue"))
NOISE = encoded(noise((90, 90)), "PNG")
LOOPBACK = ip_network("127.0.0.1/32")


def policy_for(server: ImageServer, **changes: Any) -> FetchPolicy:
    given = {
        "ports": {server.port},
        "allow_addresses": [LOOPBACK],
        "backoff_s": 0.0,
        "read_timeout_s": 5.0,
        "total_timeout_s": 10.0,
    }
    return FetchPolicy.model_validate(given | changes)


def fetch(server: ImageServer, store: ImageStore, *urls: str, **changes: Any) -> list[FetchResult]:
    return list(fetch_images(urls, store, policy=policy_for(server, **changes)))


def fetch_one(server: ImageServer, store: ImageStore, url: str, **changes: Any) -> FetchResult:
    (result,) = fetch(server, store, url, **changes)
    return result


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def send_without_length(request: BaseHTTPRequestHandler, status: int = 200) -> None:
    request.send_response(status)
    request.send_header("Connection", "close")
    request.end_headers()
