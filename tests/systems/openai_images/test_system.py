"""Tasks put to a server that draws as OpenAI's does, over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import ImageRef, Usage
from echo_hf.errors import EchoError, GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Passing, Retired, System, make_system
from echo_hf.systems.config import SystemConfig
from tests.engines.openai.loopback_server import SILENCE, Answer, LoopbackServer, fault
from tests.pictures_for_tests import encoded, noise
from tests.systems.drawing_for_tests import (
    HUGE,
    KEY,
    PICTURE,
    Field,
    base64_of,
    form,
    image_answer,
    kept,
    task,
)

Make = Callable[..., System]
PRICE = {"text_in": 5, "image_in": 8, "text_out": 10, "image_out": 30, "as_of": "2026-11-21"}
USAGE = {
    "input_tokens": 1100,
    "output_tokens": 4000,
    "total_tokens": 5100,
    "input_tokens_details": {"text_tokens": 100, "image_tokens": 1000},
}
HTML = Answer(b"<!doctype html><title>Sign in</title>", headers={"Content-Type": "text/html"})


def config(parameters: dict[str, Any], **further: Any) -> SystemConfig:
    """A system of this adapter."""
    usual = {
        "name": "tiny",
        "adapter": "openai_images",
        "model": "tiny-image",
        "developer": "Northlight",
        "status": "current",
    }
    return SystemConfig.model_validate({**usual, **further, "parameters": parameters})


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes systems that ask the server, with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def of(further: dict[str, Any] | None = None, **parameters: Any) -> System:
        return make_system(config({"base_url": server.url, **parameters}, **(further or {})))

    return of


def _drawn(system: System, *inputs: ImageRef) -> Drawn:
    with system:
        return system.draw(task(*inputs))


def test_a_prompt_alone_is_drawn(server: LoopbackServer, make: Make) -> None:
    """One request, one picture, the very bytes; sizes are left to the model."""
    server.behave = lambda _: image_answer(entry={"revised_prompt": "a red fox"}, usage=USAGE)
    drawn = _drawn(make(quality="high"))
    (asked,) = server.asked
    assert asked.path == "/v1/images/generations"
    assert asked.body == {
        "model": "tiny-image",
        "prompt": "a fox in the snow",
        "n": 1,
        "quality": "high",
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (drawn.outcome, drawn.picture, drawn.stage) == (Outcome.OK, PICTURE, None)
    assert (drawn.revised_prompt, drawn.usage) == ("a red fox", Usage(1100, 4000, 0))
    assert (drawn.seed, drawn.cost_usd) == (None, None)


def test_inputs_are_sent_to_be_edited_in_order(
    server: LoopbackServer, make: Make, tmp_path: Path
) -> None:
    """Both files arrive as the bytes that they are, the first one first."""
    server.behave = lambda _: image_answer()
    first, second = encoded(noise((30, 20)), "JPEG"), encoded(noise((10, 50)), "WEBP")
    drawn = _drawn(make(moderation="low"), kept(tmp_path, first), kept(tmp_path, second))
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


def test_a_single_input_is_no_list(server: LoopbackServer, make: Make, tmp_path: Path) -> None:
    """Servers with one input know the field by its plain name."""
    server.behave = lambda _: image_answer()
    _drawn(make(), kept(tmp_path, PICTURE))
    (asked,) = server.asked
    assert [one.name for one in form(asked) if one.file_name] == ["image"]


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
    server: LoopbackServer,
    make: Make,
    tmp_path: Path,
    size: Any,
    parameters: dict[str, Any],
    expected: str | None,
) -> None:
    """Of an input of 60 x 40 pixels; what was asked for is told."""
    server.behave = lambda _: image_answer()
    inputs = kept(tmp_path, encoded(noise((60, 40)), "PNG"))
    drawn = _drawn(make({"size": size}, **parameters), inputs)
    sent = {one.name: one.data.decode() for one in form(server.asked[0]) if not one.file_name}
    assert sent.get("size") == expected
    told = drawn.details["size"]
    assert (told and f"{told[0]}x{told[1]}") == expected


def test_a_seed_is_sent_where_the_server_takes_one(server: LoopbackServer, make: Make) -> None:
    """It is then a part of the outcome and of the signature."""
    server.behave = lambda _: image_answer()
    seeded = make({"seed": 7}, send_seed=True, extra={"num_inference_steps": 4})
    drawn = _drawn(seeded)
    assert server.asked[0].body["seed"] == 7
    assert server.asked[0].body["num_inference_steps"] == 4
    assert drawn.seed == 7
    assert seeded.signature()["seed"] == 7


def test_tokens_are_priced_by_their_kind(server: LoopbackServer, make: Make) -> None:
    """By hand: 100 x 5 + 1000 x 8 + 4000 x 30 millionths of a dollar."""
    server.behave = lambda _: image_answer(usage=USAGE)
    assert _drawn(make({"price": PRICE})).cost_usd == pytest.approx(0.1285)


def test_output_tokens_that_are_told_apart_are_priced_apart(
    server: LoopbackServer, make: Make
) -> None:
    """By hand: 1000 of the 4000 are text, at 10 dollars a million."""
    details = {"text_tokens": 1000, "image_tokens": 3000}
    usage = {**USAGE, "output_tokens_details": details}
    server.behave = lambda _: image_answer(usage=usage)
    assert _drawn(make({"price": PRICE})).cost_usd == pytest.approx(0.1085)


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
        (
            {"message": "Not that.", "code": "content_policy_violation"},
            OutcomeStage.INPUT,
            "content_policy_violation",
        ),
        ({"message": "Rejected by our safety system."}, OutcomeStage.INPUT, "400"),
    ],
)
def test_refusals_are_told_from_failures(
    server: LoopbackServer, make: Make, error: dict[str, Any], stage: OutcomeStage, code: str
) -> None:
    """By their codes and their words, with the stage where the server names it."""
    server.behave = lambda _: Answer({"error": error}, 400)
    drawn = _drawn(make())
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
        (fault(500, "oops", type="server_error"), "server_error", None),
        (fault(503, "busy", headers={"retry-after-ms": "250"}), "503", 0.25),
        (fault(409, "conflict"), "409", None),
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
    with make() as system, pytest.raises(Passing) as caught:
        system.draw(task())
    assert (caught.value.code, caught.value.wait_s) == (code, wait_s)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer", [SILENCE, Answer(b"x" * 100_000, trickles=True)], ids=["silent", "trickles"]
)
def test_a_slow_server_is_waited_for_only_so_long(
    server: LoopbackServer, make: Make, answer: Answer
) -> None:
    """Whether nothing comes, or a little all the time."""
    server.behave = lambda _: answer
    system = make({"limits": {"timeout_s": 0.3}})
    with system, pytest.raises(Passing, match=r"no answer within 0\.3 s") as caught:
        system.draw(task())
    assert caught.value.code == "timeout"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fault(401, f"Incorrect API key provided: {KEY}"), "a valid key into .*'OPENAI_API_KEY'"),
        (fault(402, "pay"), "no credit left"),
        (fault(429, "You exceeded", code="insufficient_quota"), "no credit left"),
        (fault(403, "no access"), "may not use model 'tiny-image'"),
        (fault(404, "nope", code="model_not_found"), "model is 'tiny-image', expected one"),
        (Answer(b"not found", 404), "base_url is 'http://127"),
        (fault(404, "Cannot POST /v1/models/tiny-model"), "base_url is 'http://127"),
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
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
    assert (drawn.code, drawn.text) == ("invalid_value", "status 400: unknown size")


def test_an_option_that_is_gone_is_no_model_that_is_gone(
    server: LoopbackServer, make: Make
) -> None:
    """It is the task's own failure, which another config mends."""
    server.behave = lambda _: fault(400, "For this model `style` is no longer supported")
    assert _drawn(make()).outcome is Outcome.FAILED


