"""The engine against a real server."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from pydantic import BaseModel

from echo_hf.engines.base import Completion, Engine, ImageRef, engine_needs, make_engine
from echo_hf.engines.moderation import ModerationEngine
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.pipeline.answers import RawText, parse
from tests.engines.moderation.moderations import SAID_CLEAN, ask, moderation, picture
from tests.engines.openai.conftest import KEY
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, fault

Make = Callable[..., ModerationEngine]


def test_it_is_an_engine_with_a_name(server: LoopbackServer) -> None:
    """A config's `kind: moderation` makes one, its answers are kept, and its needs are told."""
    made = make_engine("moderation", base_url=server.url)
    assert isinstance(made, Engine)
    assert made.stored is True
    needs = engine_needs()["moderation"]
    assert needs.about
    assert (needs.extra, needs.packages) == ("openai", ("openai",))


def test_a_request_is_one_call_with_text_and_picture(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """Model and input and nothing else go out, the verdict comes back."""
    shown = picture(tmp_path)
    [(number, done)] = list(engine().stream([ask(shown, "a red cat")]))
    assert (number, done) == (0, Completion(SAID_CLEAN))
    assert shown.file is not None
    data = base64.b64encode(shown.file.read_bytes()).decode()
    url = f"data:image/png;base64,{data}"
    (asked,) = server.asked
    assert asked.path == "/v1/moderations"
    assert asked.body == {
        "model": "omni-moderation-latest",
        "input": [
            {"type": "text", "text": "a red cat"},
            {"type": "image_url", "image_url": {"url": url}},
        ],
    }


def test_every_request_is_answered_under_its_number(server: LoopbackServer, engine: Make) -> None:
    """The numbers are those of the requests, whatever the order of the answers."""

    def behave(asked: Asked) -> Answer:
        score = float(asked.body["input"][0]["text"])
        return moderation({"flagged": True, "categories": {}, "category_scores": {"hate": score}})

    made = engine(concurrency=4)
    server.behave = behave
    answers = dict(made.stream([ask(f"{number}.5") for number in range(20)]))
    scores = {
        number: json.loads(done.text or "")["category_scores"]["hate"]
        for number, done in answers.items()
    }
    assert scores == {number: number + 0.5 for number in range(20)}


def test_its_answers_are_raw_text(engine: Make) -> None:
    """What a stage that declares no answer reads back is the verdict, word for word."""
    request = ask("a red cat")
    [(_, done)] = list(engine().stream([request]))
    assert parse(request, done, b"") == RawText(SAID_CLEAN)


def test_what_cannot_be_moderated_fails_alone(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """Two pictures, a declared answer, nothing, a lost picture: values, and nothing is sent."""
    shown = [picture(tmp_path, red=red) for red in (1, 2)]
    bad = {
        "2 pictures in one request": ask("two cats", *shown),
        "wants an answer of a declared form": replace(ask("a cat"), answer=BaseModel),
        "neither text nor a picture": ask(""),
        "has no file": ask("a cat", ImageRef("0" * 64)),
        "UnicodeEncodeError": ask("\ud800"),
    }
    requests = [one for wrong in bad.values() for one in (wrong, ask("a cat"))]
    answers = dict(engine().stream(requests))
    for number, words in enumerate(bad):
        failed = answers[2 * number]
        assert (failed.text, failed.finish_reason) == (None, "error")
        assert words in (failed.error or "")
        assert answers[2 * number + 1].text == SAID_CLEAN
    assert len(server.asked) == len(bad)


def test_what_passes_is_sent_again(server: LoopbackServer, engine: Make) -> None:
    """A full minute and a restart, then a verdict."""
    made = engine(max_attempts=3)
    rest = [fault(429, "slow down", headers={"Retry-After": "0"}), Answer(b"", 502), moderation()]
    server.behave = lambda _: rest.pop(0)
    assert [done.text for _, done in made.stream([ask("a cat")])] == [SAID_CLEAN]
    assert len(server.asked) == 3


def test_a_bad_request_is_an_error_of_its_own(server: LoopbackServer, engine: Make) -> None:
    """With what the server says of it; it is not sent again."""
    made = engine()
    server.behave = lambda _: fault(400, "Image is too large", code="invalid_image")
    [(_, done)] = list(made.stream([ask("a cat")]))
    assert done == Completion(None, "status 400: Image is too large", "error")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (fault(401, "no"), "put a valid key into environment variable 'OPENAI_API_KEY'"),
        (fault(404, "Not Found"), "the server's own, for OpenAI's API mostly ending in /v1"),
        (
            fault(404, "The model `omni-moderation-latest` does not exist"),
            "model is 'omni-moderation-latest', expected one that the server has",
        ),
    ],
    ids=str,
)
def test_what_no_request_survives_stops_the_stream(
    server: LoopbackServer, engine: Make, answer: Answer, advice: str
) -> None:
    """One line with what to do."""
    made = engine()
    server.behave = lambda _: answer
    with pytest.raises(EngineError) as caught:
        list(made.stream([ask("a cat")]))
    assert advice in str(caught.value)


