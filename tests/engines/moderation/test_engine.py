"""The engine against a real server."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PIL import Image
from pydantic import BaseModel

from echo_hf.engines.base import Completion, Engine, ImageRef, engine_needs, make_engine
from echo_hf.engines.moderation import ModerationEngine
from echo_hf.pipeline.answers import RawText, parse
from tests.engines.moderation.moderations import SAID_CLEAN, ask, image, moderation
from tests.engines.openai.loopback_server import Answer, LoopbackServer, fault

Make = Callable[..., ModerationEngine]


def test_it_is_an_engine_with_a_name(server: LoopbackServer) -> None:
    """A config's `kind: moderation` makes one, its answers are kept, and its needs are told."""
    made = make_engine("moderation", base_url=server.url)
    assert isinstance(made, Engine)
    assert made.stored is True
    needs = engine_needs()["moderation"]
    assert needs.about
    assert (needs.extra, needs.packages) == ("openai", ("openai",))


def test_a_request_is_one_call_with_text_and_image(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """Model and input and nothing else go out, the verdict comes back."""
    shown = image(tmp_path)
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


def test_its_answers_are_raw_text(engine: Make) -> None:
    """What a stage that declares no answer reads back is the verdict, word for word."""
    request = ask("a red cat")
    [(_, done)] = list(engine().stream([request]))
    assert parse(request, done, b"") == RawText(SAID_CLEAN)


def test_what_cannot_be_moderated_fails_alone(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """Two images, a declared answer, nothing, a lost image: values, and nothing is sent."""
    shown = [image(tmp_path, red=red) for red in (1, 2)]
    bad = {
        "2 images in one request": ask("two cats", *shown),
        "wants an answer of a declared form": replace(ask("a cat"), answer=BaseModel),
        "neither text nor an image": ask(""),
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


def test_an_image_is_reduced_to_the_budget(
    server: LoopbackServer, engine: Make, tmp_path: Path
) -> None:
    """200 x 100 has 20000 pixels: a quarter of them is half of each side."""
    list(engine(max_pixels=5000).stream([ask(image(tmp_path, (200, 100)))]))
    head, _, data = server.asked[0].body["input"][0]["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (100, 50)


def test_further_keys_are_sent(server: LoopbackServer, engine: Make) -> None:
    """As the server documents them."""
    list(engine(model="tiny", extra_body={"policy": "strict"}).stream([ask("a cat")]))
    text = [{"type": "text", "text": "a cat"}]
    assert server.asked[0].body == {"model": "tiny", "input": text, "policy": "strict"}


def test_the_signature_is_what_decides_an_answer(engine: Make) -> None:
    """Server, model, its revision, images and further keys do; speed, port and prices do not."""
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