def test_text_that_no_file_could_hold_is_mended(server: LoopbackServer, make: Make) -> None:
    """Half a character, which JSON can spell."""
    body = json.dumps({"data": [{"b64_json": base64_of(PICTURE), "revised_prompt": "fox \ud83e"}]})
    server.behave = lambda _: Answer(body.replace("}]}", '}], "size": "\\udc00"}').encode())
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.revised_prompt) == (Outcome.OK, "fox ?")
    assert drawn.details["as_drawn"] == {"size": "?"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (HTML, "the answer is no JSON object: it begins '<!doctype html>"),
        (Answer([1]), "no JSON object"),
        (Answer({"data": []}), "the answer holds no picture"),
        (image_answer(b"%PDF-1.7 is no picture"), "is no readable picture"),
        (image_answer(PICTURE[:-200]), "cannot be decoded"),
        (image_answer(HUGE), "12000 x 12000, expected at most 100000000 pixels"),
        (image_answer(entry={"b64_json": "*"}), "no base64"),
        (image_answer(entry={"b64_json": None, "url": "https://a.example/1.png"}), "not followed"),
    ],
)
def test_what_is_no_picture_is_a_failure(
    server: LoopbackServer, make: Make, answer: Answer, why: str
) -> None:
    """Nothing is kept, no address is followed, and the tokens still count."""
    if isinstance(answer.body, dict):
        answer = Answer({**answer.body, "usage": USAGE})
    server.behave = lambda _: answer
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert why in (drawn.text or "")
    assert drawn.picture is None
    assert len(server.asked) == 1
    if isinstance(answer.body, dict):
        assert drawn.usage == Usage(1100, 4000, 0)