def test_the_key_is_sent_and_shown_nowhere(
    server: LoopbackServer,
    engine: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not in errors, logs, signature or repr, even when the server repeats it."""
    monkeypatch.setenv("MY_KEY", KEY)
    made = engine(api_key_env="MY_KEY")
    server.behave = lambda _: fault(400, f"your header was Bearer {KEY}")
    with caplog.at_level("DEBUG"):
        done = list(made.stream([ask("a cat")]))
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    shown = [repr(done), repr(vars(made)), repr(made.signature()), caplog.text]
    assert [text for text in shown if KEY[:16] in text] == []


def test_a_public_server_wants_a_key(engine: Make) -> None:
    """The default server is asked by nobody without one."""
    with pytest.raises(EngineError, match="environment variable 'OPENAI_API_KEY' is not set"):
        list(engine(base_url="https://api.openai.com/v1").stream([ask("a cat")]))


def test_a_picture_is_reduced_to_the_budget(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """200 x 100 has 20000 pixels: a quarter of them is half of each side."""
    list(engine(max_pixels=5000).stream([ask(picture(tmp_path, (200, 100)))]))
    head, _, data = server.asked[0].body["input"][0]["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (100, 50)


def test_further_keys_are_sent(server: LoopbackServer, engine: Make) -> None:
    """As the server documents them."""
    list(engine(model="tiny", extra_body={"policy": "strict"}).stream([ask("a cat")]))
    text = [{"type": "text", "text": "a cat"}]
    assert server.asked[0].body == {"model": "tiny", "input": text, "policy": "strict"}


def test_the_signature_is_what_decides_an_answer(engine: Make) -> None:
    """Server, model, its revision, pictures and further keys do; speed, port and prices do not."""
    base = engine().signature()
    assert (base["kind"], base["server"]) == ("moderation", "private")
    for same in (
        {"base_url": "http://gpu-node:8000/v1"},
        {"concurrency": 2, "requests_per_minute": 5, "tokens_per_minute": 9.5},
        {"timeout_s": 3, "max_attempts": 1, "backoff_s": 0.5},
        {"api_key_env": "MY_KEY"},
        {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2},
    ):
        assert engine(**same).signature() == base
    others = [
        engine(**other).signature()
        for other in (
            {"base_url": "https://api.openai.com/v1"},
            {"model": "huge"},
            {"revision": "second"},
            {"extra_body": {"policy": "strict"}},
            {"max_pixels": 1000},
        )
    ]
    assert len({str(signature) for signature in [base, *others]}) == 1 + len(others)


def test_the_price_of_a_plan_is_nothing_where_it_is_free(engine: Make) -> None:
    """OpenAI's own endpoint bills nobody; another server's price is unknown."""
    free = engine(base_url="https://api.openai.com/v1")
    assert free.usd_per_million_prompt_tokens == 0.0
    assert engine().usd_per_million_prompt_tokens is None


def test_making_one_loads_no_client() -> None:
    """The packages of the extra wait until something is asked."""
    code = (
        "import sys; from echo_hf.engines.moderation import ModerationEngine; "
        "ModerationEngine().signature(); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "echo_hf.engines.moderation" in loaded
    assert loaded & {"openai", "datasets", "torch"} == set()


def test_missing_packages_are_told(engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the engine and the command that installs them."""
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"'moderation' needs .*\"echo-hf\[openai\]\""):
        list(engine().stream([ask("a cat")]))
