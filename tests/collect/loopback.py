"""Web servers on loopback: each kind says how it answers; one gives images as a test says."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Event, Lock, Thread
from typing import Any, Self


class Loopback:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.closing = Event()
        self._connections: list[socket] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._running = Thread(target=self._server.serve_forever, args=(0.01,))

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        raise NotImplementedError

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._running.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closing.set()
        if self._running.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._running.join()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond, connections = self.respond, self._connections

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet an answer

            def setup(self) -> None:
                connections.append(self.request)
                super().setup()

            def _handle(self) -> None:
                try:
                    respond(self)
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def answer(
    request: BaseHTTPRequestHandler,
    status: int,
    data: bytes,
    headers: Mapping[str, str] | None = None,
) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(data)
    request.wfile.flush()


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