def test_an_endless_answer_is_cut(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the limit of what is read, which is made small here."""
    monkeypatch.setattr("echo_hf.systems.openai_images.connection.MOST_ANSWER", 1000)
    server.behave = lambda _: image_answer(b"x" * 5000)
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.text == "the answer has more than 1000 bytes"


def test_a_picture_may_come_as_a_data_url(server: LoopbackServer, make: Make) -> None:
    """It holds the picture itself."""
    url = f"data:image/png;base64,{base64_of(PICTURE)}"
    server.behave = lambda _: image_answer(entry={"b64_json": None, "url": url})
    assert _drawn(make()).picture == PICTURE


@pytest.mark.parametrize(
    ("parameters", "number"), [({"most_inputs": 1}, 2), ({"fewest_inputs": 1}, 0)]
)
def test_a_task_with_the_wrong_number_of_inputs_is_unsupported(
    server: LoopbackServer,
    make: Make,
    tmp_path: Path,
    parameters: dict[str, int],
    number: int,
) -> None:
    """None is dropped, and nothing is asked."""
    drawn = _drawn(make(**parameters), *[kept(tmp_path, PICTURE)] * number)
    assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert f"has {number} input pictures" in (drawn.text or "")
    assert not server.asked


def test_an_input_that_cannot_be_read_is_the_tasks_own_failure(
    server: LoopbackServer, make: Make, tmp_path: Path
) -> None:
    """Nothing is asked."""
    reference = kept(tmp_path, b"no picture")
    drawn = _drawn(make(), reference)
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "input")
    assert not server.asked


def test_the_key_is_in_nothing_that_is_kept(server: LoopbackServer, make: Make) -> None:
    """Not even where the server repeats it in every field."""
    entry = {"revised_prompt": f"fox {KEY}"}
    server.behave = lambda _: image_answer(
        entry=entry, model=KEY, size=KEY, headers={"x-request-id": f"r-{KEY}"}
    )
    system = make()
    drawn = _drawn(system)
    assert drawn.outcome is Outcome.OK
    assert KEY not in repr(drawn)
    assert drawn.details["request_id"] == "r-(key)"
    json.dumps(drawn.details)
    assert KEY not in json.dumps(system.signature())


@pytest.mark.parametrize(
    "answer",
    [
        fault(429, f"slow {KEY}"),
        fault(400, f"bad {KEY}", code=f"c{KEY}"),
        fault(400, f"safety system {KEY}"),
    ],
    ids=str,
)
def test_errors_do_not_show_the_key(server: LoopbackServer, make: Make, answer: Answer) -> None:
    """Whatever becomes of the task."""
    server.behave = lambda _: answer
    try:
        said = repr(_drawn(make()))
    except Passing as passing:
        said = f"{passing} {passing.text} {passing.code}"
    assert "(key)" in said
    assert KEY not in said


def test_a_missing_key_is_told_before_anything_is_asked(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its variable, in one line."""
    system = make_system(config({"base_url": "https://draw.example/v1"}))
    with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' is not set"):
        system.preflight()
    with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' is not set"):
        system.draw(task())


def test_a_private_server_needs_no_key(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is sent, whatever the environment holds."""
    server.behave = lambda _: image_answer()
    assert _drawn(make(api_key_env=None)).outcome is Outcome.OK
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer({"id": "tiny-image", "shutdown_date": None}), None),
        (Answer({"id": "tiny-image", "shutdown_date": "2999-01-01"}), None),
        (Answer({"id": "tiny-image", "shutdown_date": "soon"}), None),
        (
            Answer({"id": "tiny-image", "shutdown_date": "2026-10-23"}),
            Retired("shutdown_date is 2026-10-23", "shutdown_date"),
        ),
        (
            fault(404, "The model `tiny-image` does not exist", code="model_not_found"),
            Retired("The model `tiny-image` does not exist", "model_not_found"),
        ),
        (
            fault(404, "The model tiny-image has been deprecated", type="invalid_request_error"),
            Retired("The model tiny-image has been deprecated", "invalid_request_error"),
        ),
        (Answer({"detail": "Not Found"}, 404), None),
        (fault(404, "Cannot GET /v1/models/tiny-model"), None),
        (Answer(b"no model here", 404), None),
        (HTML, None),
        (fault(500, "oops"), None),
        (fault(403, "no"), None),
        (Answer(b"", cut_after=0), None),
    ],
    ids=str,
)
def test_a_model_that_is_gone_is_found_out_beforehand(
    server: LoopbackServer, make: Make, answer: Answer, expected: Retired | None
) -> None:
    """By the model's own entry; a server that does not tell is not taken at its silence."""
    server.behave = lambda _: answer
    with make() as system:
        assert system.preflight() == expected
    assert [asked.path for asked in server.asked] == ["/v1/models/tiny-image"]


def test_a_wrong_key_is_found_out_beforehand(server: LoopbackServer, make: Make) -> None:
    """No task could succeed with it."""
    server.behave = lambda _: fault(401, f"Incorrect API key: {KEY}")
    with make() as system, pytest.raises(GenerationError, match="put a valid key into") as caught:
        system.preflight()
    assert KEY not in str(caught.value)


def test_a_model_that_goes_during_a_run_is_retired(server: LoopbackServer, make: Make) -> None:
    """Some makers tell only whoever asks for a picture."""
    server.behave = lambda _: fault(404, "This model is no longer available to new users")
    drawn = _drawn(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.RETIRED, OutcomeStage.REQUEST)


def test_tasks_share_a_connection_of_many_threads(server: LoopbackServer, make: Make) -> None:
    """Each gets its own answer, and they are asked at the same time."""
    together = threading.Barrier(4, timeout=20)

    def behave(asked: Any) -> Answer:
        together.wait()
        return image_answer(entry={"revised_prompt": asked.body["prompt"]})

    server.behave = behave
    prompts = [f"fox {number}" for number in range(4)]
    with make() as system, ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda prompt: system.draw(task(prompt=prompt)), prompts))
    assert [one.revised_prompt for one in drawn] == prompts


