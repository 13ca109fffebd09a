"""A simulated year: four models, turns that are killed, machines that are lost, people who merge.

`ECHO_HF_YEAR_TURNS=52` takes a turn a week in place of one a month.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import pytest
import yaml

from echo_hf.builder.refresh import REFRESH_LEDGER_FILE
from echo_hf.hub.leaderboard import build_board, read_scored
from tests.collect.platforms.simulated import registered
from tests.engines.openai.loopback_server import running
from tests.local_hub import LocalHub
from tests.local_hub_routes import Answer, Question
from tests.schedule.conftest import REPO
from tests.schedule.town import ADDRESS, HOST, NAME, Town, TownSource, date
from tests.schedule.year import EDITED, QUARTER, QUARTERS, Services, drawn, model_of
from tests.stages_for_tests import ROOT

TURNS = int(os.environ.get("ECHO_HF_YEAR_TURNS", "12"))
CONCURRENCY = 4
SEED = 7
READ = """
import json, sys
from datasets import load_dataset
for tag in sys.argv[2:]:
    rows = load_dataset(sys.argv[1], "text_to_image", revision=tag, split="test")
    said = ([one["post_url"] for one in row["community_feedback"]] for row in rows)
    kept = rows.select_columns(["id", "prompt", "post_urls"])
    print(json.dumps([tag, [{**row, "said": some} for row, some in zip(kept, said)]]))
"""


class WatchedHub(LocalHub):
    """A Hub that asks `before` whether to answer at all."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sent = 0
        super().__init__()

    def answer(self, question: Question) -> Answer:
        self.sent += len(question.body)
        if not self.services.before():
            raise ConnectionError
        return super().answer(question)


@dataclass
class Ending:
    """Ends a process when it makes its n-th request."""

    process: subprocess.Popen[str]
    number: int
    sent: signal.Signals
    met: int = 0
    lock: Lock = field(default_factory=Lock)

    def __call__(self) -> bool:
        with self.lock:
            self.met += 1
            if self.met < self.number:
                return True
            if self.met == self.number:
                self.process.send_signal(self.sent)
            return self.sent != signal.SIGKILL


class Ended(NamedTuple):
    """How an attempt was ended, and whether the next one was made on another machine."""

    how: str
    moved: bool


