"""The moderation engine against a real server: what is moderated, and what responses mean."""

from __future__ import annotations

import base64
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf._infra.http_errors import HttpResponse
from echo_hf.engines.base import (
    Completion,
    Message,
    Request,
    Text,
    Usage,
    engine_requirements,
    make_engine,
)
from echo_hf.engines.openai import ModerationEngine, ModerationOptions
from echo_hf.errors import EngineError
from echo_hf.pipeline.answers import RawText, parse
from tests.engines.openai.loopback_server import Answer, LoopbackServer, fault
from tests.engines.test_conformance import ask, image
from tests.errors_for_tests import said_by

MODEL = "omni-moderation-2024-09-26"
CLEAN = {
    "flagged": False,
    "category_scores": {"hate": 1, "illicit": None},
    "categories": {"hate": False, "illicit": None},
    "category_applied_input_types": {"hate": ["image"]},
}
SAID_CLEAN = (
    '{"categories": {"hate": false, "illicit": null}, "category_scores": {"hate": 1.0, '
    f'"illicit": null}}, "flagged": false, "model": "{MODEL}"}}'
)
OPENAI = "https://api.openai.com/v1"


def response(*results: Any, **further: Any) -> dict[str, Any]:
    return {"id": "modr-1", "model": MODEL, "results": list(results), **further}


def answers(server: LoopbackServer, *asked: Request, **options: Any) -> list[Completion]:
    made = make_engine("moderation", base_url=server.url, backoff_s=0.001, **options)
    return [done for _, done in made.stream(asked)]


def test_a_request_is_one_call_with_text_and_image(server: LoopbackServer, tmp_path: Path) -> None:
    shown = image(tmp_path, 200)
    turns = (Message("system", (Text("Is it harmful?"),)), Message("user", (shown, Text(" a\n"))))
    asked = Request("safety", turns, None, 64)
    slow = fault(429, "slow down", headers={"Retry-After": "0"})
    rest = [slow, Answer(b"", 502), Answer(response(CLEAN))]
    server.behave = lambda _: rest.pop(0)
    (done,) = answers(server, asked, extra_body={"policy": "strict"}, max_attempts=3)
    assert done == Completion(SAID_CLEAN)
    assert parse(asked, done, b"") == RawText(SAID_CLEAN)
    assert shown.file is not None
    url = "data:image/png;base64," + base64.b64encode(shown.file.read_bytes()).decode()
    assert {one.path for one in server.asked} == {"/v1/moderations"}
    assert server.asked[-1].body == {
        "model": "omni-moderation-latest",
        "input": [
            {"type": "text", "text": "Is it harmful?\n\n a\n"},
            {"type": "image_url", "image_url": {"url": url}},
        ],
        "policy": "strict",
    }
    needs = engine_requirements()["moderation"]
    assert (needs.extra, needs.packages) == ("openai", ("openai",))


@pytest.mark.parametrize("words", [[], [" \n", ""]], ids=str)
def test_an_image_alone_has_no_text_and_keeps_to_the_budget(
    server: LoopbackServer, tmp_path: Path, words: list[str]
) -> None:
    """60 x 40 has 2400 pixels: a quarter of them is half of each side."""
    server.behave = lambda _: Answer(response(CLEAN))
    answers(server, ask(*words, image(tmp_path, 1)), max_pixels=600)
    (part,) = server.asked[0].body["input"]
    data = part["image_url"]["url"].partition(",")[2]
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (30, 20)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temperature": 0}, f"known: {', '.join(sorted(ModerationOptions.model_fields))}"),
        ({"extra_body": {"input": []}}, "expected no input, which the engine sets itself"),
        ({"base_url": f"{OPENAI}/moderations"}, "without what requests add to it"),
    ],
    ids=str,
)
def test_a_bad_option_is_one_line(options: dict[str, Any], expected: str) -> None:
    assert expected in said_by(EngineError, partial(make_engine, "moderation", **options))
    defaults = ModerationEngine().options
    assert (defaults.base_url, defaults.api_key_env) == (OPENAI, "OPENAI_API_KEY")


def judged(document: Any, **options: Any) -> Completion:
    return ModerationEngine(**options).read_response(HttpResponse(200, {}, json.dumps(document)))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "it is not an object"),
        ({"model": MODEL}, "results: field required"),
        (response(), "results: list should have at least 1 item after validation, not 0"),
        (response(CLEAN, CLEAN), "results: list should have at most 1 item after validation, not"),
        (response({**CLEAN, "flagged": "posted"}), "results.0.flagged: input should be a valid b"),
    ],
    ids=str,
)
def test_other_documents_are_failures(document: Any, said: str) -> None:
    done = judged(document)
    assert (done.text, done.finish_reason) == (None, "error")
    assert (done.error or "").startswith(f"the response is not a moderation: {said}")
    assert "posted" not in (done.error or "")


PRICES = {"usd_per_million_prompt_tokens": 0.1, "usd_per_million_completion_tokens": 0.0}
COUNTED = {"usage": {"prompt_tokens": 2000, "completion_tokens": 0, "total_tokens": 2000}}


@pytest.mark.parametrize(
    ("options", "document", "cost", "usage"),
    [
        ({}, {}, 0.0, Usage()),
        ({"model": "other"}, {}, None, Usage()),
        ({"base_url": "https://moderation.example.org/v1"}, {}, None, Usage()),
        ({"base_url": "https://m.example.org/v1"}, {"usage": {"cost": 0.25}}, 0.25, Usage()),
        (PRICES, COUNTED, 2000 * 0.1 / 1e6, Usage(2000)),
    ],
    ids=str,
)
def test_what_a_call_costs(options: Any, document: Any, cost: float | None, usage: Usage) -> None:
    done = judged(response(CLEAN, **document), **options)
    assert done.cost_usd == pytest.approx(cost)
    assert done.usage == usage
    assert ModerationEngine(base_url=OPENAI).usd_per_million_prompt_tokens == 0.0
