"""A Hub in memory, on loopback, with all that huggingface_hub and datasets ask one for.

Both libraries read HF_ENDPOINT and HF_HOME when they are imported, and datasets takes them from
nowhere else. Hence two ways to use it: our own functions take a client, so a test in this process
hands them `hub.api()`; what calls `load_dataset`, or the command line, runs in a process of its
own with `hub.environment(home)`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import RLock, Thread
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from huggingface_hub import HfApi

from tests.local_hub_repository import Repository
from tests.local_hub_routes import Answer, Question, answer

Act = Callable[[], object] | None


@dataclass(frozen=True)
class Token:
    """Whom a token speaks for, and what it may do: `read`, `write` or what is fine-grained."""

    user: str
    role: str = "write"
    orgs: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()

    def sees(self, repo_id: str) -> bool:
        return repo_id.split("/", 1)[0] in (self.user, *self.orgs)

    def writes(self, repo_id: str) -> bool:
        may = self.role == "write" or "repo.write" in self.permissions
        return may and self.sees(repo_id)


WRITER, READER, STRANGER = "hf_writer", "hf_reader", "hf_stranger"
FINE_READER, FINE_WRITER = "hf_fine_reader", "hf_fine_writer"
TOKENS = {
    WRITER: Token("mira", orgs=("pixel-lab",)),
    READER: Token("mira", "read", ("pixel-lab",)),
    FINE_READER: Token("mira", "fineGrained", ("pixel-lab",), ("repo.content.read",)),
    FINE_WRITER: Token("mira", "fineGrained", ("pixel-lab",), ("repo.content.read", "repo.write")),
    STRANGER: Token("tofu"),
}


class DiedError(Exception):
    """The server is gone: whoever asks gets no answer."""


@dataclass
class LocalHub:
    """A context manager; a test reads and changes what it holds."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)  # large files, which outlive commits
    asked: list[tuple[str, str]] = field(default_factory=list)
    dead: bool = False  # every connection is closed without an answer
    acts: dict[str, list[Act]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.lock = RLock()
        self._connections: list[socket] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def api(self, token: str | None = WRITER) -> HfApi:
        return HfApi(endpoint=self.url, token=token or False)

    def environment(self, home: Path, token: str | None = WRITER, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if key[:3] != "HF_"}
        mine = {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
        return {**inherited, **mine, **({"HF_TOKEN": token} if token else {}), **more}

    def at(self, step: str, *acts: Act) -> None:
        """Lets acts happen one after the other, null for none, when a step is reached.

        A step is `before` or `after`, and `upload`, `commit` or `tag`; after a step its work is
        done and its answer not sent.
        """
        self.acts[step] += acts

    def die(self) -> None:
        self.dead = True
        raise DiedError

    def answer(self, question: Question) -> Answer:
        with self.lock:
            self.asked.append((question.method, question.path))
            if self.dead:
                raise DiedError
            return answer(self, question)

    def reach(self, step: str) -> None:
        acts = self.acts[step]
        act = acts.pop(0) if acts else None
        if act is not None:
            act()

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        commit = self.repositories[repo_id].find(revision)
        assert commit is not None, f"no revision {revision!r}"
        return {path: stored.data for path, stored in commit.files.items()}

    def changes_asked(self) -> list[str]:
        harmless = ("/api/validate-yaml", "/api/agent-harnesses")
        asked = [path for method, path in self.asked if method not in ("GET", "HEAD")]
        return [path for path in asked if path not in harmless]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)


def _handler(hub: LocalHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms for its headers to be confirmed

        def setup(self) -> None:
            hub._connections.append(self.request)
            super().setup()

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            headers = {key.lower(): value for key, value in self.headers.items()}
            question = Question(
                self.command, unquote(parts.path), query, headers, _body(self), hub.url
            )
            try:
                _send(self, hub.answer(question))
            except (DiedError, OSError):
                self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - the library's

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body


def _send(request: BaseHTTPRequestHandler, found: Answer) -> None:
    request.send_response(found.status)
    for name, value in {"Content-Length": str(len(found.body)), **found.headers}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(found.body)
