"""Tasks put to a Gemini model, over HTTP."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import ImageRef, Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, System, TransientError
from echo_hf.systems.registry import make_system
from tests.engines.openai.loopback_server import SILENCE, Answer, LoopbackServer
from tests.images_for_tests import encoded, noise
from tests.systems.drawing_for_tests import HUGE, IMAGE, KEY, kept, task
from tests.systems.google_images.gemini_for_tests import answer, candidate, config, fault, image

pytest.importorskip("google.genai", reason="google-genai, of the extra `google`")
pytestmark = pytest.mark.extras

Make = Callable[..., System]


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes systems that ask the server, with a key; other settings of the client do not count."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    base_url = server.url.removesuffix("/v1")

    def of(further: dict[str, Any] | None = None, **parameters: Any) -> System:
        return make_system(config({"base_url": base_url, **parameters}, **(further or {})))

    return of


def _drawn(system: System, *inputs: ImageRef) -> GenerationResult:
    with system:
        return system.draw(task(*inputs))


def test_a_prompt_alone_is_drawn(server: LoopbackServer, make: Make) -> None:
    """One request, one image, the very bytes, with what was said beside it."""
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 1300, "thoughtsTokenCount": 5}
    server.behave = lambda _: answer(
        candidate({"text": "Here."}, image()), usageMetadata=usage, modelVersion="lumen-2"
    )
    drawn = _drawn(make({"seed": 7}))
    (asked,) = server.asked
    assert asked.path == "/v1beta/models/tiny-image:generateContent"
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.body["contents"] == [{"parts": [{"text": "a fox in the snow"}], "role": "user"}]
    assert asked.body["generationConfig"] == {"responseModalities": ["TEXT", "IMAGE"], "seed": 7}
    assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
    assert (drawn.text, drawn.model_reported, drawn.seed) == ("Here.", "lumen-2", 7)
    assert (drawn.usage, drawn.code) == (Usage(9, 1305, 0), None)


def test_inputs_stand_before_the_prompt(server: LoopbackServer, make: Make, tmp_path: Path) -> None:
    """As the bytes that they are, in order, with the shape and the settings of the config."""
    server.behave = lambda _: answer(candidate(image()))
    first, second = encoded(noise((60, 40)), "JPEG"), IMAGE
    system = make(
        {"size": "match_input"},
        image_size="2K",
        send_seed=False,
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"},
    )
    drawn = _drawn(system, kept(tmp_path, first), kept(tmp_path, second))
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


@pytest.mark.parametrize(
    ("said", "outcome", "stage", "code"),
    [
        (
            Answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}),
            Outcome.REFUSED,
            OutcomeStage.INPUT,
            "PROHIBITED_CONTENT",
        ),
        (
            answer({"finishReason": "IMAGE_SAFETY"}),
            Outcome.REFUSED,
            OutcomeStage.OUTPUT,
            "IMAGE_SAFETY",
        ),
        (answer({"finishReason": "NO_IMAGE"}), Outcome.NO_IMAGE, OutcomeStage.ANSWER, "NO_IMAGE"),
        (
            answer(candidate({"text": "I would rather talk."})),
            Outcome.NO_IMAGE,
            OutcomeStage.ANSWER,
            "STOP",
        ),
        (Answer({}), Outcome.FAILED, OutcomeStage.ANSWER, None),
        (answer(candidate(image(HUGE))), Outcome.FAILED, OutcomeStage.ANSWER, None),
        (answer(candidate(image(b"%PDF"))), Outcome.FAILED, OutcomeStage.ANSWER, None),
        (Answer(b"<!doctype html>"), Outcome.FAILED, OutcomeStage.ANSWER, None),
        (Answer([1, 2]), Outcome.FAILED, OutcomeStage.ANSWER, None),
        (
            fault(400, "Unsupported aspect ratio", "INVALID_ARGUMENT"),
            Outcome.FAILED,
            OutcomeStage.REQUEST,
            "INVALID_ARGUMENT",
        ),
        (
            fault(404, "This model is no longer available to new users.", "NOT_FOUND"),
            Outcome.RETIRED,
            OutcomeStage.REQUEST,
            "NOT_FOUND",
        ),
    ],
    ids=str,
)
def test_what_came_instead_of_an_image_is_told(
    server: LoopbackServer,
    make: Make,
    said: Answer,
    outcome: Outcome,
    stage: OutcomeStage,
    code: str | None,
) -> None:
    """Blocks are successes by their status; one request in each case."""
    server.behave = lambda _: said
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage, drawn.code) == (outcome, stage, code)
    assert drawn.image is None
    assert len(server.asked) == 1
    json.dumps(drawn.details)


@pytest.mark.parametrize(
    ("said", "code", "wait_s"),
    [
        (
            fault(
                429,
                "Quota exceeded",
                "RESOURCE_EXHAUSTED",
                details=[
                    {"@type": "type.googleapis.com/google.rpc.Help"},
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"},
                ],
            ),
            "RESOURCE_EXHAUSTED",
            17.0,
        ),
        (
            fault(503, "overloaded", "UNAVAILABLE", headers={"Retry-After": "3"}),
            "UNAVAILABLE",
            3.0,
        ),
        (Answer(b"<html>bad gateway", 502), "502", None),
        (Answer(b"x", cut_after=0), "connection", None),
        (Answer(b'{"candidates": [' + b" " * 1000, cut_after=500), "connection", None),
    ],
    ids=str,
)
def test_what_may_pass_is_left_to_the_runner(
    server: LoopbackServer, make: Make, said: Answer, code: str, wait_s: float | None
) -> None:
    """One request only, and how long the server asks to wait."""
    server.behave = lambda _: said
    with make() as system, pytest.raises(TransientError) as caught:
        system.draw(task())
    assert caught.value.wait_s == wait_s
    assert caught.value.code == code
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "said",
    [SILENCE, Answer(b"x" * 100_000, trickles=True), Answer(b"x" * 100_000, 400, trickles=True)],
    ids=["silent", "trickles", "error"],
)
def test_a_slow_server_is_waited_for_only_so_long(
    server: LoopbackServer, make: Make, said: Answer
) -> None:
    """As long as the config says, whether nothing comes or a little all the time."""
    server.behave = lambda _: said
    system = make({"limits": {"timeout_s": 0.3}})
    with system, pytest.raises(TransientError, match=r"no answer within 0\.3 s") as caught:
        system.draw(task())
    assert caught.value.code == "timeout"


def test_an_endless_answer_is_cut(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limits of what is read, which are made small here; an error's status counts."""
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_ANSWER", 1000)
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_OF_AN_ERROR", 9)
    server.behave = lambda _: answer(candidate(image(b"x" * 5000)))
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.text == "the answer has more than 1000 bytes"
    server.behave = lambda _: Answer(b"overload" * 5000, 503)
    with make() as system, pytest.raises(TransientError, match=r"status 503: overloado$"):
        system.draw(task())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            fault(400, f"API key not valid: {KEY}", "INVALID_ARGUMENT"),
            "put a valid key into environment variable 'GEMINI_API_KEY'",
        ),
        (
            fault(404, "models/tiny-image is not found for v1beta", "NOT_FOUND"),
            "model is 'tiny-image', expected one",
        ),
        (Answer(b"", 302, {"Location": "https://elsewhere.example"}), "base_url is 'http://127"),
        (answer({"finishReason": "PUP_LIMITED_DISABLED"}), "the account is stopped"),
    ],
    ids=str,
)
def test_what_no_task_could_survive_ends_the_run(
    server: LoopbackServer, make: Make, said: Answer, message: str
) -> None:
    """In one line that says what to mend, without the key."""
    server.behave = lambda _: said
    with make() as system, pytest.raises(GenerationError, match=message) as caught:
        system.draw(task())
    assert KEY not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Answer({"name": "models/tiny-image"}), None),
        (
            fault(404, "Model tiny-image is no longer available.", "NOT_FOUND"),
            Retired("Model tiny-image is no longer available.", "NOT_FOUND"),
        ),
        (Answer(b"<html>not found", 404), None),
        (fault(500, "oops", "INTERNAL"), None),
        (Answer(b"", cut_after=0), None),
        (Answer(b"<!doctype html>"), None),
    ],
    ids=str,
)
def test_a_model_that_is_gone_is_found_out_beforehand(
    server: LoopbackServer, make: Make, said: Answer, expected: Retired | None
) -> None:
    """A server that does not tell is not taken at its silence."""
    server.behave = lambda _: said
    with make() as system:
        assert system.preflight() == expected
    assert [asked.path for asked in server.asked] == ["/v1beta/models/tiny-image"]


