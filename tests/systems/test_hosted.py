"""What every system that is asked over the network has in common, over HTTP."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from echo_hf.config.systems import OutputPrice
from echo_hf.errors import GenerationError
from echo_hf.systems.base import OutcomeStage, Retired, System, TransientError
from echo_hf.systems.hosted import compute_cost
from echo_hf.systems.registry import make_system
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import SILENCE, Answer, LoopbackServer
from tests.systems.drawing_for_tests import (
    IMAGE,
    KEY,
    PRICE,
    config,
    drawn_by,
    google_answer,
    google_image,
    image_answer,
    task,
)

TYPO = "The model 'tiny-image' does not exist or you do not have access to it."
GONE = "Model tiny-image is no longer available."
TRICKLE = Answer(b"x" * 100_000, trickles=True)
CUT = Answer(b'{"data": [' + b" " * 1000, cut_after=500)
HTML = Answer(b"<!doctype html><title>Sign in</title>")
REDIRECT = Answer(b"", 302, {"Location": "https://elsewhere.example"})
QUOTA = {"details": [{"@type": "type.googleapis.com/RetryInfo", "retryDelay": "17s"}]}
LATER = {"headers": {"Retry-After": "17"}}


def fault(status: int, message: str, code: str | None = None, **further: Any) -> Answer:
    """An error as OpenAI tells it, or, with a code in capitals, as Google does."""
    headers = further.pop("headers", {})
    told = {"code": status, "status": code} if code and code.isupper() else {"code": code}
    error = {"message": message, **(told if code else {}), **further}
    return Answer({"error": error}, status, headers)


@dataclass
class Asking:
    """A system of one of the two APIs, and the server that it asks."""

    adapter: str
    server: LoopbackServer

    def made(self, further: dict[str, Any] | None = None, **parameters: Any) -> System:
        is_google = self.adapter == "google"
        url = self.server.url.removesuffix("/v1") if is_google else self.server.url
        given = {"base_url": url, **parameters}
        return make_system(config(self.adapter, given, **(further or {})))

    def told(self, answer: Answer, **parameters: Any) -> Any:
        self.server.behave = lambda _: answer
        return drawn_by(self.made(**parameters))


@pytest.fixture
def asking(request: pytest.FixtureRequest, server: LoopbackServer, monkeypatch: Any) -> Asking:
    adapter = getattr(request, "param", "openai_images")
    if adapter == "google":
        pytest.importorskip("google.genai", reason="google-genai, of the extra `google`")
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    return Asking(adapter, server)


def of_both(names: str, openai: list[Any], google: list[Any]) -> Callable[[Any], Any]:
    rows = [pytest.param("openai_images", *row) for row in openai]
    rows += [pytest.param("google", *row, marks=pytest.mark.extras) for row in google]
    return pytest.mark.parametrize(f"asking,{names}", rows, indirect=["asking"])


@of_both(
    "answer, code, wait_s",
    [
        (fault(429, "slow down", "rate_limit_exceeded"), "rate_limit_exceeded", None),
        (fault(429, "slow down", **LATER), "429", 17.0),
        (Answer({"error": {"message": "upstream", "code": 502}}, 200), "502", None),
        (Answer(b"x", cut_after=0), "connection", None),
        (CUT, "connection", None),
        *[(one, "timeout", None) for one in (SILENCE, TRICKLE)],
        (Answer(b"x" * 100_000, 400, trickles=True), "timeout", None),
    ],
    [
        (fault(429, "Quota", "RESOURCE_EXHAUSTED", **QUOTA), "RESOURCE_EXHAUSTED", 17.0),
        (fault(503, "busy", "UNAVAILABLE", **LATER), "UNAVAILABLE", 17.0),
        (Answer(b"<html>bad gateway", 502), "502", None),
        (CUT, "connection", None),
        *[(one, "timeout", None) for one in (SILENCE, TRICKLE)],
    ],
)
def test_what_may_pass_is_left_to_the_runner(
    asking: Asking, answer: Answer, code: str, wait_s: float | None
) -> None:
    limits = {"limits": {"timeout_s": 0.3 if code == "timeout" else 20}}
    with pytest.raises(TransientError) as caught:
        asking.told(answer, further=limits)
    assert (caught.value.code, caught.value.wait_s) == (code, wait_s)
    assert len(asking.server.asked) == 1
    assert code != "timeout" or "no answer within 0.3 s" in caught.value.text


@of_both(
    "answer, message",
    [
        (fault(401, f"Incorrect API key provided: {KEY}"), "a valid key into .*'OPENAI_API_KEY'"),
        (fault(403, "no access"), "may not use model 'tiny-image'"),
        (fault(404, TYPO), "model is 'tiny-image', expected one"),
        (REDIRECT, "base_url is 'http://127"),
    ],
    [
        (fault(400, f"API key not valid: {KEY}", "INVALID_ARGUMENT"), "put a valid key into"),
        (fault(404, "models/tiny-image is not found", "NOT_FOUND"), "model is 'tiny-image'"),
        (REDIRECT, "base_url is 'http://127"),
        (google_answer(reason="PUP_LIMITED_DISABLED"), "the account is stopped"),
    ],
)
def test_what_no_task_could_survive_ends_run(asking: Asking, answer: Answer, message: str) -> None:
    with pytest.raises(GenerationError, match=message) as caught:
        asking.told(answer)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(asking.server.asked) == 1


BLOCKED = "moderation_blocked"


@pytest.mark.parametrize(
    ("answer", "outcome", "stage", "code", "text"),
    [
        (fault(400, "No.", BLOCKED, type="user_error"), "refused", "input", BLOCKED, "No."),
        (
            fault(400, "No.", BLOCKED, moderation_details={"moderation_stage": "output"}),
            *("refused", "output", BLOCKED, "No."),
        ),
        (fault(400, "size", "invalid"), "failed", "request", "invalid", "status 400: size"),
        # A firewall's page is about what one task holds, not about the key.
        (Answer(b"<html>no", 403), "failed", "request", "403", "status 403: <html>no"),
        (fault(404, GONE), "retired", "request", "404", GONE),
    ],
    ids=["input", "output", "request", "firewall", "retired"],
)
def test_refusals_are_told_from_failures(
    asking: Asking, answer: Answer, outcome: str, stage: str, code: str, text: str
) -> None:
    drawn = asking.told(answer)
    assert (drawn.outcome, drawn.stage, drawn.code, drawn.text) == (outcome, stage, code, text)


@of_both(
    "answer, expected",
    [
        (Answer({"id": "tiny-image"}), None),
        (fault(404, GONE, "gone"), Retired(GONE, "gone")),
        *[(one, None) for one in (Answer(b"no model here", 404), HTML, fault(500, "oops"), CUT)],
        (fault(403, "no"), None),
        (fault(404, "No such model, or no access", "model_not_found"), "model is 'tiny-image'"),
        (fault(401, f"Incorrect API key: {KEY}"), "put a valid key into"),
    ],
    [
        (Answer({"name": "models/tiny-image"}), None),
        (fault(404, GONE, "NOT_FOUND"), Retired(GONE, "NOT_FOUND")),
        *[(one, None) for one in (HTML, fault(500, "oops", "INTERNAL"), CUT)],
        (fault(404, "models/tiny-image is not found", "NOT_FOUND"), "model is 'tiny-image'"),
        (fault(400, f"API key not valid. {KEY}", "INVALID_ARGUMENT"), "put a valid key into"),
    ],
)
def test_a_model_that_is_gone_is_found_out_beforehand(
    asking: Asking, answer: Answer, expected: Retired | str | None
) -> None:
    asking.server.behave = lambda _: answer
    with asking.made() as system:
        if isinstance(expected, str):
            with pytest.raises(GenerationError, match=expected) as caught:
                system.preflight()
            assert KEY not in str(caught.value)
        else:
            assert system.preflight() == expected
    place = "/v1/models" if asking.adapter == "openai_images" else "/v1beta/models"
    assert [asked.path for asked in asking.server.asked] == [f"{place}/tiny-image"]


def test_a_model_known_to_be_shut_down_is_not_asked(asking: Asking) -> None:
    """Its maker answers as if it had never been there; another server may have it."""
    said = make_system(config("openai_images", {}, model="gpt-image-1")).preflight()
    assert said == Retired("gpt-image-1 was shut down by its maker", "shut_down")
    assert asking.made({"model": "gpt-image-1"}).preflight() is None
    drawn = asking.told(fault(404, TYPO), further={"model": "dall-e-3"})
    assert drawn.outcome is Outcome.RETIRED


def test_a_missing_key_is_told_before_anything_is_asked() -> None:
    system = make_system(config("openai_images", {"base_url": "https://draw.example/v1"}))
    for ask in (system.preflight, lambda: system.draw(task())):
        with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' holds no key"):
            ask()


def test_a_private_server_needs_no_key(asking: Asking) -> None:
    assert asking.told(image_answer(), api_key_env=None).outcome is Outcome.OK
    assert "authorization" not in asking.server.asked[0].headers


@of_both(
    "answer",
    [
        (fault(429, f"slow {KEY}"),),
        (fault(400, f"bad {KEY}", f"c{KEY}"),),
        (image_answer(entry={"revised_prompt": f"fox {KEY}"}, model=KEY),),
        (image_answer(headers={"x-request-id": f"r-{KEY}"}),),
    ],
    [
        (google_answer({"text": KEY}, google_image(), modelVersion=KEY, responseId=f"r-{KEY}"),),
        (Answer(f"<html>{KEY}".encode()),),
    ],
)
def test_the_key_is_in_nothing_that_is_kept(asking: Asking, answer: Answer) -> None:
    try:
        said = repr(asking.told(answer))
    except TransientError as passing:
        said = f"{passing} {passing.text} {passing.code}"
    assert KEY not in said
    assert "(key)" in said or answer.body[:1] == b"<"
    assert KEY not in repr(asking.made().signature())


def test_a_task_with_the_wrong_number_of_inputs_is_unsupported(asking: Asking) -> None:
    drawn = drawn_by(asking.made(fewest_inputs=1))
    assert (drawn.outcome, drawn.code) == (Outcome.UNSUPPORTED, "too_few_inputs")
    assert drawn.details == {"limits": {"fewest_inputs": 1}}
    assert not asking.server.asked


def test_tasks_share_a_connection_of_many_threads(asking: Asking) -> None:
    together = threading.Barrier(4, timeout=20)

    def behave(asked: Any) -> Answer:
        together.wait()
        return image_answer(entry={"revised_prompt": asked.body["prompt"]})

    asking.server.behave = behave
    prompts = [f"fox {number}" for number in range(4)]
    with asking.made() as system, ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda prompt: system.draw(task(prompt=prompt)), prompts))
    assert [one.revised_prompt for one in drawn] == prompts


def test_an_endless_answer_is_cut_and_what_was_asked_for_is_still_told(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echo_hf.systems.hosted.MAX_ANSWER", 1000)
    monkeypatch.setattr("echo_hf.systems.hosted.MAX_ERROR", 9)
    size = {"size": {"width": 64, "height": 64}}
    drawn = asking.told(image_answer(b"x" * 5000), further=size)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.text == "the answer has more than 1000 bytes"
    assert drawn.details == {"mode": "images", "size": [64, 64], "inputs": []}
    with pytest.raises(TransientError, match=r"status 503: overloado$"):
        asking.told(Answer(b"overload" * 5000, 503))


def test_an_answer_that_came_packed_is_read(asking: Asking) -> None:
    plain = image_answer()
    packed = gzip.compress(json.dumps(plain.body).encode())
    assert asking.told(Answer(packed, headers={"Content-Encoding": "gzip"})).image == IMAGE


DOLLARS: dict[str, Any] = {name: one for name, one in PRICE.items() if name != "as_of"}
COUNTS: dict[str, int] = {"text_in": 200, "image_in": 1000, "text_out": 50, "image_out": 4000}


def without(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {kind: one for kind, one in given.items() if kind != name}


@pytest.mark.parametrize(
    ("dollars", "images", "tokens", "cost"),
    [
        (None, 1, COUNTS, None),
        # By hand: (200 x 5 + 1000 x 8 + 50 x 10 + 4000 x 30) / 1 000 000.
        (DOLLARS, 1, COUNTS, 0.1295),
        ({"usd_per_image": 0.04, "text_in": 5}, 2, COUNTS, 0.08),
        # What was not used needs no price, and what is free no count.
        ({"text_in": 5, "image_out": 30}, 1, {**COUNTS, "image_in": 0, "text_out": 0}, 0.121),
        ({**dict.fromkeys(COUNTS, 0), "image_out": 30}, 1, {"image_out": 1000}, 0.03),
        (without("text_out", DOLLARS), 1, COUNTS, None),
        (DOLLARS, 1, without("text_out", COUNTS), None),
    ],
)
def test_each_kind_of_token_has_its_price(
    dollars: dict[str, Any] | None, images: int, tokens: dict[str, int], cost: float | None
) -> None:
    price = dollars and OutputPrice.model_validate({**dollars, "as_of": "2026-11-21"})
    assert compute_cost(price, images, tokens) == (cost if cost is None else pytest.approx(cost))
