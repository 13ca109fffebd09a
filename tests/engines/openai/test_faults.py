"""Each way in which a server fails: what is sent again, what is reported, and what a run keeps."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from echo_hf.engines.base import Completion, Usage
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import fill
from tests.engines.openai.loopback_server import (
    LONGEST_WAIT_S,
    SILENCE,
    Answer,
    Asked,
    LoopbackServer,
    closed_port,
    completion,
    fault,
    running,
)
from tests.stages_for_tests import ROOT, Guess, posts, request

Make = Callable[..., OpenAIEngine]
PAID = Usage(10, 3, 0)
RED = Completion("red", usage=PAID)


def ask(engine: OpenAIEngine, line: str = "red") -> Completion:
    [(number, done)] = list(engine.stream([request(line)]))
    assert number == 0
    return done


def in_turn(server: LoopbackServer, *answers: Answer) -> None:
    rest = list(answers)
    server.behave = lambda _: rest.pop(0)


# A passing failure, and what is reported when it does not pass.
PASSING = {
    "429": (fault(429, "slow down", headers={"Retry-After": "0"}), "status 429: slow down"),
    "502": (Answer(b"<html>Bad  gateway</html>", 502), "status 502: <html>Bad gateway</html>"),
    "error inside": (fault(200, "provider is down", code=502), "status 502: provider is down"),
    "error in a choice": (
        Answer({"choices": [{"error": {"message": "is down", "code": 503}, "message": {}}]}),
        "status 503: is down",
    ),
    "cut before": (Answer(completion("red").body, cut_after=0), "the connection to '{}' failed: "),
    "cut within": (Answer(completion("red").body, cut_after=30), "the connection to '{}' failed: "),
}


@pytest.mark.parametrize("kind", PASSING)
def test_what_may_pass_is_sent_again(server: LoopbackServer, engine: Make, kind: str) -> None:
    answer, error = PASSING[kind]
    in_turn(server, answer, completion("red"), answer, answer)
    assert ask(engine(max_attempts=2)) == RED
    done = ask(engine(max_attempts=2))
    assert (done.text, done.finish_reason, len(server.asked)) == (None, "error", 4)
    assert (done.error or "").startswith(error.format(server.url))


def test_a_server_that_is_not_there_stops_the_stream(engine: Make) -> None:
    asked = engine(base_url=closed_port(), max_attempts=2)
    with pytest.raises(EngineError) as caught:
        list(asked.stream(map(request, ("red", "green", "blue"))))
    assert str(caught.value).startswith(
        f"the connection to '{asked.options.base_url}' failed: [Errno {errno.ECONNREFUSED}] "
    )
    assert str(caught.value).endswith(
        ": start the server, or fix base_url; the same command resumes from here"
    )


def test_a_server_that_went_away_is_the_requests_own_error(engine: Make) -> None:
    with running() as server:
        asked = engine(base_url=server.url, max_attempts=1, concurrency=1)
        answers = iter(asked.stream(map(request, ("red", "green"))))
        assert next(answers) == (0, RED)
    number, lost = next(answers)
    assert (number, (lost.error or "").startswith(f"the connection to '{server.url}' f")) == (1, 1)


@pytest.mark.parametrize(
    "answer", [SILENCE, Answer(headers={"Content-Length": "1000000"}, trickles=True)]
)
def test_an_endless_wait_ends(server: LoopbackServer, engine: Make, answer: Answer) -> None:
    server.behave = lambda _: answer
    done = ask(engine(timeout_s=0.2, max_attempts=1))
    assert done == Completion(None, "no answer within 0.2 s", "error")


def failed(error: str) -> Completion:
    return Completion(None, error, "error")


# Failures of one answer, which the same request would not mend at once.
FINAL: dict[str, tuple[Answer, Completion]] = {
    "half a JSON": (
        Answer(b'{"choices": [{"mess'),
        failed(
            "the response is not a whole JSON document: Unterminated string starting at: line 1 "
            "column 15 (char 14)"
        ),
    ),
    "a refusal": (
        completion(None, message={"refusal": "I cannot help with that."}),
        Completion(None, "I cannot help with that.", "refusal", PAID),
    ),
    "a policy": (
        fault(400, "Your request was rejected", code="content_policy_violation"),
        Completion(None, "Your request was rejected", "refusal"),
    ),
    "a cut answer": (completion('{"name', "length"), Completion('{"name', None, "length", PAID)),
    "a bad request": (fault(400, "image is too large"), failed("status 400: image is too large")),
    "too long a wait": (
        fault(429, "quota of today is used up", headers={"Retry-After": "86400"}),
        failed("status 429: quota of today is used up"),
    ),
    "a long error": (
        fault(400, "no " * 5000),
        failed(("status 400: " + "no " * 170)[:497] + "..."),
    ),
    "a number": (
        fault(400, "broken, mention req_0f9a8b7c6d5e"),
        failed("status 400: broken, mention (id)"),
    ),
}


@pytest.mark.parametrize("kind", FINAL)
def test_what_would_fail_again_is_not_sent_again(
    server: LoopbackServer, engine: Make, kind: str
) -> None:
    answer, expected = FINAL[kind]
    server.behave = lambda _: answer
    assert (ask(engine()), len(server.asked)) == (expected, 1)


ADDRESS = "base_url is '{url}', expected the server's own, for OpenAI's API mostly ending in /v1"
MODEL = "model is 'tiny', expected one that the server has and the key may use"
CREDIT = "the account has no credit left; the same command resumes from here"
UNKNOWN = {"message": "The model `tiny` does not exist.", "type": "NotFoundError", "code": 404}
CONFIG = {
    "key": (fault(401, "no"), "put a valid key into environment variable 'OPENAI_API_KEY'"),
    "credit": (fault(402, "no"), CREDIT),
    "right": (fault(403, "no"), "the key may not use model 'tiny'; name another key or model"),
    "redirect": (fault(307, "no", headers={"Location": "/elsewhere"}), ADDRESS),
    "address": (fault(404, "no"), ADDRESS),
    "model": (Answer({"error": UNKNOWN}, 404), MODEL),
    "temperature": (
        fault(400, "no", param="temperature", code="unsupported_value"),
        "set `temperature: null`, which sends none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIG)
def test_what_no_request_survives_stops_the_stream(
    server: LoopbackServer, engine: Make, kind: str
) -> None:
    answer, advice = CONFIG[kind]
    server.behave = lambda _: answer
    said = answer.body["error"]["message"]
    with pytest.raises(EngineError) as caught:
        ask(engine())
    expected = f"'127.0.0.1' answered with status {answer.status}, {said!r}: "
    assert str(caught.value) == expected + advice.format(url=server.url)
    assert [asked.path for asked in server.asked] == ["/v1/chat/completions"]


# How servers say that they cannot enforce a schema.
NO_SCHEMA = [
    fault(400, "This response_format type is unavailable now", type="invalid_request_error"),
    fault(400, "Invalid parameter", param="response_format"),
    Answer(
        {"detail": [{"loc": ["body", "response_format", "type"], "msg": "Input should be"}]}, 422
    ),
]


@pytest.mark.parametrize("refusal", NO_SCHEMA)
def test_a_server_without_schemas_is_asked_in_words(
    server: LoopbackServer, engine: Make, refusal: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    server.behave = lambda asked: refusal if "response_format" in asked.body else completion("red")
    asked = engine(concurrency=1, max_attempts=1)
    done = [*asked.stream([request("one"), request("two")]), *asked.stream([request("three")])]
    assert [one.text for _, one in done] == ["red"] * 3
    assert server.lines() == ["one", "one", "two", "three"]
    assert ["response_format" in one.body for one in server.asked] == [True, False, False, False]
    system = server.asked[1].body["messages"][0]
    assert system["content"].startswith("Name a colour.\n\nAnswer with one JSON object")
    assert '"maxLength":20' in system["content"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    server.asked.clear()  # who asks for enforced schemas gets an error rather than something else
    assert ask(engine(structured="json_schema")).finish_reason == "error"
    assert len(server.asked) == 1


def test_what_fails_in_both_ways_teaches_nothing(server: LoopbackServer, engine: Make) -> None:
    bad = fault(400, "grammar and picture are broken")
    server.behave = lambda asked: bad if asked.line == "bad" else completion("red")
    answers = dict(engine(concurrency=1).stream([request("bad"), request("good")]))
    assert answers == {0: failed("status 400: grammar and picture are broken"), 1: RED}
    assert ["response_format" in one.body for one in server.asked] == [True, False, True]


def test_a_wait_holds_for_all_requests(server: LoopbackServer, engine: Make) -> None:
    """After a single attempt, only the limits can hold the next one back."""
    asked = engine(concurrency=1, max_attempts=1)
    server.behave = lambda _: fault(429, "slow down", headers={"Retry-After": "30"})
    assert ask(asked).finish_reason == "error"
    assert 0 < asked.requests.left_s(asked.requests.reserve(0)) <= 30


def test_used_tokens_count_against_the_limit(server: LoopbackServer, engine: Make) -> None:
    """13 tokens at one a second: an estimate of 5 alone would let the next go after 4."""
    asked = engine(tokens_per_minute=60)
    assert ask(asked) == RED
    assert 6 < asked.tokens.left_s(asked.tokens.reserve(0)) <= 12
    server.behave = lambda _: completion("red", usage=None)
    asked = engine(tokens_per_minute=1)
    assert ask(asked).text == "red"
    # 5 tokens at one a minute, less the second that may go early.
    assert 280 < asked.tokens.left_s(asked.tokens.reserve(0)) <= 299


def test_cached_tokens_and_the_price_are_reported(server: LoopbackServer, engine: Make) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    usage |= {"prompt_tokens_details": {"cached_tokens": 40}}  # type: ignore[dict-item]
    whole = completion("red", usage=usage)
    in_turn(server, whole, whole, completion("red", usage={**usage, "cost": 0.5}))
    priced = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 10}
    done = [ask(engine(**options)) for options in ({}, priced, priced)]
    assert {one.usage for one in done} == {Usage(100, 20, 40)}
    # (100 * 1 + 20 * 10) / 1e6
    assert [one.cost_usd for one in done] == [None, 0.0003, 0.5]


# --- a stage and a store ---

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
        return completion(json.dumps({"name": "red", "number": 3}))

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
