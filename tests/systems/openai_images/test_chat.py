"""Tasks put to a chat model that answers with images, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, TransientError
from echo_hf.systems.registry import make_system
from tests.engines.openai.loopback_server import Answer, LoopbackServer, completion
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import IMAGE, KEY, base64_of, kept, task

URL = f"data:image/png;base64,{base64_of(IMAGE)}"


def _image(url: str = URL) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _drawn(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, answer: Answer, *inputs: Any
) -> GenerationResult:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.behave = lambda _: answer
    config = SystemConfig(
        name="talker",
        adapter="openai_images",
        model="northlight/lumen",
        developer="Northlight",
        status="current",
        parameters={"base_url": server.url, "mode": "chat", "extra": {"top_k": 1}},
    )
    with make_system(config) as system:
        return system.draw(task(*inputs))


def test_a_prompt_is_a_message(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for an image, and takes the price that the answer names."""
    usage = {"prompt_tokens": 20, "completion_tokens": 1300, "total_tokens": 1320, "cost": 0.0387}
    message = {"images": [_image()]}
    answer = completion("Here it is.", message=message, usage=usage, model="northlight/lumen-2")
    drawn = _drawn(server, monkeypatch, answer)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "northlight/lumen",
        "messages": [{"role": "user", "content": "a fox in the snow"}],
        "modalities": ["image", "text"],
        "top_k": 1,
    }
    assert (drawn.outcome, drawn.image, drawn.text) == (Outcome.OK, IMAGE, "Here it is.")
    assert (drawn.usage, drawn.cost_usd) == (Usage(20, 1300, 0), 0.0387)
    assert drawn.model_reported == "northlight/lumen-2"


def test_inputs_stand_before_the_prompt(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As data URLs, in order."""
    first, second = encoded(noise((30, 20)), "JPEG"), IMAGE
    inputs = [kept(tmp_path, first), kept(tmp_path, second)]
    answer = completion(None, message={"images": [_image()]})
    assert _drawn(server, monkeypatch, answer, *inputs).outcome is Outcome.OK
    assert server.asked[0].body["messages"][0]["content"] == [
        _image(f"data:image/jpeg;base64,{base64_of(first)}"),
        _image(),
        {"type": "text", "text": "a fox in the snow"},
    ]


def test_an_image_may_be_a_part_of_the_content(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As vllm-omni answers; one that stands beside it, too, is the same."""
    content = [_image(), {"type": "text", "text": "Here."}]
    drawn = _drawn(server, monkeypatch, completion(content))
    assert (drawn.outcome, drawn.image, drawn.text) == (Outcome.OK, IMAGE, "Here.")
    both = completion(content, message={"images": [_image()]})
    assert _drawn(server, monkeypatch, both).details["pictures"] == 1


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (completion("I will draw a", "length"), "length"),
        (completion("", "error"), "error"),
        (completion(None, "tool_calls", message={"tool_calls": [{}]}), "tool_calls"),
        (completion("I will", None), None),
        (completion([{"type": "image", "image": "x"}]), "stop"),
        (completion("Here it is.", message={"images": [{"url": "x"}]}), "stop"),
    ],
    ids=str,
)
def test_what_broke_down_is_no_answer(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, answer: Answer, code: str | None
) -> None:
    """Words that came to no end, and parts that cannot be read, are asked for again."""
    drawn = _drawn(server, monkeypatch, answer)
    assert (drawn.outcome, drawn.stage, drawn.code) == (Outcome.FAILED, OutcomeStage.ANSWER, code)
    assert (drawn.text or "").startswith("the answer holds no image")


def test_of_several_images_the_first_is_taken(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many there were is told."""
    other = f"data:image/jpeg;base64,{base64_of(encoded(noise((8, 8)), 'JPEG'))}"
    answer = completion("", message={"images": [_image(), _image(other)]})
    drawn = _drawn(server, monkeypatch, answer)
    assert (drawn.image, drawn.details["pictures"]) == (IMAGE, 2)


@pytest.mark.parametrize(
    ("answer", "outcome", "stage", "text"),
    [
        (
            completion("I can only describe it."),
            Outcome.NO_IMAGE,
            OutcomeStage.ANSWER,
            "I can only describe it.",
        ),
        (completion(""), Outcome.NO_IMAGE, OutcomeStage.ANSWER, None),
        (
            completion(None, message={"refusal": "I will not draw that."}),
            Outcome.REFUSED,
            OutcomeStage.INPUT,
            "I will not draw that.",
        ),
        (
            completion(None, "content_filter"),
            Outcome.REFUSED,
            OutcomeStage.OUTPUT,
            "content_filter",
        ),
        (
            completion(None, message={"images": [_image("https://a.example/1.png")]}),
            Outcome.FAILED,
            OutcomeStage.ANSWER,
            "not followed",
        ),
        (
            Answer({"choices": []}),
            Outcome.FAILED,
            OutcomeStage.ANSWER,
            "the answer holds no image",
        ),
    ],
)
def test_what_came_instead_of_an_image_is_told(
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    outcome: Outcome,
    stage: OutcomeStage,
    text: str | None,
) -> None:
    """Words are the model's answer, a refusal is one, and what cannot be read is a failure."""
    drawn = _drawn(server, monkeypatch, answer)
    assert (drawn.outcome, drawn.stage, drawn.image) == (outcome, stage, None)
    assert drawn.text == text or (text is not None and text in (drawn.text or ""))


def test_an_error_inside_a_choice_counts(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Routers answer 200 for a provider that failed."""
    choice = {"index": 0, "error": {"code": 503, "message": "provider is busy"}, "message": {}}
    with pytest.raises(TransientError, match="provider is busy") as caught:
        _drawn(server, monkeypatch, Answer({"choices": [choice]}))
    assert caught.value.code == "503"
