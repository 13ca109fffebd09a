"""A real HTTP server with the files and batches of OpenAI's API, which does as a test says."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Lines = list[bytes]
PROMPT = re.compile(rb'name="prompt"\r\n\r\n(.*?)\r\n', re.DOTALL)
FILENAME = re.compile(rb'filename="([^"]*)"')


def chat(text: str, **further: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"object": "chat.completion", "choices": choices, "usage": usage, **further}


def last_text(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


def echo(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, chat(last_text(body))


def answer_line(row: dict[str, Any], status: int, body: Any) -> bytes:
    response = {"status_code": status, "request_id": "r", "body": body}
    line = {"id": "x", "custom_id": row["custom_id"], "response": response, "error": None}
    return json.dumps(line).encode()


def never_run(row: dict[str, Any]) -> bytes:
    error = {"code": "batch_expired", "message": "This request was not executed in time."}
    return json.dumps({"custom_id": row["custom_id"], "response": None, "error": error}).encode()


@dataclass
class BatchServer:
    """What it was sent, and how it answers.

    Attributes:
        answer: The status and body for a row's body.
        looks: How often a batch is looked at before it ends.
        end: Gives the last status of a batch, and the lines of its two files, from its rows.
        disturb: Called before each request; what it returns is sent instead: a status and bytes.
        keeps_metadata: Whether batches come back with their metadata.
    """

    answer: Callable[[dict[str, Any]], tuple[int, Any]] = echo
    looks: int = 1
    end: Callable[[BatchServer, list[dict[str, Any]]], tuple[str, Lines, Lines]] | None = None
    disturb: Callable[[str, str], tuple[int, bytes] | None] = lambda *_: None
    keeps_metadata: bool = True
    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, tuple[str, float]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**6)))

    def sent(self) -> Counter[str]:
        """How often each row was in a batch."""
        return Counter(row["custom_id"] for rows in self.rows.values() for row in rows)

    def add_file(self, name: str, data: bytes, created: float | None = None) -> str:
        file_id = f"file-{next(self.numbers)}"
        self.files[file_id] = data
        self.names[file_id] = name, time.time() if created is None else created
        return file_id

    def add_batch(self, input_file: str, **further: Any) -> dict[str, Any]:
        batch_id = f"batch_{next(self.numbers)}"
        rows = [json.loads(line) for line in self.files[input_file].splitlines()]
        self.rows[batch_id] = rows
        self.batches[batch_id] = {
            "id": batch_id,
            "object": "batch",
            "status": "validating",
            "metadata": None,
            "input_file_id": input_file,
            "created_at": int(time.time()),
            "looks": 0,
            "request_counts": {"total": len(rows), "completed": 0, "failed": 0},
            **further,
        }
        return self.batches[batch_id]

    def finish(self, batch: dict[str, Any]) -> None:
        rows = self.rows[batch["id"]]
        replies = [(row, *self.answer(row["body"])) for row in rows]
        good = [answer_line(*reply) for reply in replies if reply[1] == 200]
        bad = [answer_line(*reply) for reply in replies if reply[1] != 200]
        status, output, errors = "completed", good, bad
        if self.end is not None:
            status, output, errors = self.end(self, rows)
        batch["status"] = status
        for name, lines in (("output", output), ("error", errors)):
            if lines:
                batch[f"{name}_file_id"] = self.add_file(name, b"\n".join(lines) + b"\n")

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        ended = ("completed", "failed", "expired", "cancelled")
        if batch["status"] not in ended:
            batch["looks"] += 1
            batch["status"] = "in_progress"
            if batch["looks"] > self.looks:
                self.finish(batch)
        return self.show(batch)

    def show(self, batch: dict[str, Any]) -> dict[str, Any]:
        return batch if self.keeps_metadata else {**batch, "metadata": None}

    def handle(self, method: str, path: str, data: bytes, kind: str) -> tuple[int, bytes]:
        parts = urlsplit(path)
        names, query = parts.path.strip("/").split("/")[1:], parse_qs(parts.query)
        with self.lock:
            self.asked.append((method, parts.path))
            if (instead := self.disturb(method, parts.path)) is not None:
                return instead
            document: Any = None
            match (method, names):
                case ("POST", ["files"]):
                    content = _read_upload(data, kind)
                    found = FILENAME.search(data)
                    file_id = self.add_file(found[1].decode() if found else "", content)
                    document = {"id": file_id, "object": "file", "bytes": len(content)}
                case ("GET", ["files"]):
                    document = self._list(
                        {
                            name: {"id": name, "filename": self.names[name][0]}
                            | {"created_at": self.names[name][1]}
                            for name in self.files
                        },
                        query,
                    )
                case ("GET", ["files", name]) if name in self.files:
                    document = {"id": name}
                case ("GET", ["files", name, "content"]) if name in self.files:
                    return 200, self.files[name]
                case ("DELETE", ["files", name]) if name in self.files:
                    del self.files[name]
                    self.deleted.append(name)
                    document = {"id": name, "deleted": True}
                case ("POST", ["batches"]):
                    body = json.loads(data)
                    metadata = body.get("metadata")
                    document = self.show(self.add_batch(body["input_file_id"], metadata=metadata))
                case ("GET", ["batches"]):
                    shown = {name: self.show(batch) for name, batch in self.batches.items()}
                    document = self._list(dict(reversed(shown.items())), query)
                case ("GET", ["batches", name]) if name in self.batches:
                    document = self.look(self.batches[name])
                case ("POST", ["chat", "completions"] | ["images", "generations" | "edits"]):
                    is_form = kind.startswith("multipart")
                    prompt = PROMPT.search(data) if is_form else None
                    body = {"prompt": prompt[1].decode()} if prompt else json.loads(data)
                    status, answer = self.answer(body)
                    return status, json.dumps(answer).encode()
            if document is None:
                return 404, json.dumps({"error": {"message": f"no {path}"}}).encode()
            return 200, json.dumps(document).encode()

    def _list(self, documents: dict[str, Any], query: dict[str, list[str]]) -> dict[str, Any]:
        names = list(documents)
        start = names.index(query["after"][0]) + 1 if "after" in query else 0
        end = start + int(query.get("limit", ["20"])[0])
        data = [documents[name] for name in names[start:end]]
        return {"object": "list", "data": data, "has_more": end < len(names)}


def _read_upload(data: bytes, kind: str) -> bytes:
    boundary = b"--" + kind.split("boundary=")[1].strip('"').encode()
    for part in data.split(boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return content.removesuffix(b"\r\n")
    raise AssertionError("no file in the upload")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    batch_server: BatchServer

    def do_GET(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.headers.get("Content-Type", "")
        status, body = self.batch_server.handle(self.command, self.path, data, kind)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # a killed client
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def running_batches(**behavior: Any) -> Iterator[BatchServer]:
    server = BatchServer(**behavior)
    handler = type("Handler", (_Handler,), {"batch_server": server})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
