"""The engine of reward models against a real server: what it sends, and what responses mean.

The responses are those of vLLM 0.32 for a tiny model, see `vllm/test_scalar_routes.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import Completion, Message, Request, Text, make_engine
from echo_hf.errors import EngineError
from tests.engines.openai.loopback_server import Answer, LoopbackServer, fault
from tests.engines.test_conformance import ask, image

USAGE = {
    "prompt_tokens": 20,
    "total_tokens": 20,
    "completion_tokens": 0,
    "prompt_tokens_details": None,
    "completion_tokens_details": None,
}
ROWS = {
    "classify": {"index": 0, "label": "L0", "probs": [7.902639865875244], "num_classes": 1},
    "pooling": {"index": 0, "object": "pooling", "data": [7.902639865875244]},
    "score": {"index": 0, "object": "score", "score": -8.160929679870605},
}


def respond(*rows: Any, **more: Any) -> Answer:
    known = {"object": "list", "created": 1795968941, "model": "m", "data": list(rows)}
    return Answer({**known, "usage": USAGE, **more})


def give(server: LoopbackServer, request: Request, **options: Any) -> Completion:
    known = {"model": "m", "base_url": server.url, "backoff_s": 0.001, "max_attempts": 2}
    ((_, done),) = make_engine("pooling", **{**known, **options}).stream([request])
    return done


@pytest.mark.parametrize("route", ["classify", "pooling"])
def test_routes_of_messages_take_a_chat_with_images(
    server: LoopbackServer, tmp_path: Path, route: str
) -> None:
    server.behave = lambda _: respond(ROWS[route])
    done = give(server, ask("rate", image(tmp_path, 9)), route=route, extra_body={"priority": 1})
    assert (done.text, done.finish_reason, done.usage.prompt) == ("7.902639865875244", "stop", 20)
    (asked,) = server.asked
    assert asked.path == f"/{route}"
    (message,) = asked.body["messages"]
    text, picture = message["content"]
    assert (message["role"], text) == ("user", {"type": "text", "text": "rate"})
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert (asked.body["model"], asked.body["use_activation"], asked.body["priority"]) == (
        *("m", False),
        1,
    )
    assert asked.body.get("task") == ("classify" if route == "pooling" else None)


def test_route_score_takes_the_last_image_as_the_document(
    server: LoopbackServer, tmp_path: Path
) -> None:
    server.behave = lambda _: respond(ROWS["score"])
    first, last = image(tmp_path, 9), image(tmp_path, 8)
    done = give(server, ask("rate", first, last), route="score", activation=True)
    assert done.text == "-8.160929679870605"
    (asked,) = server.asked
    kinds = [[part["type"] for part in asked.body[key]["content"]] for key in ("text_1", "text_2")]
    assert kinds == [["text", "image_url"], ["image_url"]]
    assert asked.body["use_activation"] is True


def test_route_score_refuses_what_is_no_query_and_image(
    server: LoopbackServer, tmp_path: Path
) -> None:
    """A system message, words after the image, and an image without words before it."""
    picture, words = image(tmp_path, 1), Text("x")
    system, user = Message("system", (words,)), Message("user", (words, picture))
    after, alone = (Message("user", parts) for parts in ((words, picture, words), (picture,)))
    for messages in ((system, user), (after,), (alone,)):
        with pytest.raises(EngineError, match="judge_file without system"):
            give(server, Request("rate", messages, None, 1), route="score")
    assert server.asked == []


def test_difference_of_two_outputs_is_the_second_less_the_first(server: LoopbackServer) -> None:
    server.behave = lambda _: respond({**ROWS["classify"], "probs": [-1.5, 2.25]})
    assert give(server, ask("x"), head="difference").text == "3.75"


@pytest.mark.parametrize(("head", "probs"), [("single", [1.0, 2.0]), ("difference", [1.0])])
def test_another_number_of_outputs_stops_with_what_to_change(
    server: LoopbackServer, head: str, probs: list[float]
) -> None:
    server.behave = lambda _: respond({**ROWS["classify"], "probs": probs})
    with pytest.raises(EngineError, match=f"the head has {len(probs)} outputs, and `head: {head}`"):
        give(server, ask("x"), head=head)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [ROWS["classify"]] * 2,
        [ROWS["score"]],
        [{"probs": [None]}],
        [{"probs": ["3"]}],
        [{"probs": [[1.0]]}],
        [{"probs": [True]}],
        ["x"],
    ],
)
def test_response_without_its_number_is_an_error_of_its_request(
    server: LoopbackServer, rows: list[Any]
) -> None:
    server.behave = lambda _: respond(*rows)
    done = give(server, ask("x"))
    assert done.text is None
    assert "data[0].probs is no list of numbers" in (done.error or "")


def test_number_that_is_not_finite_is_passed_on(server: LoopbackServer) -> None:
    """A judge gives it a reason; the server's JSON may hold it as Python writes it."""
    server.behave = lambda _: respond({"probs": [float("nan")]})
    assert give(server, ask("x")).text == "NaN"


def test_tokens_have_a_price_and_a_busy_server_is_asked_again(server: LoopbackServer) -> None:
    answers = iter([fault(503, "busy"), respond(ROWS["classify"], usage={"prompt_tokens": 500})])
    server.behave = lambda _: next(answers)
    prices = {"usd_per_million_prompt_tokens": 2.0, "usd_per_million_completion_tokens": 8.0}
    done = give(server, ask("x"), **prices)
    assert done.cost_usd == pytest.approx(0.001)
    assert len(server.asked) == 2


def test_signature_says_what_decides_a_number() -> None:
    usual = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
    different = ({}, {"route": "pooling"}, {"activation": True}, {"head": "difference"})
    signatures = [make_engine("pooling", **usual, **options).signature() for options in different]
    assert len({str(signature) for signature in signatures}) == len(different)
    assert signatures[0]["route"] == "classify"
