"""A real HTTP server on loopback that answers as a test tells it to, well or badly."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONGEST_WAIT_S = 20.0


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    data: bytes = b""

    @property
    def line(self) -> str:
        content = next(one for one in self.body["messages"] if one["role"] == "user")["content"]
        return str(content if isinstance(content, str) else content[-1]["text"])


@dataclass(frozen=True)
class Answer:
    """What the server sends: a document or bytes, up to where the connection is cut.

    One that is silent sends nothing until the server is closed; one that trickles sends byte by
    byte, and comes to no end.
    """

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    silent: bool = False
    trickles: bool = False


SILENCE = Answer(silent=True)


def completion(text: Any, finish_reason: str | None = "stop", **further: Any) -> Answer:
    message = {"role": "assistant", "content": text, **further.pop("message", {})}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    document = {"object": "chat.completion", "choices": [choice], "usage": usage}
    return Answer({**document, **further})


def fault(status: int, message: str, **further: Any) -> Answer:
    headers = further.pop("headers", {})
    return Answer({"error": {"message": message, **further}}, status, headers)


@dataclass
class LoopbackServer:
    """What the server was asked, in the order in which it came, and how it answers."""

    behave: Callable[[Asked], Answer] = lambda asked: completion(asked.line)
    asked: list[Asked] = field(default_factory=list)
    most_under_way: int = 0
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    _under_way: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def wait_for(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.asked) >= number, LONGEST_WAIT_S)

    @contextmanager
    def counted(self, asked: Asked) -> Iterator[None]:
        with self._changed:
            self.asked.append(asked)
            self._under_way += 1
            self.most_under_way = max(self.most_under_way, self._under_way)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    loopback: LoopbackServer

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_json = data and headers["content-type"].startswith("application/json")
        asked = Asked(self.path, headers, json.loads(data) if is_json else {}, data)
        with self.loopback.counted(asked):
            answer = self.loopback.behave(asked)
            if answer.silent:
                self.loopback.closing.wait(LONGEST_WAIT_S)
                self.close_connection = True
        if not answer.silent:
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        if answer.cut_after == 0:
            self._cut()
            return
        self.send_response(answer.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        while answer.trickles and not self.loopback.closing.wait(0.01):
            self.wfile.write(b" ")
        self.wfile.write(body[: answer.cut_after])
        if answer.cut_after is not None:
            self._cut()

    def _cut(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class _Threads(ThreadingHTTPServer):
    daemon_threads = False  # closing joins them, so that none outlives its test
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._connections: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for request in list(self._connections):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is what some tests are about."""


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


@contextmanager
def running() -> Iterator[LoopbackServer]:
    loopback = LoopbackServer()
    handler = type("Handler", (_Handler,), {"loopback": loopback})
    server = _Threads(handler)
    loopback.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield loopback
    finally:
        loopback.closing.set()
        server.shutdown()
        thread.join()
        server.close_connections()
        server.server_close()
