"""A crawl by the command line that is killed again and again, on a platform that misbehaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
import yaml

from tests.collect.platforms.crawling import PHASES, Serve, collected
from tests.collect.platforms.simulated import FIRST_DAY, NAME, Service, World

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = {
    "name": "crawled",
    "target": {"name": "A", "developer": "B", "released": FIRST_DAY.date()},
    "posts": [{"source": NAME, "search": {"phases": PHASES}}],
    "engines": {"text": {"kind": "rules"}},
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(CONFIG), "utf-8")
    return path


def started(config: Path, *options: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(config.parent / "plugin"), str(ROOT)])
    command = [sys.executable, "-m", "echo_hf", "collect", str(config), *options]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160"}
    return subprocess.Popen(
        command,
        cwd=config.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_at(service: Service, number: int, config: Path) -> None:
    reached, gone = Event(), Event()

    def stop(requests: int) -> None:
        if requests == number:
            reached.set()
            gone.wait(60)

    service.before = stop
    process = started(config)
    assert reached.wait(60), process.communicate(timeout=60)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    gone.set()


def test_a_crawl_that_is_killed_collects_everything_once(
    serve: Serve, tmp_path: Path, config: Path
) -> None:
    world, draw = World.of(800, seed=5), random.Random(5)
    service = serve(world, limit_each=13)
    leaves = [name for name, below in world.children.items() if not below]
    gone = [name for name in leaves if not world.posts[name]["terms"]]
    kills = 2
    for _ in range(kills):
        kill_at(service, service.requests + draw.randrange(2, 9), config)
        world.deleted.update(draw.sample(gone, 5))
    service.generation += 1
    service.before = lambda _: None
    process = started(config)
    shown, errors = process.communicate(timeout=120)
    found = set(collected(tmp_path / "runs" / "crawled"))
    twice = sum(times - 1 for times in service.answered.values())
    figures = json.loads((tmp_path / "runs" / "crawled" / "crawl.json").read_text("utf-8"))

    assert process.returncode == 0, errors
    assert world.reachable() - world.deleted <= found <= world.reachable()
    assert twice <= kills + 1  # the restart may have met a question with one page behind it
    assert figures[NAME]["end"] == "nothing_left"
    assert figures[NAME]["by_terms"] + figures[NAME]["by_replies"] == len(found)
    assert f"→ {len(found):>9,} posts" in shown


@pytest.mark.parametrize(
    "sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_polite_stop_is_one_line(serve: Serve, config: Path, sent: signal.Signals) -> None:
    world = World.of(300, seed=6)
    service = serve(world)
    process = started(config)
    reached = Event()

    def stop(requests: int) -> None:
        if requests == 5:
            process.send_signal(sent)
            reached.set()

    service.before = stop
    _, errors = process.communicate(timeout=120)

    assert reached.is_set()
    assert errors == "echo-hf: stopped; the same command resumes where it stopped\n"
    assert process.returncode == 130
    service.before = lambda _: None
    again = started(config)
    _, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert set(collected(config.parent / "runs" / "crawled")) == world.reachable()