def test_a_model_that_never_was_is_found_out_beforehand(server: LoopbackServer, make: Make) -> None:
    """Its name may be mistyped: it is told, and nothing is retired."""
    server.behave = lambda _: fault(404, "models/tiny-image is not found", "NOT_FOUND")
    with make() as system, pytest.raises(GenerationError, match="model is 'tiny-image', expected"):
        system.preflight()


def test_a_wrong_key_is_found_out_beforehand(server: LoopbackServer, make: Make) -> None:
    """No task could succeed with it."""
    server.behave = lambda _: fault(400, "API key not valid. Pass a valid one.", "INVALID_ARGUMENT")
    with make() as system, pytest.raises(GenerationError, match="put a valid key into"):
        system.preflight()


def test_the_key_is_in_nothing_that_is_kept(server: LoopbackServer, make: Make) -> None:
    """Not even where the server repeats it in every field."""
    server.behave = lambda _: answer(
        candidate({"text": f"key {KEY}"}, image()), modelVersion=KEY, responseId=f"r-{KEY}"
    )
    drawn = _drawn(make())
    assert KEY not in repr(drawn)
    assert (drawn.text, drawn.details["request_id"]) == ("key (key)", "r-(key)")
    server.behave = lambda _: Answer(f"<html>{KEY}".encode())
    assert KEY not in repr(_drawn(make()))


def test_a_gateway_without_keys_gets_none(server: LoopbackServer, make: Make) -> None:
    """The client's own stand-in is no secret."""
    server.behave = lambda _: answer(candidate(image()))
    assert _drawn(make(api_key_env=None)).outcome is Outcome.OK
    assert server.asked[0].headers["x-goog-api-key"] == "none"
