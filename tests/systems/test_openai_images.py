"""Tasks put to a server that draws as OpenAI's does, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import Usage
from echo_hf.errors import EchoError
from echo_hf.systems.base import GenerationResult, OutcomeStage, System, TransientError
from echo_hf.systems.registry import make_system
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import Answer, LoopbackServer, completion
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import (
    HTML,
    IMAGE,
    KEY,
    PRICE,
    USAGE,
    Field,
    base64_of,
    config,
    drawn_by,
    form,
    image_answer,
    kept,
)

URL = f"data:image/png;base64,{base64_of(IMAGE)}"
LOCAL = {"base_url": "http://127.0.0.1:8000/v1"}


def made(parameters: dict[str, Any], **further: Any) -> System:
    return make_system(config("openai_images", parameters, **further))


Ask = Callable[..., GenerationResult]


@pytest.fixture
def ask(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def asked(
        answer: Answer, *inputs: Any, further: dict[str, Any] | None = None, **parameters: Any
    ) -> GenerationResult:
        server.asked.clear()
        server.behave = lambda _: answer
        return drawn_by(made({"base_url": server.url, **parameters}, **(further or {})), *inputs)

    return asked


def test_a_prompt_alone_is_drawn(ask: Ask, server: LoopbackServer) -> None:
    answer = image_answer(entry={"revised_prompt": "a red fox"}, usage=USAGE)
    drawn = ask(answer, quality="high", extra={"steps": 4})
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.body == {
        "model": "tiny-image",
        "prompt": "a fox in the snow",
        "n": 1,
        "quality": "high",
        "steps": 4,
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
    assert (drawn.revised_prompt, drawn.usage) == ("a red fox", Usage(1100, 4000, 0))
    assert (drawn.seed, drawn.cost_usd) == (None, None)


def test_inputs_are_sent_in_their_order(ask: Ask, server: LoopbackServer, tmp_path: Path) -> None:
    first, second = encoded(noise((30, 20)), "JPEG"), encoded(noise((10, 50)), "WEBP")
    inputs = [kept(tmp_path, first), kept(tmp_path, second)]
    drawn = ask(image_answer(), *inputs, moderation="low")
    (asked,) = server.asked
    fields = form(asked)
    assert asked.path == "/v1/images/edits"
    assert [field for field in fields if field.file_name] == [
        Field("image[]", "input_1.jpg", "image/jpeg", first),
        Field("image[]", "input_2.webp", "image/webp", second),
    ]
    assert {field.name: field.data.decode() for field in fields if not field.file_name} == {
        "model": "tiny-image",
        "prompt": "a fox in the snow",
        "n": "1",
        "moderation": "low",
    }
    assert drawn.outcome is Outcome.OK
    assert drawn.details["inputs"] == [
        {"type": "image/jpeg", "size": [30, 20], "changed": []},
        {"type": "image/webp", "size": [10, 50], "changed": []},
    ]
    ask(image_answer(), inputs[0])
    assert [one.name for one in form(server.asked[0]) if one.file_name] == ["image"]


@pytest.mark.parametrize(
    ("size", "parameters", "expected"),
    [
        ("auto", {}, None),
        ({"width": 1280, "height": 720}, {}, "1280x720"),
        ("match_input", {}, "1248x832"),
        ("match_input", {"pixels": 262_144}, "624x416"),
        ("match_input", {"sizes": ["1024x1024", "1024x1536", "1536x1024"]}, "1536x1024"),
    ],
)
def test_the_size_follows_the_config(
    ask: Ask,
    server: LoopbackServer,
    tmp_path: Path,
    size: Any,
    parameters: dict[str, Any],
    expected: str | None,
) -> None:
    """Of an input of 60 x 40 pixels; what was asked for is told."""
    image = kept(tmp_path, encoded(noise((60, 40)), "PNG"))
    drawn = ask(image_answer(), image, further={"size": size}, **parameters)
    sent = {one.name: one.data.decode() for one in form(server.asked[0]) if not one.file_name}
    told = drawn.details["size"]
    assert sent.get("size") == (told and f"{told[0]}x{told[1]}") == expected


def test_tokens_are_priced_by_their_kind(ask: Ask) -> None:
    """By hand: 100 x 5 + 1000 x 8 + 4000 x 30 millionths; 1000 of the 4000 may be text, at 10."""
    apart = {**USAGE, "output_tokens_details": {"text_tokens": 1000, "image_tokens": 3000}}
    for usage, cost in ((USAGE, 0.1285), (apart, 0.1085)):
        drawn = ask(image_answer(usage=usage), further={"price": PRICE})
        assert drawn.cost_usd == pytest.approx(cost)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (HTML, "the answer is not a JSON object: it begins '<!doctype html>"),
        (Answer({"data": []}), "the answer holds no image"),
        (image_answer(b"%PDF-1.7 is no picture"), "expected one of AVIF, BMP, GIF"),
        (image_answer(entry={"b64_json": None, "url": "https://a.example/1.png"}), "not followed"),
    ],
)
def test_what_is_no_image_fails(ask: Ask, server: LoopbackServer, answer: Answer, why: str) -> None:
    if isinstance(answer.body, dict):
        answer = Answer({**answer.body, "usage": USAGE})
    drawn = ask(answer)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert why in (drawn.text or "")
    assert drawn.image is None
    assert len(server.asked) == 1
    if isinstance(answer.body, dict):
        assert drawn.usage == Usage(1100, 4000, 0)


# A chat model.


def part(url: str = URL) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def test_a_prompt_is_a_message(ask: Ask, server: LoopbackServer, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 1300, "total_tokens": 1320, "cost": 0.0387}
    message = {"images": [part()]}
    answer = completion("Here it is.", message=message, usage=usage, model="northlight/lumen-2")
    drawn = ask(answer, mode="chat", extra={"top_k": 1})
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "tiny-image",
        "messages": [{"role": "user", "content": "a fox in the snow"}],
        "modalities": ["image", "text"],
        "top_k": 1,
    }
    assert (drawn.outcome, drawn.image, drawn.text) == (Outcome.OK, IMAGE, "Here it is.")
    assert (drawn.usage, drawn.cost_usd) == (Usage(20, 1300, 0), 0.0387)
    assert drawn.model_reported == "northlight/lumen-2"
    first = encoded(noise((30, 20)), "JPEG")
    ask(answer, kept(tmp_path, first), kept(tmp_path, IMAGE), mode="chat")
    assert server.asked[0].body["messages"][0]["content"] == [
        part(f"data:image/jpeg;base64,{base64_of(first)}"),
        part(),
        {"type": "text", "text": "a fox in the snow"},
    ]


def test_an_image_may_be_a_part_of_the_content(ask: Ask) -> None:
    content = [part(), {"type": "text", "text": "Here."}]
    drawn = ask(completion(content), mode="chat")
    assert (drawn.outcome, drawn.image, drawn.text) == (Outcome.OK, IMAGE, "Here.")
    both = ask(completion(content, message={"images": [part()]}), mode="chat")
    assert both.details["pictures"] == 1
    other = f"data:image/jpeg;base64,{base64_of(encoded(noise((8, 8)), 'JPEG'))}"
    two = ask(completion("", message={"images": [part(), part(other)]}), mode="chat")
    assert (two.image, two.details["pictures"]) == (IMAGE, 2)


LACK = "the answer holds no image"


@pytest.mark.parametrize(
    ("answer", "outcome", "stage", "code", "text"),
    [
        (completion("I only describe."), "no_image", "answer", "stop", "I only describe."),
        (completion(""), "no_image", "answer", "stop", None),
        (completion(None, message={"refusal": "No."}), "refused", "input", "refusal", "No."),
        (
            completion(None, "content_filter"),
            *("refused", "output", "content_filter", "content_filter"),
        ),
        (
            completion(None, message={"images": [part("https://a.example/1.png")]}),
            *("failed", "answer", None, "not followed"),
        ),
        (Answer({"choices": []}), "failed", "answer", None, LACK),
        # What broke down is no answer: it is asked for again.
        (completion("I will draw a", "length"), "failed", "answer", "length", LACK),
        (completion([{"type": "image", "image": "x"}]), "failed", "answer", "stop", LACK),
    ],
    ids=str,
)
def test_what_came_instead_of_an_image_is_told(
    ask: Ask,
    server: LoopbackServer,
    answer: Answer,
    outcome: str,
    stage: str,
    code: str | None,
    text: str | None,
) -> None:
    drawn = ask(answer, mode="chat")
    assert (str(drawn.outcome), str(drawn.stage), drawn.code) == (outcome, stage, code)
    assert drawn.image is None
    assert drawn.text == text or (text is not None and text in (drawn.text or ""))


def test_an_error_inside_a_choice_counts(ask: Ask) -> None:
    """Routers answer 200 for a provider that failed."""
    choice = {"index": 0, "error": {"code": 503, "message": "provider is busy"}, "message": {}}
    with pytest.raises(TransientError, match="provider is busy"):
        ask(Answer({"choices": [choice]}), mode="chat")


# What a config says.

DECIDES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({one: value}, {}) for one, value in (("model", "other"), ("size", "match_input"))),
    ({"seed": 3}, {"send_seed": True}),
    ({"size": "match_input"}, {"sizes": ["1024x1024"]}),
    ({"size": "match_input"}, {"pixels": 262_144}),
    ({}, {"send_seed": True}),
    *(({}, {name: "low"}) for name in ("quality", "background", "moderation", "input_fidelity")),
    ({}, {"output_format": "jpeg"}),
    ({}, {"mode": "chat"}),
    ({}, {"revision": "b"}),
    ({}, {"extra": {"steps": 3}}),
    ({}, {"base_url": "https://draw.example/v1"}),
    ({}, {"base_url": "https://draw.example/tulip/v1"}),
]
KEEPS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"base_url": "http://127.0.0.1:9999/v1/"}),
    ({}, {"most_inputs": 2, "fewest_inputs": 1, "api_key_env": "MY_VARIABLE"}),
    ({}, {"sizes": ["1024x1024"], "pixels": 262_144}),  # nothing is likened to an input
    ({}, {"quality": None, "extra": {}}),  # which are the defaults
    ({"limits": {"concurrency": 3, "timeout_s": 5}, "price": PRICE, "name": "renamed"}, {}),
    ({"seed": 9}, {}),  # OpenAI's own models take none
]


def test_the_signature_is_what_decides_an_image() -> None:
    signatures = [
        json.dumps(made({**LOCAL, **parameters}, **further).signature(), sort_keys=True)
        for further, parameters in [({}, {}), *KEEPS, *DECIDES]
    ]
    assert len(set(signatures[: len(KEEPS) + 1])) == 1
    assert len(set(signatures)) == len(DECIDES) + 1
    assert "tulip" not in "".join(signatures)


@pytest.mark.parametrize(
    ("further", "parameters", "message"),
    [
        ({}, {"qualty": "high"}, "unknown key 'qualty'; did you mean 'quality'?"),
        ({"model": None}, {}, "has no model: adapter 'openai_images' needs one"),
        ({}, {"most_inputs": 1, "fewest_inputs": 2}, "fewest_inputs is 2 and most_inputs 1"),
        ({}, {"api_key_env": "tulip-1234-of-mine"}, "not a name of an environment variable"),
        ({}, {"sizes": ["big"]}, "'big' is not a size: expected width and height"),
        ({}, {"extra": {"n": 4}}, "expected no n, which the adapter sets itself"),
        ({}, {"base_url": "draw.example"}, "base_url is 'draw.example': expected an address"),
        ({}, {"base_url": "https://a.example/v1/images/edits"}, "without what requests add to it"),
        ({}, {"mode": "chat", "quality": "low"}, "mode chat takes no quality"),
        ({"size": "match_input"}, {"mode": "chat"}, "size is 'match_input', and mode chat has"),
    ],
)
def test_mistakes_in_a_config_are_one_line(further: Any, parameters: Any, message: str) -> None:
    said = said_by(EchoError, made, parameters, **further)
    assert message in said
    assert "tulip" not in said
