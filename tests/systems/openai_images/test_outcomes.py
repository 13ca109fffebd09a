"""Each way in which a server gives no image, over HTTP, and what becomes of the task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import TransientError
from tests.engines.openai.loopback_server import SILENCE, Answer, LoopbackServer, fault
from tests.systems.drawing_for_tests import HUGE, IMAGE, KEY, base64_of, image_answer, task
from tests.systems.openai_images.images_for_tests import HTML, USAGE, Make, drawn_by


@pytest.mark.parametrize(
    ("error", "stage", "code"),
    [
        (
            {
                "message": "Your request was rejected by the safety system.",
                "type": "image_generation_user_error",
                "code": "moderation_blocked",
            },
            OutcomeStage.INPUT,
            "moderation_blocked",
        ),
        (
            {
                "message": "Your request was rejected.",
                "code": "moderation_blocked",
                "moderation_details": {"moderation_stage": "output", "categories": ["violence"]},
            },
            OutcomeStage.OUTPUT,
            "moderation_blocked",
        ),
    ],
)
def test_refusals_are_told_from_failures(
    server: LoopbackServer, make: Make, error: dict[str, Any], stage: OutcomeStage, code: str
) -> None:
    """By their codes and their words, with the stage where the server names it."""
    server.behave = lambda _: Answer({"error": error}, 400)
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage, drawn.code) == (Outcome.REFUSED, stage, code)
    assert drawn.text == error["message"]
    told = error.get("moderation_details", {"moderation_stage": "untold"})
    assert drawn.details["moderation_stage"] == told["moderation_stage"]
    assert drawn.details["moderation_categories"] == told.get("categories", [])


@pytest.mark.parametrize(
    ("answer", "code", "wait_s"),
    [
        (fault(429, "slow down", code="rate_limit_exceeded"), "rate_limit_exceeded", None),
        (fault(429, "slow down", headers={"Retry-After": "17"}), "429", 17.0),
        (fault(503, "busy", headers={"retry-after-ms": "250"}), "503", 0.25),
        (Answer({"error": {"message": "upstream", "code": 502}}, 200), "502", None),
        (Answer(b"x", cut_after=0), "connection", None),
        (Answer(b'{"data": [' + b" " * 1000, cut_after=500), "connection", None),
    ],
    ids=str,
)
def test_what_may_pass_is_left_to_the_runner(
    server: LoopbackServer, make: Make, answer: Answer, code: str, wait_s: float | None
) -> None:
    """One request only, and how long the server asks to wait."""
    server.behave = lambda _: answer
    with make() as system, pytest.raises(TransientError) as caught:
        system.draw(task())
    assert (caught.value.code, caught.value.wait_s) == (code, wait_s)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [SILENCE, Answer(b"x" * 100_000, trickles=True), Answer(b"x" * 100_000, 400, trickles=True)],
    ids=["silent", "trickles", "error"],
)
def test_a_slow_server_is_waited_for_only_so_long(
    server: LoopbackServer, make: Make, answer: Answer
) -> None:
    """Whether nothing comes, or a little all the time."""
    server.behave = lambda _: answer
    system = make({"limits": {"timeout_s": 0.3}})
    with system, pytest.raises(TransientError, match=r"no answer within 0\.3 s") as caught:
        system.draw(task())
    assert caught.value.code == "timeout"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fault(401, f"Incorrect API key provided: {KEY}"), "a valid key into .*'OPENAI_API_KEY'"),
        (fault(429, "You exceeded", code="insufficient_quota"), "no credit left"),
        (fault(403, "no access"), "may not use model 'tiny-image'"),
        (fault(404, "nope", code="model_not_found"), "model is 'tiny-image', expected one"),
        (Answer(b"not found", 404), "base_url is 'http://127"),
        (Answer(b"", 302, {"Location": "https://elsewhere.example"}), "base_url is 'http://127"),
    ],
    ids=str,
)
def test_what_no_task_could_survive_ends_the_run(
    server: LoopbackServer, make: Make, answer: Answer, message: str
) -> None:
    """In one line that says what to mend, without the key."""
    server.behave = lambda _: answer
    with make() as system, pytest.raises(GenerationError, match=message) as caught:
        system.draw(task())
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 1


def test_another_error_is_the_tasks_own(server: LoopbackServer, make: Make) -> None:
    """With the code and the words of the server."""
    server.behave = lambda _: fault(400, "unknown size", code="invalid_value")
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
    assert (drawn.code, drawn.text) == ("invalid_value", "status 400: unknown size")


def test_text_that_no_file_could_hold_is_mended(server: LoopbackServer, make: Make) -> None:
    """Half a character, which JSON can spell."""
    body = json.dumps({"data": [{"b64_json": base64_of(IMAGE), "revised_prompt": "fox \ud83e"}]})
    server.behave = lambda _: Answer(body.replace("}]}", '}], "size": "\\udc00"}').encode())
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.revised_prompt) == (Outcome.OK, "fox ?")
    assert drawn.details["as_drawn"] == {"size": "?"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (HTML, "the answer is not a JSON object: it begins '<!doctype html>"),
        (Answer([1]), "not a JSON object"),
        (Answer({"data": []}), "the answer holds no image"),
        (image_answer(b"%PDF-1.7 is no picture"), "is not a readable image"),
        (image_answer(IMAGE[:-200]), "cannot be decoded"),
        (image_answer(HUGE), "12000 x 12000, expected at most 100000000 pixels"),
        (image_answer(entry={"b64_json": "*"}), "not base64"),
        (image_answer(entry={"b64_json": None, "url": "https://a.example/1.png"}), "not followed"),
    ],
)
def test_what_is_no_image_is_a_failure(
    server: LoopbackServer, make: Make, answer: Answer, why: str
) -> None:
    """Nothing is kept, no address is followed, and the tokens still count."""
    if isinstance(answer.body, dict):
        answer = Answer({**answer.body, "usage": USAGE})
    server.behave = lambda _: answer
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert why in (drawn.text or "")
    assert drawn.image is None
    assert len(server.asked) == 1
    if isinstance(answer.body, dict):
        assert drawn.usage == Usage(1100, 4000, 0)


def test_an_endless_answer_is_cut(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit of what is read, which is made small here."""
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_ANSWER", 1000)
    server.behave = lambda _: image_answer(b"x" * 5000)
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.text == "the answer has more than 1000 bytes"


def test_an_endless_error_is_cut_and_its_status_counts(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a limit of its own, which is made small here."""
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_OF_AN_ERROR", 9)
    server.behave = lambda _: Answer(b"overload" * 5000, 503)
    with make() as system, pytest.raises(TransientError, match=r"status 503: overloado$"):
        system.draw(task())


@pytest.mark.parametrize(
    "answer",
    [
        fault(429, f"slow {KEY}"),
        fault(400, f"bad {KEY}", code=f"c{KEY}"),
        fault(400, f"rejected by the safety system {KEY}"),
    ],
    ids=str,
)
def test_errors_do_not_show_the_key(server: LoopbackServer, make: Make, answer: Answer) -> None:
    """Whatever becomes of the task."""
    server.behave = lambda _: answer
    try:
        said = repr(drawn_by(make()))
    except TransientError as passing:
        said = f"{passing} {passing.text} {passing.code}"
    assert "(key)" in said
    assert KEY not in said
