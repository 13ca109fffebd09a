"""A web server on loopback that answers as a test says, and remembers what it was asked."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self

Answer = Callable[[BaseHTTPRequestHandler], None]


class ImageServer:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.closing = Event()
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def gives(self, path: str, data: bytes, kind: str = "image/png") -> str:
        self.answers[path] = lambda request: answer(request, 200, data, {"Content-Type": kind})
        return self.url(path)

    def leads(self, path: str, to: str, status: int = 302, **headers: str) -> str:
        self.answers[path] = lambda request: answer(
            request, status, b"moved", {"Location": to, **headers}
        )
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

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with server._lock:
                    server.asked[self.path] += 1
                    server.headers.append(
                        {key.lower(): value for key, value in self.headers.items()}
                    )
                try:
                    server.answers.get(self.path, lambda one: answer(one, 404, b""))(self)
                except OSError:  # the client has gone
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def answer(
    request: BaseHTTPRequestHandler,
    status: int,
    data: bytes,
    headers: dict[str, str] | None = None,
) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(data)
