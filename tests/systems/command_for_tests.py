"""The command line, drawing with a system behind a server that counts what it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

import yaml

from tests.systems.runs_for_tests import png, sample, written

SCRIPT = Path(__file__).parent / "draw_over_http.py"
PATIENCE_S = 60
CONCURRENCY = 4


class Answering:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.changed, self.free = Condition(), Event()
        self.free.set()
        self.broken = False
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def until_asked(self, times: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= times, PATIENCE_S)


def _handler(server: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/")
            with server.changed:
                server.asked.append(name)
                server.changed.notify_all()
            server.free.wait(PATIENCE_S)
            self.send_response(500 if server.broken else 200)
            self.end_headers()
            with suppress(BrokenPipeError):  # whoever asked may have been stopped since
                if not server.broken:
                    self.wfile.write(png(name))

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def answering() -> Iterator[Answering]:
    one = Answering()
    thread = Thread(target=one.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield one
    finally:
        one.free.set()
        one.server.shutdown()
        one.server.server_close()
        thread.join()


def config(folder: Path, samples: int, **parameters: Any) -> Path:
    release = written(folder, [sample(f"t{number}") for number in range(samples)])
    system = {
        "name": "mine",
        "adapter": "fetching",
        "developer": "Northlight",
        "status": "current",
        "limits": {"concurrency": CONCURRENCY},
        "parameters": parameters,
    }
    text = yaml.safe_dump({"name": "run", "benchmark": str(release), "systems": [system]})
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


@contextmanager
def drawing(server: Answering, config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [SCRIPT, server.url, "generate", config, "--runs", config.parent, *options]
    with subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_DATASETS_CACHE": str(config.parent / "cache")},
    ) as process:
        yield process
