"""Tasks put to a Gemini model, and what becomes of them by its answer."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import OutputPrice
from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.systems.base import GenerationResult, OutcomeStage, System
from echo_hf.systems.google_images import GoogleImages, read_answer
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import Answer, LoopbackServer
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import (
    HUGE,
    IMAGE,
    KEY,
    drawn_by,
    google_answer,
    google_image,
    kept,
)
from tests.systems.drawing_for_tests import config as hosted_config

OTHER = encoded(noise((8, 8)), "PNG")
PRICE = OutputPrice.model_validate(
    {"text_in": 1, "image_in": 2, "text_out": 10, "image_out": 30, "as_of": "2026-11-21"}
)
Make = Callable[..., System]


def system_of(parameters: dict[str, Any], **further: Any) -> GoogleImages:
    return GoogleImages(hosted_config("google", parameters, **further))


# What an answer makes of a task, without the client.


def picture(data: bytes = IMAGE, **further: Any) -> dict[str, Any]:
    return {"inline_data": {"data": data, "mime_type": "image/png"}, "text": None, **further}


def read(
    *parts: dict[str, Any],
    reason: str | None = "STOP",
    price: OutputPrice | None = None,
    **further: Any,
) -> GenerationResult:
    content = {"parts": list(parts), "role": "model"} if parts else None
    document = {"candidates": [{"content": content, "finish_reason": reason}], **further}
    return read_answer(document, price)


def test_an_image_among_thoughts_is_no_output() -> None:
    drawn = read(
        {"text": "First I sketch.", "thought": True},
        picture(OTHER, thought=True),
        {"text": "Done."},
        picture(),
        picture(OTHER),
    )
    assert (drawn.outcome, drawn.image) == (Outcome.OK, IMAGE)
    assert (drawn.text, drawn.details["pictures"]) == ("First I sketch.\nDone.", 2)
    only_thoughts = read(picture(OTHER, thought=True))
    assert (only_thoughts.outcome, only_thoughts.image) == (Outcome.NO_IMAGE, None)


@pytest.mark.parametrize(
    ("outcome", "stage", "reasons"),
    [
        (
            *("refused", "output"),
            "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY MODEL_ARMOR "
            "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION ESCALATION",
        ),
        ("no_image", "answer", "STOP NO_IMAGE"),
        ("failed", "answer", "IMAGE_OTHER MALFORMED_RESPONSE MAX_TOKENS OTHER SOMETHING_NEW"),
    ],
)
def test_the_reason_of_its_end_says_what_an_answer_without_an_image_is(
    outcome: str, stage: str, reasons: str
) -> None:
    for reason in reasons.split():
        drawn = read({"text": "I beg"}, reason=reason)
        assert (drawn.outcome, drawn.stage, drawn.code) == (outcome, stage, reason)
        said = f"the answer holds no image and ended with {reason!r}: I beg"
        assert drawn.text == (said if outcome == "failed" else "I beg")
        assert read(picture(), reason=reason).outcome is Outcome.OK


def test_a_blocked_prompt_is_refused() -> None:
    for reason in ("SAFETY", "SOMETHING", "BLOCKED_REASON_UNSPECIFIED", None):
        feedback = {"block_reason": reason, "block_reason_message": "Not this."}
        drawn = read_answer({"candidates": None, "prompt_feedback": feedback}, None)
        if reason in ("SAFETY", "SOMETHING"):
            assert (drawn.outcome, drawn.stage) == (Outcome.REFUSED, OutcomeStage.INPUT)
            assert (drawn.code, drawn.text) == (reason, "Not this.")
        else:
            assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)


TEXT = [{"modality": "TEXT", "token_count": 100}]
USAGE = {
    "prompt_token_count": 600,
    "prompt_tokens_details": [*TEXT, {"modality": "IMAGE", "token_count": 500}],
    "candidates_token_count": 1300,
    "candidates_tokens_details": [{"modality": "IMAGE", "token_count": 1290}],
    "thoughts_token_count": 40,
    "cached_content_token_count": 64,
}


@pytest.mark.parametrize(
    ("counted", "cost"),
    [
        # By hand: (100 x 1 + 500 x 2 + (10 + 40) x 10 + 1290 x 30) / 1 000 000.
        (USAGE, 0.0403),
        # A refusal: 100 tokens of text that were sent, nothing that came.
        ({"prompt_token_count": 100, "prompt_tokens_details": TEXT}, 0.0001),
        # Tokens that are not told apart have no price.
        ({"prompt_token_count": 100, "candidates_token_count": 1300}, None),
        (None, None),
    ],
)
def test_tokens_are_priced_by_their_kind(counted: Any, cost: float | None) -> None:
    drawn = read(picture(), usage_metadata=counted, price=PRICE)
    assert drawn.cost_usd == (cost if cost is None else pytest.approx(cost))
    assert (drawn.usage == Usage(600, 1340, 64)) == (counted is USAGE)


# What a config says.


def test_the_number_of_inputs_is_the_models() -> None:
    for model, expected in (("gemini-2.5-flash-image-preview", 3), ("gemini-3-pro-image", 14)):
        assert system_of({}, model=model).options.most_inputs == expected
        assert system_of({"most_inputs": 5}, model=model).options.most_inputs == 5


@pytest.mark.parametrize(
    ("further", "parameters", "message"),
    [
        ({}, {"aspect_ratios": ["wide"]}, "'wide'"),
        ({}, {"modalities": ["TEXT"]}, "expected IMAGE among them"),
        ({}, {"safety_settings": {"HARASSMENT": "OFF"}}, "'HARASSMENT' is no category"),
        ({}, {"base_url": "https://a.example/?x=1"}, "base_url is not shown: expected an address"),
        ({"size": {"width": 1000, "height": 700}}, {}, "size is 1000 x 700, and the model"),
    ],
)
def test_mistakes_in_a_config_are_one_line(further: Any, parameters: Any, message: str) -> None:
    assert message in said_by(GenerationError, system_of, parameters, **further)


DECIDES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"size": {"width": 1920, "height": 1080}}, {}),
    ({"size": "match_input"}, {}),
    ({"size": "match_input"}, {"aspect_ratios": ["1:1", "4:5"]}),
    ({}, {"send_seed": False}),
    ({}, {"image_size": "2K"}),
    ({}, {"modalities": ["IMAGE"]}),
    ({}, {"safety_settings": {"HARM_CATEGORY_HARASSMENT": "OFF"}}),
    ({}, {"api_version": "v1"}),
]


def test_the_signature_is_what_decides_an_image() -> None:
    unseen = {"api_key_env": "A", "most_inputs": 1, "aspect_ratios": ["1:1"]}
    signatures = [
        json.dumps(system_of(given, **further).signature(), sort_keys=True)
        for further, given in [({"name": "other"}, unseen), ({}, {}), *DECIDES]
    ]
    assert signatures[0] == signatures[1]
    assert len(set(signatures)) == len(DECIDES) + 1


# Over HTTP, with the client.


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    pytest.importorskip("google.genai", reason="google-genai, of the extra `google`")
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    base_url = server.url.removesuffix("/v1")

    def of(further: dict[str, Any] | None = None, **parameters: Any) -> System:
        return system_of({"base_url": base_url, **parameters}, **(further or {}))

    return of


@pytest.mark.extras
def test_a_prompt_alone_is_drawn(server: LoopbackServer, make: Make) -> None:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1300, "thoughtsTokenCount": 5}
    server.behave = lambda _: google_answer(
        {"text": "Here."}, google_image(), usageMetadata=usage, modelVersion="lumen-2"
    )
    drawn = drawn_by(make({"seed": 7}))
    (asked,) = server.asked
    assert asked.path == "/v1beta/models/tiny-image:generateContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body["contents"] == [{"parts": [{"text": "a fox in the snow"}], "role": "user"}]
    assert asked.body["generationConfig"] == {"responseModalities": ["TEXT", "IMAGE"], "seed": 7}
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
    assert (drawn.text, drawn.model_reported, drawn.seed) == ("Here.", "lumen-2", 7)
    assert (drawn.usage, drawn.code) == (Usage(9, 1305, 0), None)


@pytest.mark.extras
def test_inputs_stand_before_the_prompt(server: LoopbackServer, make: Make, tmp_path: Path) -> None:
    server.behave = lambda _: google_answer(google_image())
    first, second = encoded(noise((60, 40)), "JPEG"), IMAGE
    system = make(
        {"size": "match_input"},
        image_size="2K",
        send_seed=False,
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
    )
    drawn = drawn_by(system, kept(tmp_path, first), kept(tmp_path, second))
    (asked,) = server.asked
    *images, text = asked.body["contents"][0]["parts"]
    blobs = [one["inlineData"] for one in images]
    # Versions of the client write the name in one way or the other, and the server reads both.
    types = [one.get("mimeType") or one.get("mime_type") for one in blobs]
    assert types == ["image/jpeg", "image/png"]
    assert [urlsafe_b64decode(one["data"]) for one in blobs] == [first, second]
    assert text == {"text": "a fox in the snow"}
    assert asked.body["generationConfig"] == {
        "responseModalities": ["TEXT", "IMAGE"],
        "imageConfig": {"aspectRatio": "3:2", "imageSize": "2K"},
    }
    assert asked.body["safetySettings"] == [
        {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
    ]
    assert (drawn.details["aspect_ratio"], drawn.details["image_size"]) == ("3:2", "2K")
    assert [one["size"] for one in drawn.details["inputs"]] == [[60, 40], [40, 24]]
    assert drawn.seed is None


BLOCKED = Answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})


@pytest.mark.extras
@pytest.mark.parametrize(
    ("said", "outcome", "stage", "code"),
    [
        (BLOCKED, "refused", "input", "PROHIBITED_CONTENT"),
        (google_answer({"text": "I would rather talk."}), "no_image", "answer", "STOP"),
        (google_answer(google_image(HUGE)), "failed", "answer", None),
        (Answer([1, 2]), "failed", "answer", None),
    ],
    ids=str,
)
def test_what_came_instead_of_an_image_is_told(
    server: LoopbackServer, make: Make, said: Answer, outcome: str, stage: str, code: str | None
) -> None:
    server.behave = lambda _: said
    drawn = drawn_by(make(image_size="2K"))
    assert (str(drawn.outcome), str(drawn.stage), drawn.code) == (outcome, stage, code)
    assert (drawn.image, drawn.details["image_size"]) == (None, "2K")
    assert len(server.asked) == 1
    json.dumps(drawn.details)
