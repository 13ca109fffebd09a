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

from tests.collect.platforms.crawling import PHASES, Serve, collected, config_of, crawled
from tests.collect.platforms.simulated import FIRST_DAY, NAME, World

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = {
    "name": "crawled",
    "target": {"name": "A", "developer": "B", "released": FIRST_DAY.date()},
    "posts": [{"source": NAME, "search": {"phases": PHASES}}],
    "engines": {"text": {"kind": "rules"}},
}


def started(folder: Path) -> subprocess.Popen[str]:
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG), "utf-8")
    path = os.pathsep.join([str(folder / "plugin"), str(ROOT)])
    command = [sys.executable, "-m", "echo_hf", "collect", "config.yaml"]
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "160"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True
    )


def test_a_crawl_that_is_killed_collects_everything_once(serve: Serve, tmp_path: Path) -> None:
    world, draw = World.of(500, seed=5), random.Random(5)
    service = serve(world, limit_each=13)
    leaves = [name for name, below in world.children.items() if not below]
    gone = [name for name in leaves if not world.posts[name]["terms"]]
    reached, ended = Event(), Event()
    number = draw.randrange(2, 9)

    def stop(requests: int) -> None:
        if requests == number:
            reached.set()
            ended.wait(60)

    service.before = stop
    process = started(tmp_path)
    assert reached.wait(60), process.communicate(timeout=60)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    ended.set()
    world.deleted.update(draw.sample(gone, 5))
    service.generation += 1
    root = tmp_path / "runs" / "crawled"
    crawled(root, config_of())
    found = set(collected(root))
    figures = json.loads((root / "crawl.json").read_text("utf-8"))[NAME]
    assert world.reachable() - world.deleted <= found <= world.reachable()
    # The kill, and the restart, which may have met a question with one page behind it.
    assert sum(times - 1 for times in service.answered.values()) <= 2
    assert figures["end"] == "nothing_left"
    assert figures["by_terms"] + figures["by_replies"] == len(found)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_is_one_line(serve: Serve, tmp_path: Path, sent: signal.Signals) -> None:
    world = World.of(300, seed=6)
    service = serve(world)
    process = started(tmp_path)
    service.before = lambda requests: process.send_signal(sent) if requests == 5 else None
    _, errors = process.communicate(timeout=120)
    assert errors == "echo-hf: stopped; the same command resumes where it stopped\n"
    assert process.returncode == 130
    service.before = lambda _: None
    again = started(tmp_path)
    shown, errors = again.communicate(timeout=120)
    found = set(collected(tmp_path / "runs" / "crawled"))
    assert (again.returncode, found) == (0, world.reachable()), errors
    assert f"→ {len(found):>9,} posts" in shown
