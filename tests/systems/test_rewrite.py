"""A language model that writes and a text-to-image system that draws, both over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef, Usage
from echo_hf.errors import EchoError, GenerationError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.base import GenerationResult, Retired, System
from echo_hf.systems.registry import make_system
from echo_hf.systems.runner import SystemRun
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion, fault
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import IMAGE, KEY, base64_of, image_answer, kept, task
from tests.systems.drawing_for_tests import config as system_config

WRITTEN = "A red fox in deep snow, seen from the side, watercolour."
IMAGE_USAGE = {
    "input_tokens": 20,
    "output_tokens": 1000,
    "input_tokens_details": {"text_tokens": 20, "image_tokens": 0},
}
PRICE = {"text_in": 5, "image_out": 30, "as_of": "2026-11-21"}
PARAMETERS = {
    "writer": {"kind": "openai", "model": "tiny-writer", "backoff_s": 0.001},
    "artist": {"adapter": "openai_images", "model": "tiny-artist"},
}
Make = Callable[..., System]


def config(parameters: dict[str, Any], **further: Any) -> SystemConfig:
    return system_config("rewrite", parameters, model=None, **further)


def _with(server: LoopbackServer | None = None, **changed: Any) -> dict[str, Any]:
    url = "http://127.0.0.1:1/v1" if server is None else server.url
    writer = {**PARAMETERS["writer"], "base_url": url, **changed.pop("writer", {})}
    own = {"base_url": url, "most_inputs": 0, **changed.pop("parameters", {})}
    artist = {**PARAMETERS["artist"], "parameters": own, **changed.pop("artist", {})}
    return {"writer": writer, "artist": artist, **changed}


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def of(further: dict[str, Any] | None = None, **changed: Any) -> System:
        return make_system(config(_with(server, **changed), **(further or {})))

    return of


def _answering(writer: Answer, artist: Answer) -> Callable[[Asked], Answer]:
    return lambda asked: writer if asked.path.endswith("/chat/completions") else artist


def _drawn(system: System, *inputs: ImageRef) -> GenerationResult:
    with system:
        return system.draw(task(*inputs))


def test_what_the_writer_wrote_is_drawn(server: LoopbackServer, make: Make, tmp_path: Path) -> None:
    writer = completion(json.dumps({"prompt": f" {WRITTEN} "}))
    server.behave = _answering(writer, image_answer(usage=IMAGE_USAGE, model="tiny-artist-1"))
    first, second = encoded(noise((30, 20)), "JPEG"), IMAGE
    drawn = _drawn(make(), kept(tmp_path, first), kept(tmp_path, second))
    asked, drawing = server.asked
    told, question = asked.body["messages"]
    assert "text-to-image model" in told["content"]
    words, *images = question["content"]
    assert json.loads(words["text"].split("\n")[1]) == {"prompt": task().prompt, "pictures": 2}
    assert [one["image_url"]["url"].partition(",")[2] for one in images] == [
        base64_of(first),
        base64_of(second),
    ]
    assert drawing.path == "/v1/images/generations"
    assert (drawing.body["prompt"], drawing.body["model"]) == (WRITTEN, "tiny-artist")
    assert (drawn.outcome, drawn.image) == (Outcome.OK, IMAGE)
    assert (drawn.revised_prompt, drawn.model_reported) == (WRITTEN, "tiny-artist-1")


def test_tokens_and_prices_of_both_add_up(server: LoopbackServer, make: Make) -> None:
    """By hand: 10 x 1 + 3 x 2 of the writer and 20 x 5 + 1000 x 30 of the artist, in millionths."""
    writer = completion(json.dumps({"prompt": WRITTEN}))
    server.behave = _answering(writer, image_answer(usage=IMAGE_USAGE))
    priced = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 2}
    dollars = {name: float(value) for name, value in priced.items()}
    drawn = _drawn(make(writer=dollars, artist={"price": PRICE}))
    assert drawn.usage == Usage(30, 1003, 0)
    assert drawn.cost_usd == pytest.approx(0.030116)
    # The writer's model is in no price list.
    unpriced = _drawn(make(artist={"price": PRICE}))
    assert (unpriced.usage, unpriced.cost_usd) == (Usage(30, 1003, 0), None)


@pytest.mark.parametrize(
    ("writer", "code"),
    [
        (completion(None, message={"refusal": "I will not."}), "writer_refused"),
        (fault(400, "flagged", code="content_policy_violation"), "writer_refused"),
        (completion('{"prompt": "A re', "length"), "writer_cut"),
        (completion('{"prompt": "  "}'), "writer_off_schema"),
        (fault(500, "oops"), "writer_engine_error"),
    ],
    ids=str,
)
def test_without_a_prompt_nothing_is_drawn(
    server: LoopbackServer, make: Make, writer: Answer, code: str
) -> None:
    server.behave = _answering(writer, image_answer())
    drawn = _drawn(make())
    is_refusal = code == "writer_refused"
    assert drawn.outcome == ("refused" if is_refusal else "failed")
    assert drawn.stage == ("input" if is_refusal else "request")
    assert (drawn.code, drawn.image) == (code, None)
    assert all(asked.path.endswith("/chat/completions") for asked in server.asked)


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([fault(429, "busy", headers={"Retry-After": "0.01"})] * 2, Outcome.FAILED),
        ([fault(429, "busy", headers={"Retry-After": "0.01"}), image_answer()], Outcome.OK),
        ([fault(400, "no", code="invalid_value")], Outcome.FAILED),
        ([fault(400, "no", code="moderation_blocked")], Outcome.REFUSED),
        ([], Outcome.FAILED),  # this one task breaks the artist
    ],
    ids=["busy", "busy_once", "failed", "refused", "broken"],
)
def test_a_writer_is_paid_once_whatever_the_artist_does(
    tmp_path: Path, server: LoopbackServer, make: Make, answers: list[Answer], outcome: Outcome
) -> None:
    """By hand: 10 x 1 + 3 x 2 millionths; the artist's image is free, its outcome stands."""
    writer, left = completion(json.dumps({"prompt": WRITTEN})), iter(answers)
    server.behave = lambda asked: writer if asked.path.endswith("/chat/completions") else next(left)
    priced = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 2.0}
    free = {"usd_per_image": 0, "as_of": "2026-11-21"}
    made: Any = make(writer=priced, artist={"price": free})
    if not answers:
        made._artist.draw = lambda _: 1 / 0
    limits = config({}, limits={"attempts": 2})
    run = SystemRun(limits, made, RunFolder(tmp_path), [task()])
    run.run(None, None, ProgressListener())
    (drawn,) = run.stats.entries
    ends = [asked.path.rpartition("/")[2] for asked in server.asked]
    assert ends == ["completions", *["generations"] * len(answers)]
    assert (drawn.outcome, drawn.usage) == (outcome, Usage(10, 3, 0))
    assert drawn.cost_usd == pytest.approx(0.000016)
    if outcome is not Outcome.FAILED or len(answers) < 2:
        assert drawn.revised_prompt == WRITTEN