def test_nothing_is_asked_before_the_first_task(server: LoopbackServer, make: Make) -> None:
    """Neither by making the system, nor by its signature, nor by entering it."""
    with make() as system:
        system.signature()
    assert not server.asked


CHOICES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "other"}, {}),
    ({"size": "match_input"}, {}),
    ({"size": {"width": 512, "height": 512}}, {}),
    ({"seed": 3}, {"send_seed": True}),
    ({}, {"send_seed": True}),
    ({}, {"quality": "low"}),
    ({}, {"background": "opaque"}),
    ({}, {"moderation": "low"}),
    ({}, {"output_format": "jpeg"}),
    ({}, {"input_fidelity": "high"}),
    ({}, {"mode": "chat"}),
    ({}, {"sizes": ["1024x1024"]}),
    ({}, {"pixels": 262_144}),
    ({}, {"most_inputs": 2}),
    ({}, {"fewest_inputs": 1}),
    ({}, {"revision": "b"}),
    ({}, {"extra": {"steps": 3}}),
    ({}, {"base_url": "https://draw.example/v1"}),
]


def test_the_signature_changes_with_what_decides_a_picture() -> None:
    """Each of the choices gives another one; it can be written as JSON."""
    local = {"base_url": "http://127.0.0.1:8000/v1"}
    signatures = [make_system(config(local)).signature()] + [
        make_system(config({**local, **parameters}, **further)).signature()
        for further, parameters in CHOICES
    ]
    written = {json.dumps(one, sort_keys=True) for one in signatures}
    assert len(written) == len(CHOICES) + 1


