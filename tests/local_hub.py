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
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import RLock
from urllib.parse import parse_qs, unquote, urlsplit

from huggingface_hub import HfApi

from tests.collect.loopback import Loopback
from tests.collect.loopback import answer as send
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


class DiedError(ConnectionError):
    """The server is gone: whoever asks gets no answer."""


class LocalHub(Loopback):
    """A context manager; a test reads and changes what it holds."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}  # large files, which outlive commits
        self.models: dict[str, list[dict[str, object]]] = {}  # what each says of itself
        self.asked: list[tuple[str, str]] = []
        self.dead = False  # every connection is closed without an answer
        self.acts: dict[str, list[Act]] = defaultdict(list)
        self.lock = RLock()
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        headers = {key.lower(): value for key, value in request.headers.items()}
        asked = (request.command, unquote(parts.path), query, headers, _body(request), self.url)
        found = self.answer(Question(*asked))
        send(request, found.status, found.body, found.headers)

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


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0))
    body = b""
    while size := int(request.rfile.readline(), 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    request.rfile.readline()
    return body
