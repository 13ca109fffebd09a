"""The engine against a real server: what it sends, what responses mean, how it and servers fail."""

from __future__ import annotations

import base64
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra.http_errors import HttpResponse
from echo_hf.engines.base import Completion, Message, Request, Text, Usage, make_engine
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.engines.server import THREAD_NAME
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import fill
from tests.engines.conftest import KEY
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
from tests.engines.test_conformance import image
from tests.errors_for_tests import said_by
from tests.stages_for_tests import ROOT, Color, Guess, posts, request

Make = Callable[..., OpenAIEngine]
OPENAI = "https://api.openai.com/v1"


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD_NAME]


@pytest.mark.parametrize("how", ["closed", "left"])
def test_an_answer_waits_for_no_other_and_stopping_cancels_those(
    server: LoopbackServer, engine: Make, how: str
) -> None:
    """Five requests before it will never be answered; no thread is left, and it streams again."""
    server.behave = lambda asked: SILENCE if "silent" in asked.line else completion("red")
    asked_for = [*[request(f"silent {number}") for number in range(5)], request("quick")]
    with engine(concurrency=6) as asked:
        answers = asked.stream(asked_for)
        assert next(answers)[0] == 5
        server.wait_for(6)
        assert threads() == [THREAD_NAME]
        if how == "closed":
            answers.close()  # type: ignore[attr-defined]
    assert (threads(), list(answers)) == ([], [])
    one, two = asked.stream([request("a")]), asked.stream([request("b")])
    assert (next(one)[1].text, next(two)[1].text, list(one), list(two)) == ("red", "red", [], [])


def test_an_interruption_stops_at_once(server: LoopbackServer, engine: Make) -> None:
    main = threading.main_thread().ident
    assert main == threading.get_ident()

    def behave(asked: Asked) -> Answer:
        if asked.line == "silent 4":
            server.wait_for(5)
            signal.pthread_kill(main, signal.SIGINT)
        return SILENCE

    server.behave = behave
    with pytest.raises(KeyboardInterrupt):
        list(engine().stream(request(f"silent {number}") for number in range(5)))
    assert threads() == []


def test_the_key_is_sent_and_shown_nowhere(
    server: LoopbackServer,
    engine: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("MY_KEY", f"{KEY}\n")
    said = f"your header was Bearer {KEY}, that is {KEY[:20]}{KEY[20:]}"
    answers = {
        "good": completion("red"),
        "bad": fault(400, said),
        "down": fault(500, "x" * 470 + said),
        "half": Answer(b'{"error": "' + KEY.encode()),
        "inside": Answer({"error": {"message": said}}),
        "ended": completion("red", KEY),
    }
    server.behave = lambda asked: answers[asked.line]
    asked = engine(api_key_env="MY_KEY", max_attempts=2)
    with caplog.at_level("DEBUG"):
        done = list(asked.stream([request(line) for line in answers]))
    assert {one.headers["authorization"] for one in server.asked} == {f"Bearer {KEY}"}
    shown = [repr(done), repr(asked), repr(vars(asked)), repr(asked.signature()), caplog.text]
    assert len(caplog.records) > 10
    assert [text for text in shown if KEY[:16] in text or KEY[-16:] in text] == []


def test_the_signature_is_what_decides_an_answer(engine: Make) -> None:
    base = engine().signature()
    for same in (
        {"base_url": "http://gpu-node:8000/v1", "api_key_env": "MY_KEY"},
        {"concurrency": 2, "requests_per_minute": 5, "tokens_per_minute": 9.5},
        {"timeout_s": 3, "max_attempts": 1, "backoff_s": 0.5, "max_tokens_field": "max_tokens"},
    ):
        assert engine(**same).signature() == base
    # Images follow a rule only where one is asked for, and then that of the model's name.
    qwen = {"model": "Qwen/Qwen2.5-VL-7B-Instruct"}
    others: list[tuple[dict[str, object], tuple[int, int, int] | None]] = [
        (qwen, None),
        ({"base_url": "https://models.example.org/v1"}, None),
        *(({name: 1}, None) for name in ("temperature", "top_p", "seed")),
        ({"revision": "awq"}, None),
        ({"temperature": None}, None),
        ({"structured": "text"}, None),
        ({"extra_body": {"top_k": 1}}, None),
        ({"max_pixels": 500}, (1, 1, 500)),
        ({"family": "qwen3_vl"}, (32, 65_536, 16_777_216)),
        ({**qwen, "max_pixels": 1_003_520}, (28, 3136, 1_003_520)),
    ]
    made = [base]
    for other, pixels in others:
        made.append(engine(**other).signature())
        assert tuple((made[-1]["pixels"] or {}).values()) == (pixels or ())
    assert len({str(one) for one in made}) == len(made)


@pytest.mark.parametrize(
    ("variable", "environment"),
    [("OPENAI_API_KEY", {}), (None, {"OPENAI_API_KEY": KEY, "OPENAI_ADMIN_KEY": KEY})],
)
def test_a_local_server_is_asked_without_a_key(
    server: LoopbackServer,
    engine: Make,
    variable: str | None,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**environment, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}.items():
        monkeypatch.setenv(name, value)
    ((_, done),) = engine(api_key_env=variable).stream([request("red")])
    assert (done.text, "authorization" in server.asked[0].headers) == ("red", False)


# --- what is sent ---


def sent(asked: Request, **options: Any) -> dict[str, Any]:
    engine = OpenAIEngine(**{"model": "tiny", "base_url": "http://127.0.0.1:8000/v1", **options})
    before = engine.prepare(asked)
    structured = {"auto": "json_schema"}.get(engine.options.structured, engine.options.structured)
    body = engine.make_body(asked, before, structured)
    assert before == engine.prepare(asked)  # instructions that are told the shape are a copy
    return body


def test_texts_and_images_keep_their_order(tmp_path: Path) -> None:
    shown = image(tmp_path, 200)
    turns = (
        Message("system", (Text("Look."),)),
        Message("user", (Text("one"), shown, Text("two"))),
        Message("assistant", (Text("Hm."),)),
    )
    assert shown.file is not None
    url = "data:image/png;base64," + base64.b64encode(shown.file.read_bytes()).decode()
    parts: list[dict[str, Any]] = [{"type": "text", "text": one} for one in ("one", "two")]
    parts.insert(1, {"type": "image_url", "image_url": {"url": url}})
    assert sent(Request("t", turns, None, 5))["messages"] == [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "Hm."},
    ]


