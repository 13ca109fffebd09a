"""A web server on loopback that gives images as a test says, and remembers what it was asked."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from threading import Lock

from tests.collect.loopback import Loopback, answer

Answer = Callable[[BaseHTTPRequestHandler], None]


class ImageServer(Loopback):
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self._lock = Lock()
        super().__init__(tls)

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.asked[request.path] += 1
            self.headers.append({key.lower(): value for key, value in request.headers.items()})
        self.answers.get(request.path, lambda one: answer(one, 404, b""))(request)

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def gives(self, path: str, data: bytes, kind: str = "image/png") -> str:
        self.answers[path] = lambda request: answer(request, 200, data, {"Content-Type": kind})
        return self.url(path)

    def leads(self, path: str, to: str, status: int = 302, **headers: str) -> str:
        given = {"Location": to, **headers}
        self.answers[path] = lambda request: answer(request, status, b"moved", given)
        return self.url(path)

    def says(self, path: str, *statuses: int, then: bytes = b"", **headers: str) -> str:
        left = list(statuses)

        def next_one(request: BaseHTTPRequestHandler) -> None:
            with self._lock:
                status = left.pop(0) if left else 200
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            answer(request, status, then if status == 200 else b"no", named)

        self.answers[path] = next_one
        return self.url(path)
