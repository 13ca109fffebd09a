"""A stage, a store and a server with every fault there is: nothing is lost, nothing asked twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from echo_hf.engines.base import Usage
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, StoredAnswers
from echo_hf.pipeline.batch_inference import fill
from echo_hf.reasons import Failed
from tests.engines.openai.loopback_server import (
    LONGEST_WAIT_S,
    SILENCE,
    Answer,
    Asked,
    LoopbackServer,
    completion,
    fault,
)
from tests.stages_for_tests import ROOT, Color, Guess, posts, request

Make = Callable[..., OpenAIEngine]

GOOD = json.dumps({"name": "red", "number": 3})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()


ALWAYS = {
    "down": fault(500, "broken"),
    "busy": fault(429, "slow down", headers={"Retry-After": "0"}),
    "cut": Answer(completion(GOOD).body, cut_after=40),
    "half": Answer(json.dumps(completion(GOOD).body).encode()[:60]),
    "refuse": completion(None, message={"refusal": "I will not."}),
    "policy": fault(400, "flagged", code="content_policy_violation"),
    "shape": completion('{"name": 5}'),
    "prose": completion("A colour? Red!"),
    "short": completion(GOOD[:9], "length"),
    "good": completion(GOOD),
}
# Reason in the end, and requests in a first and a second fill, at two attempts each: an engine's
# failure has two attempts in each of its two tries, a refusal is final until the next run, an
# unreadable answer has two tries for ever.
EXPECTED: dict[str, tuple[Failed | None, int, int]] = {
    "good": (None, 1, 0),
    "good_later": (None, 2, 0),
    "busy_once": (None, 2, 0),
    "cut_once": (None, 2, 0),
    "half_once": (None, 2, 0),
    "down": (Failed.ENGINE_ERROR, 4, 4),
    "busy": (Failed.ENGINE_ERROR, 4, 4),
    "cut": (Failed.ENGINE_ERROR, 4, 4),
    "half": (Failed.ENGINE_ERROR, 2, 2),
    "refuse": (Failed.REFUSED, 1, 1),
    "policy": (Failed.REFUSED, 1, 1),
    "shape": (Failed.OFF_SCHEMA, 2, 0),
    "prose": (Failed.UNREADABLE, 2, 0),
    "short": (Failed.CUT, 2, 2),
}


def _moody(server: LoopbackServer) -> None:
    def behave(asked: Asked) -> Answer:
        kind, _, when = asked.line.partition("_")
        if when == "later":
            return ALWAYS["down"] if server.lines().count(asked.line) == 1 else ALWAYS["good"]
        if when == "once" and server.lines().count(asked.line) > 1:
            return ALWAYS["good"]
        return ALWAYS[kind]

    server.behave = behave


def test_every_row_has_an_answer_or_a_named_failure(
    server: LoopbackServer, engine: Make, store: Store
) -> None:
    """The counts add up, and a second run asks for what is missing and for nothing else."""
    _moody(server)
    asked = engine(max_attempts=2, concurrency=4)
    lines = list(EXPECTED)
    stats = fill(Guess(), posts(*lines), asked, store)
    answers = StoredAnswers(store, asked.signature()).read([request(line) for line in lines])
    reasons = {
        line: answer.reason if isinstance(answer, Failure) else None
        for line, answer in zip(lines, answers, strict=True)
    }
    assert reasons == {line: reason for line, (reason, _, _) in EXPECTED.items()}
    good = [answer for answer in answers if not isinstance(answer, Failure)]
    assert good == [Color(name="red", number=3)] * 5
    failures = Counter(str(reason) for reason, _, _ in EXPECTED.values() if reason)
    assert stats.failures == dict(sorted(failures.items()))
    assert stats.requests == len(lines)
    assert Counter(server.lines()) == {line: first for line, (_, first, _) in EXPECTED.items()}

    server.asked.clear()
    again = fill(Guess(), posts(*lines), asked, store)
    seconds = {line: second for line, (_, _, second) in EXPECTED.items() if second}
    assert Counter(server.lines()) == seconds
    assert again.store_hits == len(lines) - len(seconds)


KILLED = """
import sys
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.pipeline.batch_inference import fill
from echo_hf.pipeline.answer_store import Store
from tests.stages_for_tests import Guess, posts
url, file, *lines = sys.argv[1:]
engine = OpenAIEngine(model="tiny", base_url=url, concurrency=4)
fill(Guess(), posts(*lines), engine, Store(file))
"""


def test_of_a_killed_process_only_what_was_under_way_is_asked_twice(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """After kill -9 that is `concurrency` requests, here 4 of 20, and no other."""
    lines, held = [f"line {number}" for number in range(20)], threading.Event()

    def behave(asked: Asked) -> Answer:
        if server.lines().index(asked.line) >= 8:
            held.wait(LONGEST_WAIT_S)
        return ALWAYS["good"]

    server.behave = behave
    file = tmp_path / "killed.sqlite"
    command = [sys.executable, "-c", KILLED, server.url, str(file), *lines]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as one:
        server.wait_for(8 + 4)
        one.kill()
    held.set()
    with closing(Store(file)) as store:
        fill(Guess(), posts(*lines), engine(concurrency=4), store)
    assert sorted(Counter(server.lines()).values()) == [1] * 16 + [2] * 4


def test_a_silent_server_costs_time_and_no_more(
    server: LoopbackServer, engine: Make, store: Store
) -> None:
    """A row that is never answered has a named failure after two tries."""
    server.behave = lambda _: SILENCE
    asked = engine(max_attempts=1, timeout_s=0.2)
    stats = fill(Guess(), posts("silent"), asked, store)
    assert (stats.calls, stats.failures) == (2, {"engine_error": 1})
    answers = StoredAnswers(store, asked.signature()).read([request("silent")])
    assert [getattr(one, "detail", None) for one in answers] == ["no answer within 0.2 s"]


def test_tokens_of_every_paid_call_are_counted(
    server: LoopbackServer, engine: Make, store: Store
) -> None:
    """Refused and cut answers are paid for; what the server failed at is not."""
    _moody(server)
    priced = {"usd_per_million_prompt_tokens": 100, "usd_per_million_completion_tokens": 1000}
    stats = fill(Guess(), posts("good", "refuse", "short", "down"), engine(**priced), store)
    # One call, one, two with twice the room, and two that failed: 10 and 3 tokens for each paid.
    assert (stats.calls, stats.usage) == (6, Usage(40, 12, 0))
    assert stats.cost_usd == pytest.approx(4 * (10 * 100 + 3 * 1000) / 1e6)


def test_a_dead_server_stops_the_run(engine: Make, server: LoopbackServer, store: Store) -> None:
    """After 50 equal failures, though each names another call; what was answered stays."""
    server.behave = lambda asked: (
        ALWAYS["good"] if asked.line == "good" else fault(500, f"req_{len(server.asked):020}")
    )
    rows = posts("good", *[f"colour {number}" for number in range(80)])
    with pytest.raises(EngineError, match="gave 50 equal errors in a row and no answer"):
        fill(Guess(), rows, engine(max_attempts=1, concurrency=2), store)
    assert len(store) == 1


def test_a_run_goes_on_after_its_key_was_mended(
    engine: Make, server: LoopbackServer, store: Store
) -> None:
    """A key that stops working ends the run at once, and loses no answer."""
    server.behave = lambda _: completion(GOOD) if len(server.asked) <= 3 else fault(401, "expired")
    rows = posts(*[f"colour {number}" for number in range(9)])
    with pytest.raises(EngineError, match="put a valid key into"):
        fill(Guess(), rows, engine(concurrency=1), store)
    assert len(store) == 3
    server.behave = lambda _: completion(GOOD)
    stats = fill(Guess(), rows, engine(concurrency=1), store)
    assert (stats.calls, stats.store_hits, stats.failures) == (6, 3, {})