RAW = replace(request("red", max_tokens=7), answer=None)
PLAIN = {"model": "tiny", "messages": [{"role": "system", "content": "Name a colour."}]}
PLAIN["messages"].append({"role": "user", "content": "red"})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "repeat", "expected"),
    [
        ({}, 0, {"max_tokens": 7, "temperature": 0.0}),
        ({"base_url": OPENAI}, 0, {"max_completion_tokens": 7, "temperature": 0.0}),
        (
            {"temperature": None, "top_p": 0.5, "seed": 0, "max_tokens_field": "max_tokens"},
            2,
            {"max_tokens": 7, "top_p": 0.5, "seed": 2},
        ),
        ({"structured": "json_object"}, 0, {"max_tokens": 7, "temperature": 0.0}),
    ],
)
def test_only_what_was_chosen_is_sent(options: dict[str, Any], repeat: int, expected: Any) -> None:
    assert sent(replace(RAW, repeat=repeat), **options) == {**PLAIN, **expected}


@pytest.mark.parametrize(
    ("structured", "form"),
    [("json_schema", "json_schema"), ("json_object", "json_object"), ("text", None)],
)
def test_a_shape_is_enforced_or_told(structured: str, form: str | None) -> None:
    body = sent(request("red"), structured=structured)
    assert body.get("response_format", {}).get("type") == form
    in_words = structured != "json_schema"
    # Behind the instructions, also where there are none, and where they are in parts.
    alone = Request("t", (Message("user", (Text("red"),)),), Color, 5)
    parts = Request("t", (Message("system", (Text("a"), Text("b"))),), Color, 5)
    for asked in (request("red"), alone, parts):
        first, *others = sent(asked, structured=structured)["messages"]
        assert ("JSON Schema" in str(first), str(Color.__doc__) in str(first)) == (in_words,) * 2
        assert "JSON Schema" not in str(others)
    body = sent(replace(RAW, regex="[1-9]"), structured=structured)
    assert "response_format" not in body
    told = body["messages"][0]["content"]
    assert (told[:16], told[-6:]) == ("Name a colour.\n\n", "\n[1-9]")


# --- what a config may say ---


def told(**options: Any) -> str:
    return said_by(EngineError, make_engine, "openai", **options)


SECRET = "sk-0123456789abcdef"  # noqa: S105 - an invented one
PROMPT, ANSWER, CACHED = (f"usd_per_million_{n}_tokens" for n in ("prompt", "completion", "cached"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"modle": "m"}, "engine 'openai': unknown key 'modle'; did you mean 'model'? known: "),
        ({"concurrency": "8"}, "integer"),
        ({"structured": "yaml"}, "'auto', 'json_schema', 'json_object' or 'text'"),
        ({"extra_body": {"stream": True}}, "expected no stream, which the engine sets itself"),
        ({"extra_body": {"bias": float("nan")}}, "expected what JSON can hold"),
        *(({price: 1.0}, "together, or neither") for price in (PROMPT, ANSWER, CACHED)),
        ({PROMPT: 1.0, CACHED: 1.0}, "together, or neither"),
        ({"family": "qwen9"}, "engine 'openai': unknown family 'qwen9'"),
        ({"min_pixels": 5000, "max_pixels": 100}, "min_pixels 5000"),
        ({"api_key": SECRET}, "environment variable"),
        ({"api_key_env": SECRET}, "environment variable"),
        ({"extra_body": {"user": {"access_token": SECRET}}}, "environment variable"),
        ({"base_url": f"https://mira:{SECRET}@models.example.org/v1"}, "environment variable"),
        ({"base_url": f"https://models.example.org/v1?key={SECRET}"}, "environment variable"),
    ],
    ids=str,
)
def test_a_bad_option_is_one_line(options: dict[str, Any], expected: str) -> None:
    said = told(**{"model": "m", **options})
    assert expected in said
    assert SECRET not in said


