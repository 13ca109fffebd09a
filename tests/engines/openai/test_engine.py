"""The engine against a real server: how it takes requests, and how it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echo_hf.engines.base import Completion, Engine, Request, Usage, engine_names, make_engine
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.engines.server import THREAD
from echo_hf.errors import EngineError, MissingExtraError
from tests.engines.openai.conftest import KEY
from tests.engines.openai.loopback_server import (
    SILENCE,
    Answer,
    Asked,
    LoopbackServer,
    completion,
    fault,
)
from tests.stages_for_tests import request

Make = Callable[..., OpenAIEngine]


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD]


def test_it_is_an_engine_with_a_name(server: LoopbackServer) -> None:
    """A config's `kind: openai` makes one, and its answers are kept."""
    assert "openai" in engine_names()
    made = make_engine("openai", model="tiny", base_url=server.url)
    assert isinstance(made, Engine)
    assert made.stored is True


def test_every_request_is_answered_under_its_number(server: LoopbackServer, engine: Make) -> None:
    """The numbers are those of the requests, whatever the order of the answers."""
    lines = [f"colour {number}" for number in range(20)]
    answers = dict(engine(concurrency=4).stream([request(line) for line in lines]))
    assert answers == {
        number: Completion(line, usage=Usage(10, 3, 0)) for number, line in enumerate(lines)
    }
    assert {asked.path for asked in server.asked} == {"/v1/chat/completions"}


def test_nothing_to_ask_starts_nothing(engine: Make) -> None:
    """Without requests there is no thread, no client and no need of a key."""
    public = engine(base_url="https://models.example.org/v1")
    assert list(public.stream([])) == []


def test_no_more_are_under_way_than_allowed(server: LoopbackServer, engine: Make) -> None:
    """As many as allowed and no more: the first three are not answered before all are there."""

    def behave(asked: Asked) -> Answer:
        server.wait_for(3)
        return completion(asked.line)

    server.behave = behave
    done = list(engine(concurrency=3).stream(request(f"colour {number}") for number in range(12)))
    assert len(done) == 12
    assert server.most_under_way == 3


def test_requests_are_taken_as_there_is_room_in_the_callers_thread(engine: Make) -> None:
    """None is taken before an earlier one has been reported, once the window is full."""
    taken: list[int] = []
    ahead: list[int] = []
    threads: set[int] = set()
    reported = 0

    def requests() -> Iterator[Request]:
        for number in range(15):
            taken.append(number)
            ahead.append(len(taken) - reported)
            threads.add(threading.get_ident())
            yield request(f"colour {number}")

    for _ in engine(concurrency=4).stream(requests()):
        reported += 1
    assert (len(taken), reported) == (15, 15)
    assert max(ahead) == 4
    assert threads == {threading.get_ident()}


def test_an_answer_is_reported_before_slower_ones(server: LoopbackServer, engine: Make) -> None:
    """A quick answer does not wait for a slow request that was asked before it."""
    quick_reported = threading.Event()

    def behave(asked: Asked) -> Answer:
        if asked.line == "slow":
            assert quick_reported.wait(20)
        return completion(asked.line)

    server.behave = behave
    order = []
    for number, _ in engine().stream([request("slow"), request("quick")]):
        order.append(number)
        quick_reported.set()
    assert order == [1, 0]


def _with_silence(server: LoopbackServer) -> list[Request]:
    server.behave = lambda asked: completion("red") if asked.line == "quick" else SILENCE
    return [request("quick"), *[request(f"silent {number}") for number in range(5)]]


def test_closing_the_iterator_cancels_what_is_under_way(
    server: LoopbackServer, engine: Make
) -> None:
    """It returns although five requests will never be answered, and leaves no thread."""
    answers = engine(concurrency=6).stream(_with_silence(server))
    assert next(answers)[0] == 0
    server.wait_for(6)
    assert _threads() == [THREAD]
    answers.close()  # type: ignore[attr-defined]
    assert _threads() == []


def test_leaving_the_context_cancels_what_is_under_way(
    server: LoopbackServer, engine: Make
) -> None:
    """Whoever still holds the iterator gets nothing more from it."""
    with engine(concurrency=6) as asked:
        answers = asked.stream(_with_silence(server))
        assert next(answers)[0] == 0
    assert _threads() == []
    assert list(answers) == []


def test_an_interruption_stops_at_once(server: LoopbackServer, engine: Make) -> None:
    """Ctrl-C while all requests are silent ends the wait, and leaves no thread."""
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
    assert _threads() == []


def test_an_error_in_the_requests_passes_through(server: LoopbackServer, engine: Make) -> None:
    """What goes wrong while requests are made stops the stream and cancels the rest."""

    def requests() -> Iterator[Request]:
        yield request("silent")
        server.wait_for(1)
        raise KeyError("no such row")

    server.behave = lambda _: SILENCE
    with pytest.raises(KeyError, match="no such row"):
        list(engine().stream(requests()))
    assert _threads() == []


