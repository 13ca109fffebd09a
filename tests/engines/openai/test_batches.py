"""Batches against a real server with OpenAI's files and batches: sent once, whatever happens."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines import batch_api, batch_rows
from echo_hf.engines.base import Completion, Message, Request, Text, make_engine
from echo_hf.engines.batch_api import parse_batch
from echo_hf.engines.batch_rows import AnswerRows
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import fill
from echo_hf.pipeline.stage_runner import run_stage
from tests.engines.conftest import KEY
from tests.engines.openai.batch_server import (
    BatchServer,
    Lines,
    answer_line,
    chat,
    last_text,
    never_run,
    running_batches,
)
from tests.stages_for_tests import Guess, posts, request

Rows = list[dict[str, Any]]
FAST: dict[str, Any] = {"poll_s": 0.01}
WORDS = ["red", "blue", "green"]


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with running_batches() as loopback:
        yield loopback


def make(server: BatchServer, **options: Any) -> OpenAIEngine:
    usual = {"model": "tiny", "base_url": server.url, "backoff_s": 0.001, "batch": FAST}
    return OpenAIEngine(**{**usual, **options})


def ask(engine: OpenAIEngine, *texts: str) -> list[Completion]:
    with engine:
        found = dict(engine.stream([request(text) for text in texts]))
    return [found[number] for number in range(len(texts))]


def texts(completions: list[Completion]) -> list[str | None]:
    return [completion.text for completion in completions]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({}, [7]),
        ({"max_rows": 3}, [3, 3, 1]),
        # A row of these has 600 bytes and a few.
        ({"max_megabytes": 0.0015}, [2, 2, 2, 1]),
    ],
    ids=str,
)
def test_requests_go_in_files_within_limits_and_nothing_stays_at_the_provider(
    server: BatchServer, limits: dict[str, Any], sizes: list[int]
) -> None:
    asked = [f"question {number}" for number in range(7)]
    assert texts(ask(make(server, batch={**FAST, **limits}), *asked)) == asked
    assert [len(rows) for rows in server.rows.values()] == sizes
    assert server.files == {}
    assert max(server.sent().values()) == 1


def test_a_batch_asks_what_single_requests_ask(server: BatchServer) -> None:
    """Bodies are equal, and so are signatures: turning batches on asks nothing again."""
    bodies = list[Any]()
    server.answer = lambda body: (bodies.append(body), (200, chat(last_text(body))))[1]
    options: dict[str, Any] = {"seed": 3, "top_p": 0.5, "extra_body": {"user": "me"}}
    single, batched = make(server, batch=False, **options), make(server, **options)
    one, two = ask(single, "a"), ask(batched, "a")
    assert (one, bodies[0]) == (two, bodies[1])
    assert single.signature() == batched.signature()


def test_neither_posts_nor_the_key_stand_in_metadata_names_or_logs(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG, "echo_hf")
    server.answer = lambda _: (400, {"error": {"message": f"bad {KEY}"}})
    (refused,) = ask(make(server), "what somebody posted")
    known = json.dumps([list(server.batches.values()), list(server.names.values())])
    for secret in ("somebody", "posted", KEY):
        assert secret not in known + caplog.text + str(refused.error)
    assert refused.error == "status 400: bad (key)"


@pytest.mark.parametrize("place", [("POST", "batches"), ("GET", "content"), ("DELETE", "file-1")])
def test_a_key_that_the_server_repeats_stands_in_no_error_and_no_log(
    server: BatchServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: tuple[str, str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG, "echo_hf")
    fault = json.dumps({"error": {"message": f"no room for {KEY}"}}).encode()
    server.disturb = lambda method, path: (
        (503, fault) if (method, path.split("/")[-1]) == place else None
    )
    error = ""
    try:
        ask(make(server, max_attempts=2), "a")
    except EngineError as raised:
        error = str(raised)
    assert "no room for (key)" in error + caplog.text
    assert KEY not in error + caplog.text


def test_a_provider_s_reason_may_repeat_the_key(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def end(one: BatchServer, _: Rows) -> tuple[str, Lines, Lines]:
        batch = list(one.batches.values())[-1]
        batch["errors"] = {"data": [{"code": ["x"], "message": f"bad {KEY}"}]}
        return "failed", [], []

    server.end = end
    (failed,) = ask(make(server), "a")
    assert failed.error == "batch failed: bad (key)"


def test_answers_count_where_only_the_file_of_errors_is_gone(server: BatchServer) -> None:
    server.end = fail_some
    calls = iter(range(10**6))

    def disturb(_: str, path: str) -> tuple[int, bytes] | None:
        # Of each two contents the second is that of the errors.
        return (404, b"{}") if path.endswith("/content") and next(calls) % 2 else None

    server.disturb = disturb
    found = ask(make(server), "a", "b", "c")
    assert texts(found)[1:] == ["ok", "ok"]
    assert "without an answer" in str(found[0].error)


def test_repetitions_of_a_question_are_rows_of_their_own(server: BatchServer) -> None:
    first = request("again")
    second = Request(**{name: getattr(first, name) for name in first.__slots__} | {"repeat": 1})
    with make(server) as engine:
        found = dict(engine.stream([first, second, first]))
    assert [found[number].text for number in range(3)] == ["again"] * 3
    assert len(server.sent()) == 2


def expire_some(server: BatchServer, rows: Rows) -> tuple[str, Lines, Lines]:
    done = [answer_line(row, *server.answer(row["body"])) for row in rows[:-2]]
    return "expired", done, [never_run(row) for row in rows[-2:]]


def cancel_all(*_: object) -> tuple[str, Lines, Lines]:
    return "cancelled", [], []


def fail_some(_: BatchServer, rows: Rows) -> tuple[str, Lines, Lines]:
    error = {"error": {"message": "slow down"}}
    bad = [answer_line(row, 429, error) for row in rows[:1]]
    return "completed", [answer_line(row, 200, chat("ok")) for row in rows[1:]], bad


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (expire_some, ["a", "was expired without an answer", "was expired without an answer"]),
        (cancel_all, ["was cancelled without an answer"] * 3),
        (fail_some, ["status 429: slow down", "ok", "ok"]),
        (lambda *_: ("failed", [], []), ["batch failed: no reason is given"] * 3),
        (lambda *_: ("completed", [], []), ["was completed without an answer"] * 3),
    ],
)
def test_what_came_counts_and_the_rest_are_errors_by_row(
    server: BatchServer, end: Any, expected: list[str]
) -> None:
    server.end = end
    found = ask(make(server), "a", "b", "c")
    for completion, words in zip(found, expected, strict=True):
        assert words in (completion.error or completion.text or "")
    assert server.files == {}


def test_rows_that_did_not_run_are_asked_once_more_in_another_batch(
    server: BatchServer, tmp_path: Path
) -> None:
    ends = iter([expire_some])

    def end(one: BatchServer, rows: Rows) -> tuple[str, Lines, Lines]:
        good = [answer_line(row, *one.answer(row["body"])) for row in rows]
        return next(ends, lambda *_: ("completed", good, []))(one, rows)

    server.end, server.answer = end, answer_color
    with closing(Store(tmp_path / "answers.sqlite")) as store, make(server) as engine:
        fill(Guess(), posts("red", "blue", "green"), engine, store)
        table = run_stage(Guess(), posts("red", "blue", "green"), engine=engine, store=store)
    assert [len(rows) for rows in server.rows.values()] == [3, 2]
    assert len(table.dataset) == 3


def spoil(
    change: Callable[[Lines], Lines],
) -> Callable[[BatchServer, Rows], tuple[str, Lines, Lines]]:
    def end(_: BatchServer, rows: Rows) -> tuple[str, Lines, Lines]:
        good = [answer_line(row, 200, chat(last_text(row["body"]))) for row in rows]
        return "completed", change(good), []

    return end


def forge(line: bytes, **changes: Any) -> bytes:
    return json.dumps({**json.loads(line), **changes}).encode()


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda lines: [*lines, forge(lines[0], custom_id="f" * 40)], "1 unknown"),
        (lambda lines: [forge(lines[0], custom_id=7), *lines], "1 unreadable"),
        (lambda lines: [*lines, lines[0], lines[1]], "2 twice"),
        (lambda lines: [b"{", b"[" * 100_000, b"[]", b"\xff\xfe", *lines, b""], "4 unreadable"),
        (lambda lines: [b'{"custom_id": "' + b"x" * 5000 + b'"}', *lines], "1 too long"),
        (lambda lines: [b"9" * 40_000, *lines], "1 too long"),
    ],
)
def test_rows_that_nobody_asked_for_are_refused_and_counted(
    server: BatchServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Any,
    refused: str,
) -> None:
    if "too long" in refused:
        monkeypatch.setattr(batch_rows, "MAX_LINE_BYTES", 2000)
    server.end = spoil(change)
    assert texts(ask(make(server), "a", "b")) == ["a", "b"]
    assert refused in caplog.text
    assert server.files == {}


def test_of_rows_that_come_twice_the_first_counts(server: BatchServer) -> None:
    other = json.loads(answer_line({"custom_id": ""}, 200, chat("forged")))["response"]
    server.end = spoil(lambda lines: [*lines, forge(lines[0], response=other)])
    assert texts(ask(make(server), "a")) == ["a"]


def test_a_file_of_answers_is_read_up_to_a_limit(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_api.BatchApi.download, "__defaults__", (1000,))
    server.end = spoil(lambda lines: [*lines, b"x" * 100_000])
    with pytest.raises(EngineError, match="has more than 1,000 bytes"):
        ask(make(server), "a")


@pytest.mark.parametrize("body", [b"[]", b"null", b'{"id": "../../x"}', b"{", b"[" * 100_000])
def test_an_answer_that_is_no_batch_ends_in_one_line(server: BatchServer, body: bytes) -> None:
    server.disturb = lambda method, path: (
        (200, body) if (method, path) == ("POST", "/v1/batches") else None
    )
    with pytest.raises(EngineError) as raised:
        ask(make(server, max_attempts=2), "a")
    assert "\n" not in str(raised.value)
    assert "the same command goes on from here" in str(raised.value)


def test_a_status_that_never_changes_has_a_longest_wait(server: BatchServer) -> None:
    server.looks = 10**6
    with pytest.raises(EngineError, match=r"is still 'in_progress' after 1e-05 hours") as raised:
        ask(make(server, batch={**FAST, "max_wait_hours": 0.00001}), "a")
    assert "the same command waits on" in str(raised.value)
    assert len(server.files) == 1
    server.looks = 0
    assert texts(ask(make(server), "a")) == ["a"]
    assert (max(server.sent().values()), server.files) == (1, {})


def test_files_that_are_late_are_waited_for(server: BatchServer) -> None:
    """The content of the answers is not there at the first two looks."""
    missing = iter([1, 2])
    server.disturb = lambda _, path: (
        (404, b"{}") if path.endswith("/content") and next(missing, None) else None
    )
    assert texts(ask(make(server), "a")) == ["a"]


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_a_deletion_that_fails_is_a_notice(
    server: BatchServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    server.disturb = lambda method, _: (status, b"{}") if method == "DELETE" else None
    with make(server, max_attempts=2) as engine:
        assert [c.text for _, c in engine.stream([request("a")])] == ["a"]
        assert caplog.text.count("because deleting it failed") == 2
        # What was read stays read.
        assert [c.text for _, c in engine.stream([request("a")])] == ["a"]
    assert list(server.sent().values()) == [2]


@pytest.mark.parametrize("path", ["/v1/files", "/v1/batches"])
def test_a_server_without_batches_is_named(server: BatchServer, path: str) -> None:
    server.disturb = lambda _, asked: (404, b'{"detail": "Not Found"}') if asked == path else None
    with pytest.raises(EngineError, match="without `batch` each request is sent by itself"):
        ask(make(server), "a")
    assert server.batches == {}


def test_a_bad_key_ends_at_once(server: BatchServer) -> None:
    server.disturb = lambda *_: (401, b'{"error": {"message": "no such key"}}')
    with pytest.raises(EngineError, match="put a valid key into"):
        ask(make(server), "a")


def test_calls_that_fail_for_a_while_are_made_again(server: BatchServer) -> None:
    """A third of all calls fails, some after they were done, and nothing is sent twice."""
    draws, original = random.Random(0), server.handle

    def handle(*asked: Any) -> tuple[int, bytes]:
        draw = draws.random()
        reply = (503, b"busy") if draw < 0.2 else original(*asked)
        return (502, b"lost") if 0.2 <= draw < 0.35 else reply

    server.handle = handle  # type: ignore[method-assign]
    limits, lines = {**FAST, "max_rows": 2}, [f"line {number}" for number in range(20)]
    assert texts(ask(make(server, batch=limits, max_attempts=12), *lines)) == lines
    assert max(server.sent().values()) == 1


def test_a_batch_whose_making_was_not_answered_is_not_made_again(server: BatchServer) -> None:
    lost = iter([1])

    def disturb(method: str, path: str) -> tuple[int, bytes] | None:
        if (method, path) == ("POST", "/v1/batches") and next(lost, None):
            (name,) = server.files
            server.add_batch(name, metadata={})  # made, and the answer is lost
            return 502, b"Bad Gateway"
        return None

    server.disturb = disturb
    assert texts(ask(make(server), "a")) == ["a"]
    assert list(server.sent().values()) == [1]


def test_a_full_queue_is_waited_for(server: BatchServer) -> None:
    full = iter([1, 2])

    def end(one: BatchServer, rows: Rows) -> tuple[str, Lines, Lines]:
        if next(full, None):
            batch = list(one.batches.values())[-1]
            batch["errors"] = {"data": [{"code": "token_limit_exceeded", "message": "full"}]}
            return "failed", [], []
        return spoil(lambda lines: lines)(one, rows)

    server.end = end
    assert texts(ask(make(server), "a")) == ["a"]
    assert len(server.batches) == 3
    assert server.files == {}


@pytest.mark.parametrize("keeps_metadata", [True, False])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("ended", [True, False])
def test_what_an_earlier_run_sent_is_waited_for_and_not_sent_again(
    server: BatchServer, keeps_metadata: bool, readable: bool, ended: bool
) -> None:
    """Whether the provider keeps metadata and shows input files, and whether it is done by now."""
    server.keeps_metadata, server.looks = keeps_metadata, 10**6
    with pytest.raises(EngineError):
        ask(make(server, batch={**FAST, "max_wait_hours": 1e-9}), "a", "b", "c")
    (batch,), (own,) = server.batches.values(), server.files
    server.looks = 0
    if ended:
        server.look(batch)
    if not readable:
        server.disturb = lambda _, path: (
            (403, b"{}") if path == f"/v1/files/{own}/content" else None
        )
    assert texts(ask(make(server), "b", "new", "c")) == ["b", "new", "c"]
    assert [len(rows) for rows in server.rows.values()] == [3, 1]
    assert server.files != {}  # the answer to a, which nobody has read
    assert texts(ask(make(server), "c", "a", "b")) == ["c", "a", "b"]
    assert [len(rows) for rows in server.rows.values()] == [3, 1]
    assert server.files == {}


def test_batches_of_others_are_neither_read_nor_deleted(server: BatchServer) -> None:
    """Among 2,500 of others, over 25 pages, and one of ours with another model."""
    foreign = server.add_file("theirs.jsonl", b'{"custom_id": "x", "body": {}}\n')
    for _ in range(2500):
        server.add_batch(foreign, status="completed", metadata={"echo_hf": "f" * 40})
    with pytest.raises(EngineError):
        ask(make(server, model="other", batch={**FAST, "max_wait_hours": 1e-9}), "a")
    before = dict(server.files)
    server.asked.clear()
    assert texts(ask(make(server), "a")) == ["a"]
    assert server.files == before
    contents = [path for _, path in server.asked if path.endswith("/content")]
    assert len(contents) == 1
    assert sum(path == "/v1/batches" for _, path in server.asked) == 26 + 1


def test_a_list_that_never_ends_is_left(server: BatchServer) -> None:
    page = {"data": [{"id": "batch_x", "metadata": None}], "has_more": True}
    server.disturb = lambda method, path: (
        (200, json.dumps(page).encode()) if (method, path) == ("GET", "/v1/batches") else None
    )
    assert texts(ask(make(server), "a")) == ["a"]


def test_files_of_a_run_that_was_killed_before_its_batch_are_deleted(server: BatchServer) -> None:
    name = make(server)
    ask(name, "a")
    ((prefix, _),) = {pair for pair in server.names.values() if pair[0].startswith("echo-hf")}
    hour_ago = time.time() - 3700
    old = server.add_file(prefix, b"", hour_ago)
    young, foreign = server.add_file(prefix, b""), server.add_file("mine.jsonl", b"", hour_ago)
    ask(make(server), "b")
    assert old in server.deleted
    assert set(server.files) == {young, foreign}


def answer_color(body: dict[str, Any]) -> tuple[int, Any]:
    color = next((word for word in WORDS if word in last_text(body)), "red")
    return 200, chat(json.dumps({"name": color, "number": 1}))


def refuse_schema(body: dict[str, Any]) -> tuple[int, Any]:
    if "response_format" in body:
        return 400, {"error": {"message": "response_format is not supported"}}
    return answer_color(body)


def test_a_server_that_enforces_no_schema_is_asked_in_words(
    server: BatchServer, tmp_path: Path
) -> None:
    server.answer = refuse_schema
    dataset = posts("red", "blue", "green")
    with closing(Store(tmp_path / "a.sqlite")) as store, make(server) as engine:
        batched = run_stage(Guess(), dataset, engine=engine, store=store)
    with closing(Store(tmp_path / "b.sqlite")) as store, make(server, batch=False) as engine:
        single = run_stage(Guess(), dataset, engine=engine, store=store)
    assert batched.dataset.to_list() == single.dataset.to_list()
    assert len(batched.dataset) == 3
    assert [len(rows) for rows in server.rows.values()] == [3, 3]


def test_calls_cost_the_price_of_batches(server: BatchServer) -> None:
    """10 prompt tokens and 3 of the answer, at half of 2 and 8 dollars a million."""
    prices = {"usd_per_million_prompt_tokens": 2, "usd_per_million_completion_tokens": 8}
    half = {**FAST, "price_share": 0.5}
    (half_cost,) = ask(make(server, batch=half, **prices), "a")
    (whole_cost,) = ask(make(server, batch=False, **prices), "a")
    assert whole_cost.cost_usd == pytest.approx(44e-6)
    assert half_cost.cost_usd == pytest.approx(22e-6)
    listed = make_engine("openai", model="gpt-6-sol", batch=True)
    assert (listed.usd_per_million_prompt_tokens, listed.batch_hours) == (1.0, 24)  # type: ignore[attr-defined]
    unknown = make_engine(
        "openai", model="m", base_url="https://a.example/v1", batch=True, **prices
    )
    assert unknown.usd_per_million_prompt_tokens is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": 50_001}, "max_rows"),
        ({"max_megabytes": 201.0}, "max_megabytes"),
        ({"rows": 3}, "rows"),
        ({"price_share": 2.0}, "price_share"),
        ("yes", "batch"),
    ],
    ids=str,
)
def test_options_are_checked(batch: Any, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        OpenAIEngine(model="m", batch=batch)


def test_a_request_larger_than_a_batch_is_its_own_failure(server: BatchServer) -> None:
    small, large = ask(make(server, batch={**FAST, "max_megabytes": 0.001}), "a", "b" * 2000)
    assert small.text == "a"
    assert large.error == "the request has 0.0 MB, more than a batch holds"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"response": {"status_code": 200, "body": {"a": 1}}, "error": None}, (200, {"a": 1})),
        # Gemini's layer leaves the status out, vLLM puts an error beside its status.
        ({"response": {"body": {"a": 1}}}, (200, {"a": 1})),
        ({"response": {"status_code": 400, "body": None}, "error": {"message": "no"}}, (400, "no")),
        ({"response": {"status_code": 404}, "error": {"error": {"message": "no"}}}, (404, "no")),
        ({"response": None, "error": {"code": "server_error", "message": "no"}}, (400, "no")),
        ({"response": {"status_code": 10**9, "body": {}}}, (200, {})),
        ({"response": None, "error": {"code": "batch_expired"}}, None),
        ({"response": None, "error": None}, None),
        ({"response": 7, "error": []}, None),
        ({"response": None, "error": {"code": ["x"], "message": "no"}}, (400, "no")),
    ],
    ids=str,
)
def test_rows_of_several_providers_are_read(row: Any, expected: Any) -> None:
    line = json.dumps(row).encode()
    response = AnswerRows(BytesIO(line)).read((0, len(line)))
    if response is None or expected is None:
        assert response is expected
        return
    body = json.loads(response.text)
    assert (response.status, body.get("error", {}).get("message", body)) == expected
    assert parse_batch({"id": "b", "status": "COMPLETED"}).has_ended  # as Together writes it


# A run that is killed when the server is asked for the n-th time, before or after it has answered.


def fill_store(url: str, path: str) -> None:
    engine = OpenAIEngine(
        model="tiny", base_url=url, backoff_s=0.001, batch={"poll_s": 0.005, "max_rows": 4}
    )
    with closing(Store(Path(path))) as store, engine:
        fill(Guess(), COLORS, engine, store)


COLORS = posts(*[f"{WORDS[number % 3]} {number}" for number in range(14)])


def test_twenty_kills_send_no_request_twice(tmp_path: Path) -> None:
    """Killed at a drawn call of the first 28 of 30, in either half of it, or a moment after."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "openai"])
    draws = random.Random(48)
    with running_batches(answer=answer_color) as plain, make(plain, batch=False) as engine:
        store = Store(tmp_path / "plain.sqlite")
        expected = run_stage(Guess(), COLORS, engine=engine, store=store).dataset.to_list()
        store.close()
    calls_seen = set[tuple[str, str]]()
    for kill in range(20):
        with running_batches(answer=answer_color) as server:
            path = tmp_path / f"{kill}.sqlite"
            process = context.Process(target=fill_store, args=(server.url, str(path)))
            at, late = draws.randrange(1, 28), draws.choice([None, 0.0, 0.004])
            calls = iter(range(10**6))
            original = server.handle

            def handle(
                method: str, asked: str, *rest: Any, _go: Any = (original, calls, at, late, process)
            ) -> tuple[int, bytes]:
                handle_call, numbers, kill_at, wait_s, killed = _go
                is_last = next(numbers) == kill_at
                if is_last and wait_s is None:
                    os.kill(killed.pid, signal.SIGKILL)
                    time.sleep(0.05)
                    return 500, b""
                reply: tuple[int, bytes] = handle_call(method, asked, *rest)
                if is_last:
                    calls_seen.add((method, asked.split("/")[2]))
                    time.sleep(wait_s)
                    os.kill(killed.pid, signal.SIGKILL)
                return reply

            server.handle = handle  # type: ignore[method-assign]
            process.start()
            process.join(30)
            assert process.exitcode == -signal.SIGKILL
            fill_store(server.url, str(path))
            with closing(Store(path)) as store, make(server) as engine:
                found = run_stage(Guess(), COLORS, engine=engine, store=store).dataset.to_list()
            assert found == expected
            assert set(server.sent().values()) == {1}
            assert len(server.sent()) == 14
    assert len(calls_seen) > 2