@pytest.mark.parametrize(
    ("further", "parameters"),
    [
        ({}, {"base_url": "http://127.0.0.1:9999/v1"}),
        ({}, {"api_key_env": "MY_VARIABLE"}),
        ({"limits": {"concurrency": 3, "timeout_s": 5}}, {}),
        ({"price": PRICE}, {}),
        ({"name": "renamed"}, {}),
        ({"seed": 9}, {}),  # OpenAI's own models take none
    ],
    ids=str,
)
def test_the_signature_keeps_to_what_decides_a_picture(
    further: dict[str, Any], parameters: dict[str, Any]
) -> None:
    """Neither ports nor variables, nor limits, prices, names, or a seed that is not sent."""
    local = {"base_url": "http://127.0.0.1:8000/v1"}
    plain = make_system(config(local)).signature()
    assert make_system(config({**local, **parameters}, **further)).signature() == plain


@pytest.mark.parametrize(
    ("further", "parameters", "message"),
    [
        ({}, {"qualty": "high"}, "unknown key 'qualty'; did you mean 'quality'?"),
        ({"model": None}, {}, "has no model: adapter 'openai_images' needs one"),
        ({}, {"mode": "video"}, "mode is 'video'"),
        ({}, {"output_format": "gif"}, "output_format is 'gif'"),
        ({}, {"send_seed": "yes"}, "send_seed is 'yes'"),
        ({}, {"most_inputs": -1}, "most_inputs is -1"),
        ({}, {"most_inputs": 1, "fewest_inputs": 2}, "fewest_inputs is 2 and most_inputs 1"),
        ({}, {"sizes": ["big"]}, "'big' is no size: expected width and height"),
        ({}, {"extra": {"n": 4}}, "expected no n, which the adapter sets itself"),
        ({}, {"extra": {"x": float("nan")}}, "expected what JSON can hold"),
        ({}, {"base_url": "draw.example"}, "base_url is 'draw.example': expected an address"),
        ({}, {"base_url": "https://a.example/v1/images/edits"}, "leave out '/images/edits'"),
        ({}, {"mode": "chat", "quality": "low"}, "mode chat takes no quality"),
        ({"size": "match_input"}, {"mode": "chat"}, "size is 'match_input', and mode chat has"),
    ],
)
def test_mistakes_in_a_config_are_told_in_one_line(
    further: dict[str, Any], parameters: dict[str, Any], message: str
) -> None:
    """With the value, what was expected, and the nearest name."""
    with pytest.raises(EchoError) as caught:
        make_system(config(parameters, **further))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_in_place_of_its_variable_is_not_shown() -> None:
    """It is easily mistaken for one."""
    with pytest.raises(GenerationError, match="no name of an environment variable") as caught:
        make_system(config({"api_key_env": KEY}))
    assert KEY not in str(caught.value)