@dataclass
class Year:
    """What a year needs, and what came of it."""

    folder: Path
    hub: WatchedHub
    services: Services
    url: str
    draw: random.Random = field(default_factory=lambda: random.Random(SEED))
    machine: int = 0
    machines: int = 0
    requests: int = 60  # of the last turn that nobody ended
    seconds: float = 10.0
    ended: dict[int, Ended] = field(default_factory=dict)
    proposed: dict[int, frozenset[str]] = field(default_factory=dict)  # posts of each request
    known: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)  # that were asked for
    asked: int = 0  # days before this one

    @property
    def runs(self) -> Path:
        return self.folder / f"machine{self.machine}"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def config(self, quarter: int, budget_usd: float = 20) -> Path:
        """What a person keeps for a model: the search goes up to today."""
        model, released = model_of(quarter), date(quarter * QUARTER)
        today = date(self.services.today)
        key = {"base_url": self.url, "api_key_env": None}
        engine = {"kind": "openai", "model": "tiny", **key, "concurrency": CONCURRENCY}
        engine |= {f"usd_per_million_{one}_tokens": 1.0 for one in ("prompt", "completion")}
        phase = {"terms": [model], "window": "7d", "until": today}
        data = {
            "name": f"{model}-{released:%Y-%m}",
            "target": {"name": model, "developer": "Northlight", "released": released},
            "posts": [{"source": NAME, "search": {"phases": [phase]}}],
            "engines": {"reader": engine},
            "systems": [
                {
                    "name": name,
                    "adapter": "openai_images",
                    "model": name,
                    "developer": "Northlight",
                    "status": "current",
                    "parameters": key,
                    "limits": {"concurrency": CONCURRENCY},
                    "price": {"usd_per_image": 0.01, "as_of": released},
                }
                for name in ("amber", "birch")
            ],
            "judges": [
                {"name": "mira", "developer": "Southlight", "status": "current", "engine": engine}
            ],
            "schedule": {"repo_id": REPO, "budget_usd": budget_usd},
        }
        path = self.folder / f"{model}.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
        return path

    def start(self, config: Path) -> subprocess.Popen[str]:
        self.services.attempt += 1
        place = os.pathsep.join([str(self.folder / "plugin"), str(ROOT)])
        places = ["--state", self.state, "--runs", self.runs]
        own = {"PYTHONPATH": place, ADDRESS: self.url.removesuffix("/v1"), "COLUMNS": "160"}
        return subprocess.Popen(
            [sys.executable, "-m", "echo_hf", "schedule", config, "--once", *places],
            cwd=self.folder,
            env=self.hub.environment(self.folder / f"home{self.machine}", **own),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def move(self) -> bool:
        """Where the next attempt is made: mostly here, else on a new machine or an older one."""
        before, drawn = self.machine, self.draw.random()
        if drawn < 0.25:
            self.machines += 1
            self.machine = self.machines
        elif drawn < 0.35:
            self.machine = self.draw.randint(0, self.machines)
        return self.machine != before

    def killed(self, config: Path) -> None:
        """Ends a turn at a drawn moment: at a request to anybody, or after some time."""
        sent = self.draw.choice((signal.SIGKILL, signal.SIGTERM))
        process = self.start(config)
        seconds = self.draw.uniform(0.3, 1.0) * self.seconds
        if self.draw.random() < 0.6:
            ending = Ending(process, self.draw.randrange(1, self.requests + 1), sent)
            self.services.before, seconds = ending, 300.0
            moment = f"request {ending.number}"
        else:
            moment = f"{seconds:.1f} s"
        try:
            told = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            told = process.communicate(timeout=300)
        self.services.before = lambda: True
        code, moved = process.returncode, self.move()
        assert code in (0, 130, -sent), f"{sent.name} at {moment}: {told}"
        if code:  # else it was through before
            self.ended[self.services.attempt] = Ended(f"{sent.name} at {moment}", moved)

    def whole(self, config: Path, code: int = 0) -> str:
        ending = Ending(process := self.start(config), 10**9, signal.SIGKILL)
        self.services.before = ending
        began = time.monotonic()
        out, errors = process.communicate(timeout=300)
        assert process.returncode == code, f"{out}\n{errors}"
        if not code:
            self.requests, self.seconds = ending.met, time.monotonic() - began
        return errors

    def turn(self, quarter: int, is_last: bool) -> None:
        """Ended up to twice, then whole; then a person may merge what it proposed."""
        self.expect(quarter)
        if self.draw.random() < 0.2:
            said = self.whole(self.config(quarter, budget_usd=0.001), 2)
            assert "eval: the budget of $0.00 ended before all was asked" in said
        config = self.config(quarter)
        for _ in range(self.draw.choice((0, 1, 1, 2))):
            self.killed(config)
        self.whole(config)
        repository = self.hub.repositories[REPO]
        for number in repository.open_pulls:
            self.proposed.setdefault(number, frozenset(self.known))
        if is_last or self.draw.random() < 0.7:
            for number in list(repository.open_pulls):
                repository.merge(number)
        if is_last:
            self.whole(config)  # tags it
        self.move()

    def expect(self, quarter: int) -> None:
        """Which posts a run knows after a turn today: days and threads are asked for once."""
        posts, today, start = self.services.posts, self.services.today, quarter * QUARTER
        if self.asked <= start:
            self.known, self.forgotten, self.threads = set(), set(), set()
        there = [one for one in posts.values() if one.is_there(today)]
        days = range(self.asked, today)
        found = {one for one in there if one.day in days and one.model == model_of(quarter)}
        threads = {one.thread for one in found} - self.threads
        self.threads |= threads
        found |= {one for one in there if one.thread in threads}
        self.known |= {one.name for one in found} - self.forgotten
        gone = {one for one in self.known if not posts[one].is_there(today)}
        self.known -= gone
        self.forgotten |= gone
        self.asked = today

    def age(self, days: int) -> None:
        """Time passes: what is written down of when posts were asked about grows older."""
        self.services.today += days
        for path in self.folder.rglob(REFRESH_LEDGER_FILE):
            stamp = path.stat()
            with closing(sqlite3.connect(path)) as record, record:
                for post, at in record.execute("select post, at from checks").fetchall():
                    when = datetime.fromisoformat(at) - timedelta(days=days)
                    aged = when.isoformat(timespec="microseconds"), post
                    record.execute("update checks set at = ? where post = ?", aged)
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    def read(self) -> dict[str, list[dict[str, Any]]]:
        tags = sorted(self.hub.repositories[REPO].tags)
        done = subprocess.run(
            [sys.executable, "-c", READ, REPO, *tags],
            env=self.hub.environment(self.folder / "home"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(line) for line in done.stdout.splitlines())

    def paid_again(self) -> dict[int, int]:
        """Calls that were paid for once more, by the attempt whose answer was lost."""
        lost: dict[int, int] = {}
        for attempts in self.services.paid.values():
            for attempt in attempts[:-1]:
                lost[attempt] = lost.get(attempt, 0) + 1
        return lost


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    folder = tmp_path_factory.mktemp("year")
    registered(folder / "plugin", Town, TownSource)
    (folder / "state").mkdir()
    services = Services(drawn(random.Random(SEED)))
    with running() as server, WatchedHub(services) as hub:
        server.behave = services.behave
        one = Year(folder, hub, services, server.url)
        began = time.monotonic()
        each = TURNS // QUARTERS
        for quarter in range(QUARTERS):
            for number in range(1, each + 1):
                one.age(quarter * QUARTER + QUARTER * number // each - services.today)
                one.turn(quarter, number == each)
        minutes, calls = (time.monotonic() - began) / 60, sum(map(len, services.paid.values()))
        print(f"{TURNS} turns in {services.attempt} attempts on {one.machines + 1} machines")
        print(f"{minutes:.1f} minutes; {calls:,} calls of {services.received:,} bytes")
        print(f"{len(hub.asked):,} requests to the Hub of {hub.sent:,} bytes; calls made again:")
        print(*(f"{one.paid_again().get(at, 0)} {how}" for at, how in one.ended.items()), sep="\n")
        yield one


def benchmark(tag: str) -> str:
    return tag.partition(".")[0]


def _number(tag: str) -> int:
    return int(tag.partition(".")[2] or 0)


@pytest.mark.slow
def test_every_tag_holds_what_was_there_when_it_was_proposed(year: Year) -> None:
    """What is forgotten is in no later tag, even if its platform shows it again."""
    repository, posts = year.hub.repositories[REPO], year.services.posts
    proposed = {repository.pulls[number].merged: one for number, one in year.proposed.items()}
    tags = year.read()
    assert {benchmark(tag) for tag in tags} == {
        f"{model_of(one)}-{date(one * QUARTER):%Y-%m}" for one in range(QUARTERS)
    }
    ever: dict[str, set[str]] = {benchmark(tag): set() for tag in tags}
    left = set[str]()
    for tag, rows in sorted(tags.items(), key=lambda one: _number(one[0])):
        known = proposed[repository.tags[tag]]
        tasks = sorted(posts[one].prompt for one in known if not posts[one].parent)
        assert sorted(row["prompt"].removesuffix(EDITED) for row in rows) == tasks
        urls = {url for row in rows for url in (*row["post_urls"], *row["said"])}
        named = {url.removeprefix(f"{HOST}/") for url in urls}
        assert named == {one for one in known if posts[one].thread in known}
        left |= ever[benchmark(tag)] - named
        ever[benchmark(tag)] |= named
    assert left


@pytest.mark.slow
def test_ids_of_samples_never_move(year: Year) -> None:
    """From tag to tag of a benchmark a task keeps its id, whatever comes, goes or is edited."""
    ids: dict[tuple[str, str], str] = {}
    for tag, rows in year.read().items():
        for row in rows:
            task = benchmark(tag), row["post_urls"][0]
            assert ids.setdefault(task, row["id"]) == row["id"]
    assert len(set(ids.values())) == len(ids)


@pytest.mark.slow
def test_no_call_is_paid_for_twice_on_one_machine(year: Year) -> None:
    """What was under way when a turn was killed is asked again, and what died with a machine."""
    lost = year.paid_again()
    assert lost.keys() <= year.ended.keys()
    for attempt, count in lost.items():
        how, moved = year.ended[attempt]
        assert moved or count <= CONCURRENCY, how


@pytest.mark.slow
def test_the_leaderboard_has_a_board_for_each_model(year: Year) -> None:
    scored = read_scored(REPO, api=year.hub.api())
    assert [one.problem for one in scored if one.problem] == []
    assert {one.target for one in scored} == {model_of(one) for one in range(QUARTERS)}
    for one in scored:
        board = build_board(scored, one, "text_to_image", "corrected")
        assert {line.system for line in board["lines"]} == {"amber", "birch"}