def test_leaving_a_stream_leaves_its_batch_at_the_provider(server: BatchServer) -> None:
    server.looks = 3
    with make(server, batch={**FAST, "max_rows": 1}) as engine:
        stream = engine.stream([request("a"), request("b")])
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert texts(ask(make(server), "a", "b")) == ["a", "b"]
    assert list(server.sent().values()) == [1, 1]
    assert server.files == {}


def test_a_conversation_keeps_its_turns_apart(server: BatchServer) -> None:
    """Equal last lines after other turns are other rows."""
    turns = [
        Request("t", (Message("system", (Text(text),)), Message("user", (Text("q"),))), None, 9)
        for text in ("one", "two")
    ]
    with make(server) as engine:
        assert len(dict(engine.stream(turns))) == 2
    assert len(server.sent()) == 2


def leave_read_batch(server: BatchServer, *, age_s: float = 0.0) -> str:
    """A batch of ours that has ended, and whose rows nobody asks for any more."""
    with pytest.raises(EngineError):
        ask(make(server, batch={**FAST, "max_wait_hours": 1e-9}), "old")
    ((_, batch),) = server.batches.items()
    server.looks = 0
    server.look(batch)
    batch["created_at"] -= age_s
    return str(batch["output_file_id"])


@pytest.mark.parametrize(
    ("age_s", "is_output_there", "shows_files", "kept"),
    [
        (0, True, True, 2),  # another stage may still ask
        (0, False, True, 0),  # a run was killed while it deleted
        (0, False, False, 1),
        (8 * 86400, True, True, 0),
    ],
)
def test_files_of_answers_that_nobody_will_ask_for_are_deleted(
    server: BatchServer, age_s: float, is_output_there: bool, shows_files: bool, kept: int
) -> None:
    server.looks = 10**6
    output = leave_read_batch(server, age_s=age_s)
    if not is_output_there:
        del server.files[output]
    if not shows_files:
        server.disturb = lambda method, path: (
            (404, b"{}") if method == "GET" and path.count("/") == 3 and "/files/" in path else None
        )
    assert texts(ask(make(server), "new")) == ["new"]
    assert len(server.files) == kept