# --- what responses mean ---

JUDGED = OpenAIEngine(model="tiny").read_response
USAGE = {"prompt_tokens": 9, "completion_tokens": 2}
NO = "the response is not a chat completion: "
CAUSE = "the answer ended with finish_reason"


@pytest.mark.parametrize(
    ("content", "reason", "more", "expected"),
    [
        ("red", "stop", {}, ("red", None, "stop")),
        ("", "stop", {"refusal": None}, ("", None, "stop")),
        ("re", "length", {}, ("re", None, "length")),
        (None, "length", {}, ("", None, "length")),
        ("\ud83d", "length", {}, ("\ud83d", None, "length")),
        (None, "stop", {"refusal": "I will not."}, (None, "I will not.", "refusal")),
        ("re", "content_filter", {}, (None, "content_filter", "refusal")),
        (None, "stop", {}, (None, "the answer has no content", "error")),
        ("red", "abort", {}, (None, f"{CAUSE} 'abort'", "error")),
        (["red"], "stop", {}, (None, f"{NO}its content is not text", "error")),
    ],
)
def test_endings_are_told_apart(content: Any, reason: Any, more: Any, expected: Any) -> None:
    choice = {"message": {"content": content, **more}, "finish_reason": reason}
    document = {"choices": [choice], "usage": USAGE}
    done = JUDGED(HttpResponse(200, {}, json.dumps(document)))
    assert (done.text, done.error, done.finish_reason) == expected
    assert done.usage == Usage(9, 2)


@pytest.mark.parametrize("status", [200, 204, 418])
@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "[]", "null", '{"choices": 3}', '{"choices": [null]}']
)
def test_no_response_breaks_it(status: int, text: str) -> None:
    assert not JUDGED(HttpResponse(status, {}, text)).is_answer


def test_cached_tokens_and_the_price_are_reported() -> None:
    """By hand: (100 * 1 + 20 * 10) / 1e6, unless the response says what it cost."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    usage |= {"prompt_tokens_details": {"cached_tokens": 40}}  # type: ignore[dict-item]
    priced = OpenAIEngine(model="tiny", **{PROMPT: 1.0, ANSWER: 10.0}).read_response
    for judged, said, usd in (
        (JUDGED, {}, None),
        (priced, {}, 0.0003),
        (priced, {"cost": 0.5}, 0.5),
    ):
        body = completion("red", usage={**usage, **said}).body
        done = judged(HttpResponse(200, {}, json.dumps(body)))
        assert (done.usage, done.cost_usd) == (Usage(100, 20, 40), usd)


# --- servers that fail ---

BILLED = Usage(10, 3, 0)
RED = Completion("red", usage=BILLED)


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
    "a cut answer": (completion('{"name', "length"), Completion('{"name', None, "length", BILLED)),
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


CONFIG = {
    "key": (fault(401, "no"), "put a valid key into environment variable 'OPENAI_API_KEY'"),
    "redirect": (
        fault(307, "no", headers={"Location": "/elsewhere"}),
        "base_url is '{url}', expected the server's own, for OpenAI's API mostly ending in /v1",
    ),
    "temperature": (
        fault(400, "no", param="temperature", code="unsupported_value"),
        "set `temperature: null`, which sends none",
    ),
}


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
    assert 0 < asked.requests.wait_seconds(asked.requests.reserve(0)) <= 30


def test_used_tokens_count_against_the_limit(server: LoopbackServer, engine: Make) -> None:
    """13 tokens at one a second: an estimate of 5 alone would let the next go after 4."""
    asked = engine(tokens_per_minute=60)
    assert ask(asked) == RED
    assert 6 < asked.tokens.wait_seconds(asked.tokens.reserve(0)) <= 12
    server.behave = lambda _: completion("red", usage=None)
    asked = engine(tokens_per_minute=1)
    assert ask(asked).text == "red"
    # 5 tokens at one a minute, less the second that may go early.
    assert 280 < asked.tokens.wait_seconds(asked.tokens.reserve(0)) <= 299


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
