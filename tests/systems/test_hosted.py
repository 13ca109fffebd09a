"""What every system that is asked over the network has in common, over HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import Price
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Retired, System, TransientError
from echo_hf.systems.generate import generate
from echo_hf.systems.hosted import cost_usd, http_library, limited
from echo_hf.systems.registry import make_system
from tests.engines.openai.loopback_server import SILENCE, Answer, LoopbackServer, fault
from tests.systems.drawing_for_tests import (
    HTML,
    IMAGE,
    KEY,
    PRICE,
    config,
    drawn_by,
    image_answer,
    kept,
    task,
)
from tests.systems.runs_for_tests import benchmark, evaluation

Make = Callable[..., System]
TYPO = "The model 'tiny-image' does not exist or you do not have access to it."


@pytest.fixture
def make(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def of(further: dict[str, Any] | None = None, **parameters: Any) -> System:
        given = {"base_url": server.url, **parameters}
        return make_system(config("openai_images", given, **(further or {})))

    return of


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
        (fault(404, TYPO), "model is 'tiny-image', expected one"),
        (Answer(b"not found", 404), "base_url is 'http://127"),
        (Answer(b"", 302, {"Location": "https://elsewhere.example"}), "base_url is 'http://127"),
    ],
    ids=str,
)
def test_what_no_task_could_survive_ends_the_run(
    server: LoopbackServer, make: Make, answer: Answer, message: str
) -> None:
    server.behave = lambda _: answer
    with make() as system, pytest.raises(GenerationError, match=message) as caught:
        system.draw(task())
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("error", "stage"),
    [
        ({"message": "Rejected by the safety system.", "type": "user_error"}, OutcomeStage.INPUT),
        (
            {
                "message": "Your request was rejected.",
                "moderation_details": {"moderation_stage": "output", "categories": ["violence"]},
            },
            OutcomeStage.OUTPUT,
        ),
    ],
)
def test_refusals_are_told_from_failures(
    server: LoopbackServer, make: Make, error: dict[str, Any], stage: OutcomeStage
) -> None:
    server.behave = lambda _: Answer({"error": {**error, "code": "moderation_blocked"}}, 400)
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.REFUSED, stage)
    assert (drawn.code, drawn.text) == ("moderation_blocked", error["message"])
    told = error.get("moderation_details", {"moderation_stage": "untold"})
    assert drawn.details["moderation_stage"] == told["moderation_stage"]
    assert drawn.details["moderation_categories"] == told.get("categories", [])


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (fault(400, "unknown size", code="invalid_value"), "invalid_value", "status 400: unknown"),
        # A firewall's page is about what one task holds, not about the key.
        (Answer(b"<html>blocked", 403), "403", "status 403: <html>blocked"),
    ],
    ids=["request", "firewall"],
)
def test_another_error_is_the_tasks_own(
    server: LoopbackServer, make: Make, answer: Answer, code: str, text: str
) -> None:
    server.behave = lambda _: answer
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.REQUEST)
    assert drawn.code == code
    assert (drawn.text or "").startswith(text)


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
            fault(404, "The model tiny-image has been deprecated", type="invalid_request_error"),
            Retired("The model tiny-image has been deprecated", "invalid_request_error"),
        ),
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
    server.behave = lambda _: answer
    with make() as system:
        assert system.preflight() == expected
    assert [asked.path for asked in server.asked] == ["/v1/models/tiny-image"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            fault(404, "No such model, or no access", code="model_not_found"),
            "model is 'tiny-image'",
        ),
        (fault(401, f"Incorrect API key: {KEY}"), "put a valid key into"),
    ],
    ids=["typo", "key"],
)
def test_a_typo_and_a_wrong_key_are_found_out_beforehand(
    server: LoopbackServer, make: Make, answer: Answer, said: str
) -> None:
    server.behave = lambda _: answer
    with make() as system, pytest.raises(GenerationError, match=said) as caught:
        system.preflight()
    assert KEY not in str(caught.value)


def test_a_model_that_goes_during_a_run_is_retired(server: LoopbackServer, make: Make) -> None:
    for model, said in (("tiny-image", "This model is no longer available"), ("dall-e-3", TYPO)):
        server.behave = lambda _, said=said: fault(404, said)
        drawn = drawn_by(make({"model": model}))
        assert (drawn.outcome, drawn.stage) == (Outcome.RETIRED, OutcomeStage.REQUEST)


def test_of_a_model_that_is_known_to_be_shut_down_nobody_is_asked(
    tmp_path: Path, server: LoopbackServer, make: Make
) -> None:
    gone = config("openai_images", {}, model="gpt-image-1")
    made = generate(evaluation(benchmark(tmp_path), gone), runs=tmp_path / "runs")
    assert made.outcomes == {gone.name: {Outcome.RETIRED: 5}}
    assert make({"model": "gpt-image-1"}).preflight() is None
    assert server.asked


def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    system = make_system(config("openai_images", {"base_url": "https://draw.example/v1"}))
    for ask in (system.preflight, lambda: system.draw(task())):
        with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' is not set"):
            ask()


def test_a_private_server_needs_no_key(server: LoopbackServer, make: Make) -> None:
    server.behave = lambda _: image_answer()
    assert drawn_by(make(api_key_env=None)).outcome is Outcome.OK
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize(
    "answer",
    [
        fault(429, f"slow {KEY}"),
        fault(400, f"bad {KEY}", code=f"c{KEY}"),
        fault(400, f"rejected by the safety system {KEY}"),
        image_answer(entry={"revised_prompt": f"fox {KEY}"}, model=KEY, size=KEY),
        image_answer(headers={"x-request-id": f"r-{KEY}"}),
    ],
    ids=str,
)
def test_the_key_is_in_nothing_that_is_kept(
    server: LoopbackServer, make: Make, answer: Answer
) -> None:
    server.behave = lambda _: answer
    try:
        said = repr(drawn_by(make()))
    except TransientError as passing:
        said = f"{passing} {passing.text} {passing.code}"
    assert "(key)" in said
    assert KEY not in said
    assert KEY not in repr(make().signature())


@pytest.mark.parametrize(
    ("parameters", "number"), [({"most_inputs": 1}, 2), ({"fewest_inputs": 1}, 0)]
)
def test_a_task_with_the_wrong_number_of_inputs_is_unsupported(
    server: LoopbackServer, make: Make, tmp_path: Path, parameters: dict[str, int], number: int
) -> None:
    drawn = drawn_by(make(**parameters), *[kept(tmp_path, IMAGE)] * number)
    assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert drawn.code == ("too_many_inputs" if number else "too_few_inputs")
    assert drawn.details == {"limits": parameters}
    bad = drawn_by(make(), kept(tmp_path, b"no picture"))
    assert (bad.outcome, bad.code) == (Outcome.FAILED, "input")
    assert not server.asked


def test_tasks_share_a_connection_of_many_threads(server: LoopbackServer, make: Make) -> None:
    together = threading.Barrier(4, timeout=20)

    def behave(asked: Any) -> Answer:
        together.wait()
        return image_answer(entry={"revised_prompt": asked.body["prompt"]})

    server.behave = behave
    prompts = [f"fox {number}" for number in range(4)]
    with make() as system, ThreadPoolExecutor(4) as pool:
        system.signature()
        assert not server.asked
        drawn = list(pool.map(lambda prompt: system.draw(task(prompt=prompt)), prompts))
    assert [one.revised_prompt for one in drawn] == prompts


def test_an_endless_answer_is_cut(
    server: LoopbackServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_ANSWER", 1000)
    monkeypatch.setattr("echo_hf.systems.hosted.MOST_OF_AN_ERROR", 9)
    server.behave = lambda _: image_answer(b"x" * 5000)
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.text == "the answer has more than 1000 bytes"
    server.behave = lambda _: Answer(b"overload" * 5000, 503)
    with make() as system, pytest.raises(TransientError, match=r"status 503: overloado$"):
        system.draw(task())


@pytest.mark.extras
def test_an_answer_is_handed_on_whole(server: LoopbackServer) -> None:
    pytest.importorskip("openai", reason="openai, of the extra `openai`, brings an HTTP library")
    packed = gzip.compress(b'{"a": "\xc3\xbc"}')
    headers = {"Content-Encoding": "gzip", "X-Request-Id": "r-1"}
    server.behave = lambda _: Answer(packed, 418, headers)
    with limited(http_library().Client, 20.0)() as client:
        answer = client.get(server.url)
    assert (answer.status_code, answer.json()) == (418, {"a": "ü"})
    assert answer.headers["x-request-id"] == "r-1"
    assert str(answer.request.url) == server.url


DOLLARS: dict[str, Any] = {name: one for name, one in PRICE.items() if name != "as_of"}
COUNTS = {"text_in": 200, "image_in": 1000, "text_out": 50, "image_out": 4000}


def priced(**dollars: float) -> Price:
    return Price.model_validate({**dollars, "as_of": "2026-11-21"})


@pytest.mark.parametrize(
    ("price", "images", "tokens", "cost"),
    [
        (None, 1, COUNTS, None),
        # By hand: (200 x 5 + 1000 x 8 + 50 x 10 + 4000 x 30) / 1 000 000.
        (priced(**DOLLARS), 1, COUNTS, 0.1295),
        (priced(usd_per_image=0.04, text_in=5), 1, COUNTS, 0.04),
        (priced(usd_per_image=0.04), 0, {}, 0.0),
        # What was not used needs no price, and what is free no count.
        (priced(text_in=5, image_out=30), 1, {**COUNTS, "image_in": 0, "text_out": 0}, 0.121),
        (priced(text_in=0, image_in=0, text_out=0, image_out=30), 1, {"image_out": 1000}, 0.03),
        *[
            (
                priced(**{kind: one for kind, one in DOLLARS.items() if kind != name}),
                1,
                COUNTS,
                None,
            )
            for name in COUNTS
        ],
        *[
            (
                priced(**DOLLARS),
                1,
                {kind: one for kind, one in COUNTS.items() if kind != name},
                None,
            )
            for name in COUNTS
        ],
    ],
)
def test_each_kind_of_token_has_its_price(
    price: Price | None, images: int, tokens: dict[str, int], cost: float | None
) -> None:
    assert cost_usd(price, images, tokens) == (cost if cost is None else pytest.approx(cost))
