"""A web server on loopback that gives recorded answers, and remembers what it was asked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Reply:
    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Request:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


class ReplayServer:
    def __init__(self) -> None:
        self.replies: dict[str, list[Reply]] = defaultdict(list)
        self.asked: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def gives(self, path: str, *replies: Any) -> None:
        self.replies[path] += [one if isinstance(one, Reply) else Reply(one) for one in replies]

    def queries(self, path: str) -> list[dict[str, list[str]]]:
        return [request.query for request in self.asked if request.path == path]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(
                    parts.path, parse_qs(parts.query), headers, self.rfile.read(length)
                )
                server.asked.append(request)
                self._send(server._reply(parts.path))

            def do_POST(self) -> None:
                self.do_GET()

            def _send(self, reply: Reply) -> None:
                self.send_response(reply.status)
                kind = {"Content-Type": "application/json; charset=utf-8"}
                length = {"Content-Length": str(len(reply.data))}
                for name, value in {**kind, **length, **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _reply(self, path: str) -> Reply:
        replies = self.replies.get(path)
        if not replies:
            return Reply({"error": "NotFound", "message": "nothing is recorded"}, 404)
        return replies.pop(0) if len(replies) > 1 else replies[0]
