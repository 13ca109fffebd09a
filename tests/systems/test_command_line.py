"""`echo-hf generate` in a process of its own: how a run that is stopped or killed goes on."""

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
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.images.store import ImageStore
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer
from tests.systems.drawing_for_tests import KEY, image_answer
from tests.systems.drawing_for_tests import config as system_config
from tests.systems.runs_for_tests import png, sample, sha, written

COMMAND = "from echo_hf.cli import main; main()"
STOPPED = "echo-hf: stopped; the same command resumes where it stopped\n"
CONCURRENCY, OUTPUTS, KILLS = 4, 200, 5


def config(folder: Path, server: LoopbackServer, samples: int) -> Path:
    release = written(folder, [sample(f"t{number}") for number in range(samples)])
    limits = {"concurrency": CONCURRENCY, "attempts": 1}
    system = system_config("openai_images", {"base_url": server.url}, limits=limits)
    systems = [system.model_dump(mode="json")]
    text = yaml.safe_dump({"name": "run", "benchmark": str(release), "systems": systems})
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


@contextmanager
def drawing(config: Path) -> Iterator[subprocess.Popen[str]]:
    options = ["generate", str(config), "--runs", str(config.parent)]
    cache = {"HF_DATASETS_CACHE": str(config.parent / "cache"), "OPENAI_API_KEY": KEY}
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **cache},
    ) as process:
        yield process


def drawn_for(asked: Asked) -> Answer:
    return image_answer(png(asked.body["prompt"])) if asked.body else Answer({"id": "tiny-image"})


def prompts(server: LoopbackServer, since: int = 0) -> list[str]:
    return [asked.body["prompt"] for asked in server.asked[since:] if asked.body]


def answered(folder: Path) -> set[str]:
    path = folder / "run" / "outputs" / "tiny.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
    rows = [json.loads(line) for line in whole]
    return {row["sample_id"] for row in rows if row.get("outcome") == "ok"}


@pytest.mark.slow
def test_a_killed_run_asks_for_no_answer_twice(tmp_path: Path, server: LoopbackServer) -> None:
    server.behave, chosen = drawn_for, random.Random(7)
    path, kept = config(tmp_path, server, OUTPUTS), set[str]()
    for _ in range(KILLS):
        before = len(server.asked)
        with drawing(path) as process:
            server.wait_for(before + chosen.randint(2, 60))
            process.kill()
        assert kept.isdisjoint(prompts(server, before))
        assert kept <= answered(tmp_path)
        kept = answered(tmp_path)
    before = len(server.asked)
    with drawing(path) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert f"{OUTPUTS - len(kept):,} ok" in said
    assert kept.isdisjoint(prompts(server, before))
    times = Counter(prompts(server))
    assert set(times) == {f"t{number}" for number in range(OUTPUTS)}
    assert times.total() - OUTPUTS <= KILLS * CONCURRENCY
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"]: row["image"] for row in rows} == {
        name: sha(png(name)) for name in times
    }
    images = ImageStore(tmp_path / "run" / "pictures")
    assert all(images.open(row["image"]) for row in rows)


def test_a_stop_while_a_system_is_looked_for_is_no_error_of_it(
    tmp_path: Path, server: LoopbackServer
) -> None:
    """As a cluster ends a job, before anything is drawn: exit code 130, and how to go on."""
    server.behave = lambda _: Answer(silent=True)
    with drawing(config(tmp_path, server, 3)) as process:
        server.wait_for(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (errors, process.returncode, prompts(server)) == (STOPPED, 130, [])