def test_a_wrong_key_of_the_writer_ends_the_run(server: LoopbackServer, make: Make) -> None:
    server.behave = _answering(fault(401, f"bad key {KEY}"), image_answer())
    with make() as system, pytest.raises(GenerationError, match=r"writer: .*401") as caught:
        system.draw(task())
    assert KEY not in str(caught.value)


def test_the_artists_model_is_looked_for_beforehand(server: LoopbackServer, make: Make) -> None:
    server.behave = lambda _: fault(404, "This model is no longer available", code="gone")
    with make() as system:
        assert system.preflight() == Retired("This model is no longer available", "gone")
    assert [asked.path for asked in server.asked] == ["/v1/models/tiny-artist"]


def test_rules_cannot_write() -> None:
    system = make_system(config({**_with(), "writer": {"kind": "rules"}}))
    with system, pytest.raises(GenerationError, match="an engine without a model"):
        system.draw(task())


CHOICES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"most_tokens": 100}),
    ({}, {"writer": {"model": "other"}}),
    ({}, {"writer": {"temperature": 1.0}}),
    ({}, {"artist": {"model": "other"}}),
    ({}, {"parameters": {"quality": "low"}}),
    ({}, {"parameters": {"send_seed": True}}),
    ({"seed": 3}, {"parameters": {"send_seed": True}}),
    ({"size": {"width": 512, "height": 512}}, {}),
]


def test_the_signature_is_what_decides_an_image() -> None:
    elsewhere = {"base_url": "http://127.0.0.1:2/v1", "api_key_env": "MY_VARIABLE"}
    same = {"writer": {**elsewhere, "concurrency": 2}, "parameters": elsewhere}
    every = [({"limits": {"concurrency": 2}}, {**same, "artist": {"price": PRICE}}), *CHOICES]
    signatures = [
        json.dumps(make_system(config(_with(**changed), **further)).signature(), sort_keys=True)
        for further, changed in every
    ]
    assert signatures[0] == signatures[1]
    assert len(set(signatures)) == len(CHOICES)
    assert KEY not in "".join(signatures)


@pytest.mark.parametrize(
    ("further", "changed", "message"),
    [
        ({}, {"writr": {}}, "unknown key 'writr'; did you mean 'writer'?"),
        ({}, {"writer": {"kind": "opnai"}}, "unknown engine 'opnai'; did you mean 'openai'?"),
        ({}, {"artist": {"adapter": "openai_image"}}, "did you mean 'openai_images'?"),
        ({}, {"artist": {"modle": "x"}}, "unknown key in artist 'modle'; did you mean 'model'?"),
        ({"size": "match_input"}, {}, "the artist sees no input"),
        ({"price": PRICE}, {}, "put the artist's into parameters.artist"),
        ({}, {"most_tokens": 1}, "most_tokens is 1"),
    ],
)
def test_mistakes_in_config_are_told_in_one_line(further: Any, changed: Any, message: str) -> None:
    assert message in said_by(EchoError, make_system, config(_with(**changed), **further))
