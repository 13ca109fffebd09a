"""A run that is killed, or stopped, goes on: what was answered is kept and not asked for again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.pictures import PictureStore
from tests.systems.runs_for_tests import png, sample, sha, written

SCRIPT = Path(__file__).parent / "draw_over_http.py"
PATIENCE_S = 60
OUTPUTS, KILLS, CONCURRENCY = 200, 5, 4


class Answering:
    """A server that draws, and counts what it was asked for.

    Attributes:
        asked: Samples, in the order in which they were asked for.
        free: Whether answers go out; else they wait.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.changed, self.free = Condition(), Event()
        self.free.set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def until_asked(self, times: int) -> None:
        """Waits until it was asked so often."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.asked) >= times, PATIENCE_S)


def _handler(server: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 - the library's
            name = self.path.strip("/")
            with server.changed:
                server.asked.append(name)
                server.changed.notify_all()
            server.free.wait(PATIENCE_S)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png(name))

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@pytest.fixture
def answering() -> Iterator[Answering]:
    """A running server."""
    one = Answering()
    thread = Thread(target=one.server.serve_forever, args=(0.01,))
    thread.start()
    yield one
    one.free.set()
    one.server.shutdown()
    one.server.server_close()
    thread.join()


def config(folder: Path, samples: int) -> Path:
    """A config over a benchmark of so many samples."""
    release = written(folder, [sample(f"t{number}") for number in range(samples)])
    system = {
        "name": "mine",
        "adapter": "fetching",
        "developer": "Northlight",
        "status": "current",
        "limits": {"concurrency": CONCURRENCY},
    }
    text = yaml.safe_dump({"name": "run", "benchmark": str(release), "systems": [system]})
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


@contextmanager
def drawing(server: Answering, config: Path) -> Iterator[subprocess.Popen[str]]:
    """The command line at work, in a process group of its own."""
    command = [sys.executable, SCRIPT, server.url, "generate", config, "--runs", config.parent]
    with subprocess.Popen(
        [*map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_DATASETS_CACHE": str(config.parent / "cache")},
    ) as process:
        yield process


def answered(folder: Path) -> set[str]:
    """Samples whose outputs are written down in whole lines."""
    path = folder / "run" / "outputs" / "mine.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
    rows = [json.loads(line) for line in whole]
    return {row["sample_id"] for row in rows if row.get("outcome") == "ok"}


@pytest.mark.slow
def test_a_killed_run_asks_for_no_answer_twice(tmp_path: Path, answering: Answering) -> None:
    """Killed at five moments, none foreseen: in the end all is there, and little was asked twice."""
    chosen = random.Random(7)  # noqa: S311 - the same moments each time
    path = config(tmp_path, OUTPUTS)
    kept: set[str] = set()
    for _ in range(KILLS):
        before = len(answering.asked)
        with drawing(answering, path) as process:
            answering.until_asked(before + chosen.randint(1, 60))
            process.kill()
        assert kept.isdisjoint(answering.asked[before:])
        assert kept <= answered(tmp_path)
        kept = answered(tmp_path)
    before = len(answering.asked)
    with drawing(answering, path) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert f"{OUTPUTS - len(kept):,} ok" in said

    assert kept.isdisjoint(answering.asked[before:])
    times = Counter(answering.asked)
    assert set(times) == {f"t{number}" for number in range(OUTPUTS)}
    assert len(answering.asked) - OUTPUTS <= KILLS * CONCURRENCY
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"]: row["image"] for row in rows} == {
        name: sha(png(name)) for name in times
    }
    pictures = PictureStore(tmp_path / "run" / "pictures")
    assert all(pictures.open(row["image"]) for row in rows)


def test_ctrl_c_keeps_what_is_under_way(tmp_path: Path, answering: Answering) -> None:
    """No task is begun after it, the four under way are kept, and one line says how to go on."""
    path = config(tmp_path, 12)
    answering.free.clear()
    with drawing(answering, path) as process:
        answering.until_asked(CONCURRENCY)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = next(line for line in process.stdout if "stopping" in line)
        answering.free.set()
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert said == "mine: stopping; 4 under way are waited for and kept\n"
    assert errors == "echo-hf: stopped; the same command goes on where it was\n"
    assert process.returncode == 130
    assert len(answering.asked) == CONCURRENCY
    assert answered(tmp_path) == set(answering.asked)
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"] for row in rows} == set(answering.asked)