def test_an_engine_can_stream_again(server: LoopbackServer, engine: Make) -> None:
    """After the end, after an early close, and after its context was left."""
    with engine() as asked:
        assert [done.text for _, done in asked.stream([request("red")])] == ["red"]
        answers = asked.stream([request("blue"), request("green")])
        next(answers)
        answers.close()  # type: ignore[attr-defined]
    assert [done.text for _, done in asked.stream([request("pink")])] == ["pink"]
    assert _threads() == []


def test_two_streams_run_side_by_side(engine: Make) -> None:
    """Each has its own numbers."""
    asked = engine()
    one, two = asked.stream([request("red")]), asked.stream([request("blue")])
    assert (next(one)[1].text, next(two)[1].text) == ("red", "blue")
    assert (list(one), list(two)) == ([], [])


def test_a_wrong_key_stops_the_stream_after_what_was_answered(
    server: LoopbackServer, engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what to do; the answers that came before are not lost."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.behave = lambda asked: (
        completion("red") if asked.line == "good" else fault(401, f"Incorrect API key: {KEY}")
    )
    got = []
    with pytest.raises(EngineError) as caught:
        got.extend(engine(concurrency=1).stream([request("good"), request("bad"), request("c")]))
    assert str(caught.value) == (
        "'127.0.0.1' answered with status 401, 'Incorrect API key: (key)': put a valid key into "
        "environment variable 'OPENAI_API_KEY'"
    )
    assert server.lines() == ["good", "bad"]
    assert _threads() == []


def test_the_key_is_sent_and_shown_nowhere(
    server: LoopbackServer,
    engine: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not in errors, logs, signature or repr, even when the server repeats it."""
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


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", None])
def test_a_local_server_is_asked_without_a_key(
    server: LoopbackServer, engine: Make, variable: str | None
) -> None:
    """Nothing is sent in the key's place."""
    list(engine(api_key_env=variable).stream([request("red")]))
    assert "authorization" not in server.asked[0].headers


def test_no_key_is_sent_where_none_is_wanted(
    server: LoopbackServer, engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`api_key_env: null` keeps keys that happen to be in the environment at home."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    list(engine(api_key_env=None).stream([request("red")]))
    assert "authorization" not in server.asked[0].headers


def test_the_address_is_the_configs_and_not_the_environments(
    server: LoopbackServer, engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signature that names one server must not hide the answers of another."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert [done.text for _, done in engine().stream([request("red")])] == ["red"]


def test_the_signature_is_what_decides_an_answer(engine: Make) -> None:
    """Model, sampling, shape, images and label do; speed, port and prices do not."""
    base = engine().signature()
    for same in (
        {"base_url": "http://gpu-node:8000/v1"},
        {"concurrency": 2},
        {"requests_per_minute": 5, "tokens_per_minute": 9.5},
        {"timeout_s": 3, "max_attempts": 1, "backoff_s": 0.5},
        {"api_key_env": "MY_KEY"},
        {"max_tokens_field": "max_tokens"},
        {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2},
    ):
        assert engine(**same).signature() == base
    others = [
        engine(**other).signature()
        for other in (
            {"model": "huge"},
            {"base_url": "https://models.example.org/v1"},
            {"revision": "awq"},
            {"temperature": 0.5},
            {"temperature": None},
            {"top_p": 0.5},
            {"seed": 1},
            {"structured": "text"},
            {"extra_body": {"top_k": 1}},
            {"max_pixels": 1000},
            {"max_pixels": 1003520, "family": "qwen3_vl"},
        )
    ]
    assert all(signature != base for signature in others)
    assert len({str(signature) for signature in others}) == len(others)
    assert base["kind"] == "openai"


def test_the_price_of_a_plan_is_the_configs_or_the_lists(engine: Make) -> None:
    """Null where nobody knows it."""
    own = {"usd_per_million_prompt_tokens": 7, "usd_per_million_completion_tokens": 8}
    listed = {"model": "gpt-4o", "base_url": "https://api.openai.com/v1"}
    prices = [engine(**given).usd_per_million_prompt_tokens for given in ({}, own, listed)]
    assert prices == [None, 7.0, 2.5]


def test_making_one_loads_no_client() -> None:
    """The packages of the extra, and everything heavy, wait until something is asked."""
    code = (
        "import sys; from echo_hf.engines.openai import OpenAIEngine; "
        "OpenAIEngine(model='tiny').signature(); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "echo_hf.engines.openai" in loaded
    assert loaded & {"openai", "httpx", "httpx2", "datasets", "torch"} == set()


def test_missing_packages_are_told(engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the command that installs them, when something is asked."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[openai\]"'):
        list(engine().stream([request("red")]))


def test_one_bad_request_fails_alone(server: LoopbackServer, engine: Make, tmp_path: Path) -> None:
    """A text that no JSON in UTF-8 can hold, and an image without a file, are values."""
    asked = [request("red"), request("\ud800"), request("blue", images=["0" * 64])]
    done = dict(engine().stream(asked))
    assert done[0].text == "red"
    assert (done[1].text, done[1].finish_reason) == (None, "error")
    assert (done[1].error or "").startswith("UnicodeEncodeError: ")
    assert done[2].finish_reason == "error"
    assert "has no file" in (done[2].error or "")
    assert server.lines() == ["red"]
