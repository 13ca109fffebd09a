"""A real browser, a real server in a process of its own, and a record of all that went between."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlencode, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# A stream of events has no body that could be asked for at its end: it is read along.
READ_ALONG = """(() => { const real = window.fetch; window.fetch = async (...asked) => {
const answer = await real(...asked); const copy = answer.clone(); (async () => {
const words = new TextDecoder(); for await (const part of copy.body ?? []) {
window.readAlong(words.decode(part, {stream: true})); } })().catch(() => {});
return answer; }; })()"""


def chromium() -> Path:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed")
    return Path(found)


@contextmanager
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    executable = chromium()
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=str(executable), args=list(FLAGS))
        try:
            yield found
        finally:
            found.close()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as found:
        yield found


@contextmanager
def space(script: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address at which the page of a Space answers, from a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    own = {"GRADIO_SERVER_PORT": port, "GRADIO_ANALYTICS_ENABLED": "False"}
    own["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command, place = [sys.executable, "-u", script.name], script.parent
    with subprocess.Popen(
        command, cwd=place, env={**environment, **own}, stdout=subprocess.PIPE, text=True
    ) as page:
        try:
            assert page.stdout is not None
            yield next(word for line in page.stdout for word in line.split() if "://" in word)
        finally:
            page.terminate()


@dataclass
class Seen:
    hosts: set[str] = field(default_factory=set)
    bodies: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def watch(self, context: Any) -> None:
        context.expose_binding("readAlong", lambda _, text: self.bodies.append(text))
        context.add_init_script(READ_ALONG)
        context.on("request", lambda asked: self._asked(asked.url))
        context.on("requestfinished", self._answered)
        context.on("console", lambda said: self._said(said.type, said.text))
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        context.on("dialog", self._opened)

    def _asked(self, address: str) -> None:
        self.addresses.append(address)
        if not address.startswith(("data:", "blob:")):
            self.hosts.add(urlsplit(address).netloc)

    def _answered(self, asked: Any) -> None:
        from playwright.sync_api import Error

        try:
            answer = asked.response()
            # What the browser received of images is looked into as text, too.
            self.bodies.append(answer.body().decode("utf-8", "replace") if answer else "")
        except Error:  # a stream that a closed page has left
            return

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.problems.append(text)

    def _opened(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@dataclass
class Visitor:
    """Somebody at a page, who types fast and then waits until `ready` holds."""

    ready: ClassVar[tuple[str, ...]] = ()
    page: Any
    seen: Seen = field(default_factory=Seen)

    def settle(self) -> None:
        for condition in self.ready:
            self.page.wait_for_function(condition)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def text(self, what: str) -> str:
        return str(self.page.inner_text(what))


@dataclass
class Server:
    command: Sequence[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    address: str = ""
    process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        port = str(urlsplit(self.address).port or 0)
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "200", **self.environment}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "echo_hf", *self.command, "--port", port],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            self.address = next((word for word in line.split() if word.startswith("http://")), "")
            if self.address:
                return self.address
        raise AssertionError("".join(said))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=SECONDS)
        return said


@contextmanager
def served(
    command: Sequence[str], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[Server]:
    pytest.importorskip("gradio", reason="the page needs gradio")
    server = Server(command, folder, environment or {})
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def visited(
    chrome: Any, server: Server, name: str, height: int = 900, **options: Any
) -> tuple[Any, Seen]:
    """The page of a person, in a window of their own, and what went between."""
    viewport, seen = {"width": 1280, "height": height}, Seen()
    context = chrome.new_context(viewport=viewport, **options)
    seen.watch(context)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{server.address}?{urlencode({'person': name})}")
    return page, seen


def until(said: Any, seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not said():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)
