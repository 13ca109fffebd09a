"""Each way in which a server fails, over HTTP: what is sent again, and what is reported."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

import pytest

from echo_hf.engines.base import Completion, Usage
from echo_hf.engines.openai import OpenAIEngine
from echo_hf.errors import EngineError
from tests.engines.openai.loopback_server import (
    SILENCE,
    Answer,
    Asked,
    LoopbackServer,
    closed_port,
    completion,
    fault,
    running,
)
from tests.stages_for_tests import request

Make = Callable[..., OpenAIEngine]

RED = Completion("red", usage=Usage(10, 3, 0))


def _ask(engine: OpenAIEngine, line: str = "red") -> Completion:
    [(number, done)] = list(engine.stream([request(line)]))
    assert number == 0
    return done


def _in_turn(server: LoopbackServer, *answers: Answer) -> None:
    rest = list(answers)
    server.behave = lambda _: rest.pop(0)


# A passing failure, and what is reported when it does not pass.
PASSING = {
    "429": (fault(429, "slow down", headers={"Retry-After": "0"}), "status 429: slow down"),
    "500": (fault(500, "an error"), "status 500: an error"),
    "502": (Answer(b"<html>Bad  gateway</html>", 502), "status 502: <html>Bad gateway</html>"),
    "503": (fault(503, "overloaded"), "status 503: overloaded"),
    "408": (fault(408, "too late"), "status 408: too late"),
    "error inside": (fault(200, "provider is down", code=502), "status 502: provider is down"),
}


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_sent_again(server: LoopbackServer, engine: Make, kind: str) -> None:
    """Two failures and an answer are an answer."""
    _in_turn(server, PASSING[kind][0], PASSING[kind][0], completion("red"))
    assert _ask(engine(max_attempts=3)) == RED
    assert len(server.asked) == 3


@pytest.mark.parametrize("kind", PASSING)
def test_what_does_not_pass_is_an_error(server: LoopbackServer, engine: Make, kind: str) -> None:
    """After the last attempt the request has failed, with what the server said."""
    answer, error = PASSING[kind]
    server.behave = lambda _: answer
    assert _ask(engine(max_attempts=2)) == Completion(None, error, "error")
    assert len(server.asked) == 2


@pytest.mark.parametrize("cut_after", [0, 30], ids=["before the answer", "within the answer"])
def test_a_cut_connection_is_sent_again(
    server: LoopbackServer, engine: Make, cut_after: int
) -> None:
    """Nothing of the half answer is used."""
    whole = completion("red")
    cut = Answer(whole.body, cut_after=cut_after)
    _in_turn(server, cut, whole)
    assert _ask(engine(max_attempts=2)) == RED
    server.behave = lambda _: cut
    done = _ask(engine(max_attempts=2))
    assert (done.text, done.finish_reason) == (None, "error")
    assert (done.error or "").startswith(f"the connection to '{server.url}' failed: ")
    assert len(server.asked) == 4


def test_a_server_that_is_not_there_stops_the_stream(engine: Make) -> None:
    """The first calls tell: with the address, and what the system said, in one line."""
    asked = engine(base_url=closed_port(), max_attempts=2)
    with pytest.raises(EngineError) as caught:
        list(asked.stream(map(request, ("red", "green", "blue"))))
    assert str(caught.value).startswith(
        f"the connection to '{asked.options.base_url}' failed: [Errno {errno.ECONNREFUSED}] "
    )
    assert str(caught.value).endswith(
        ": start the server, or fix base_url; the same command resumes from here"
    )


def test_a_server_that_went_away_is_the_requests_own_error(engine: Make) -> None:
    """It was there: what it answers when it is back is worth going on for."""
    with running() as server:
        asked = engine(base_url=server.url, max_attempts=1, concurrency=1)
        answers = iter(asked.stream(map(request, ("red", "green"))))
        assert next(answers) == (0, RED)
    number, lost = next(answers)
    assert (number, lost.finish_reason) == (1, "error")
    assert (lost.error or "").startswith(f"the connection to '{server.url}' failed: ")


def test_an_endless_silence_ends(server: LoopbackServer, engine: Make) -> None:
    """After the time limit of the last attempt."""
    server.behave = lambda _: SILENCE
    done = _ask(engine(timeout_s=0.1, max_attempts=2))
    assert done == Completion(None, "no answer within 0.1 s", "error")


def test_a_trickle_ends(server: LoopbackServer, engine: Make) -> None:
    """A server that sends a byte now and then has no more time than a silent one."""
    length = {"Content-Length": "1000000"}
    server.behave = lambda _: Answer(headers=length, trickles=True)
    done = _ask(engine(timeout_s=0.3, max_attempts=1))
    assert done == Completion(None, "no answer within 0.3 s", "error")


# Failures of one answer, which the same request would not mend at once.
FINAL: dict[str, tuple[Answer, Completion]] = {
    "half a JSON": (
        Answer(b'{"choices": [{"mess'),
        Completion(
            None,
            "the response is not a whole JSON document: Unterminated string starting at: line 1 "
            "column 15 (char 14)",
            "error",
        ),
    ),
    "another document": (
        Answer({"hello": "world"}),
        Completion(
            None, "the response is not a chat completion: it has no choices[0].message", "error"
        ),
    ),
    "a refusal": (
        completion(None, message={"refusal": "I cannot help with that."}),
        Completion(None, "I cannot help with that.", "refusal", Usage(10, 3, 0)),
    ),
    "a filtered answer": (
        completion("", "content_filter"),
        Completion(None, "content_filter", "refusal", Usage(10, 3, 0)),
    ),
    "a policy": (
        fault(400, "Your request was rejected", code="content_policy_violation"),
        Completion(None, "Your request was rejected", "refusal"),
    ),
    "a cut answer": (
        completion('{"name', "length"),
        Completion('{"name', None, "length", Usage(10, 3, 0)),
    ),
    "a bad request": (
        fault(400, "image is too large"),
        Completion(None, "status 400: image is too large", "error"),
    ),
    "too large": (
        Answer(b"", 413),
        Completion(None, "status 413: nothing", "error"),
    ),
    "too long a wait": (
        fault(429, "quota of today is used up", headers={"Retry-After": "86400"}),
        Completion(
            None,
            "status 429: quota of today is used up; the server asks to wait 86400 s, longer than "
            "300 s",
            "error",
        ),
    ),
}


@pytest.mark.parametrize("kind", FINAL)
def test_what_would_fail_again_is_not_sent_again(
    server: LoopbackServer, engine: Make, kind: str
) -> None:
    """It is reported with its name, and with the tokens that were paid for."""
    answer, expected = FINAL[kind]
    server.behave = lambda _: answer
    assert _ask(engine()) == expected
    assert len(server.asked) == 1


CONFIG = {
    401: "put a valid key into environment variable 'OPENAI_API_KEY'",
    402: "the account has no credit left; the same command resumes from here",
    403: "the key may not use model 'tiny'; name another key or model",
    307: "base_url is '{url}', expected the server's own, for OpenAI's API mostly ending in /v1",
    404: "base_url is '{url}', expected the server's own, for OpenAI's API mostly ending in /v1",
}


@pytest.mark.parametrize("status", CONFIG)
def test_what_no_request_survives_stops_the_stream(
    server: LoopbackServer, engine: Make, status: int
) -> None:
    """One line with the server, what it said, and what to do."""
    server.behave = lambda _: fault(status, "no", headers={"Location": "/elsewhere"})
    with pytest.raises(EngineError) as caught:
        _ask(engine())
    advice = CONFIG[status].format(url=server.url)
    assert str(caught.value) == f"'127.0.0.1' answered with status {status}, 'no': {advice}"
    assert len(server.asked) == 1


def test_a_redirect_takes_no_post_elsewhere(server: LoopbackServer, engine: Make) -> None:
    """What people posted goes to the server that was named and to no other."""
    server.behave = lambda _: Answer(b"", 307, {"Location": f"{server.url}/other"})
    with pytest.raises(EngineError):
        _ask(engine())
    assert [asked.path for asked in server.asked] == ["/v1/chat/completions"]


def test_an_unknown_model_is_named(server: LoopbackServer, engine: Make) -> None:
    """As vLLM says it."""
    said = "The model `tiny` does not exist."
    server.behave = lambda _: Answer(
        {"error": {"message": said, "type": "NotFoundError", "param": "model", "code": 404}}, 404
    )
    with pytest.raises(EngineError) as caught:
        _ask(engine())
    assert str(caught.value) == (
        f"'127.0.0.1' answered with status 404, {said!r}: model is 'tiny', expected one that the "
        "server has and the key may use"
    )


def test_numbers_of_single_calls_are_left_out_of_errors(
    server: LoopbackServer, engine: Make
) -> None:
    """Errors of a dead server are equal, so that a run of them is noticed."""
    ids = ["req_0f9a8b7c6d5e4f3a2b1c", "req_11111111111111111111"]
    server.behave = lambda _: fault(500, f"broken, mention {ids[len(server.asked) - 1]}")
    errors = {_ask(engine(max_attempts=1)).error for _ in ids}
    assert errors == {"status 500: broken, mention (id)"}


def test_a_long_error_is_shortened(server: LoopbackServer, engine: Make) -> None:
    """A line of a table, not a page."""
    server.behave = lambda _: fault(400, "no " * 5000)
    assert _ask(engine()).error == ("status 400: " + "no " * 170)[:497] + "..."


# How servers say that they cannot enforce a schema.
NO_SCHEMA = [
    fault(400, "This response_format type is unavailable now", type="invalid_request_error"),
    fault(400, "'response_format.type' must be 'text' or 'json_object'"),
    fault(400, "Invalid parameter", param="response_format"),
    fault(400, "This model does not support response format `json_schema`."),
    Answer(
        {"detail": [{"loc": ["body", "response_format", "type"], "msg": "Input should be"}]}, 422
    ),
]


@pytest.mark.parametrize("refusal", NO_SCHEMA)
def test_a_server_without_schemas_is_asked_in_words(
    server: LoopbackServer,
    engine: Make,
    refusal: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Learnt once for all requests, said once, and no attempt is lost by it."""
    server.behave = lambda asked: refusal if "response_format" in asked.body else completion("red")
    asked = engine(concurrency=1, max_attempts=1)
    done = list(asked.stream([request("one"), request("two")])) + list(
        asked.stream([request("three")])
    )
    assert [one.text for _, one in done] == ["red"] * 3
    assert server.lines() == ["one", "one", "two", "three"]
    assert ["response_format" in one.body for one in server.asked] == [True, False, False, False]
    system = server.asked[1].body["messages"][0]
    assert system["role"] == "system"
    assert system["content"].startswith("Name a colour.\n\nAnswer with one JSON object")
    assert '"maxLength":20' in system["content"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_failure_in_both_ways_teaches_nothing(server: LoopbackServer, engine: Make) -> None:
    """A request that fails in words too says nothing about schemas: the next is asked with one."""
    bad = fault(400, "grammar and picture are broken")
    server.behave = lambda asked: bad if asked.line == "bad" else completion("red")
    done = dict(engine(concurrency=1).stream([request("bad"), request("good")]))
    assert done[0] == Completion(None, "status 400: grammar and picture are broken", "error")
    assert ["response_format" in one.body for one in server.asked] == [True, False, True]


def test_a_broken_server_is_not_one_without_schemas(server: LoopbackServer, engine: Make) -> None:
    """Only a refusal of the request says what the server does not know."""
    server.behave = lambda _: fault(500, "the response_format worker died")
    assert _ask(engine(max_attempts=1)).error == "status 500: the response_format worker died"
    assert len(server.asked) == 1


def test_a_fixed_way_is_kept_to(server: LoopbackServer, engine: Make) -> None:
    """Whoever asks for enforced schemas gets an error rather than something else."""
    server.behave = lambda _: NO_SCHEMA[0]
    done = _ask(engine(structured="json_schema"))
    assert done.finish_reason == "error"
    assert len(server.asked) == 1


def test_the_name_of_the_token_limit_is_found_out(server: LoopbackServer, engine: Make) -> None:
    """Once; a limit that is too high for the model is not mistaken for a name."""
    unknown = fault(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        code="unsupported_parameter",
        param="max_tokens",
    )

    def behave(asked: Asked) -> Answer:
        return unknown if "max_tokens" in asked.body else completion("red")

    server.behave = behave
    asked = engine(concurrency=1)
    assert [done for _, done in asked.stream([request("one"), request("two")])] == [RED, RED]
    names = ["max_tokens", "max_completion_tokens"]
    sent = [[name for name in names if name in one.body] for one in server.asked]
    assert sent == [names[:1], names[1:], names[1:]]

    server.asked.clear()
    server.behave = lambda _: fault(400, "max_tokens is too large: 9. At most 4 are possible")
    assert _ask(engine()).finish_reason == "error"
    assert len(server.asked) == 1


def test_a_model_without_temperature_is_told_what_to_do(
    server: LoopbackServer, engine: Make
) -> None:
    """The option is named, and how it is switched off; then it is not sent."""
    server.behave = lambda _: fault(
        400, "only the default is supported", param="temperature", code="unsupported_value"
    )
    with pytest.raises(EngineError, match="set `temperature: null`, which sends none"):
        _ask(engine())
    server.behave = lambda _: completion("red")
    assert _ask(engine(temperature=None)) == RED
    assert "temperature" not in server.asked[-1].body


def test_a_wait_holds_for_all_requests(server: LoopbackServer, engine: Make) -> None:
    """Once the server has asked one request to wait, none goes before that time."""
    asked = engine(concurrency=1, max_attempts=1)
    server.behave = lambda _: fault(429, "slow down", headers={"Retry-After": "30"})
    assert _ask(asked).finish_reason == "error"
    # A single attempt: only the limits can hold the next one back.
    assert 0 < asked.requests.left_s(asked.requests.reserve(0)) <= 30


def test_requests_wait_for_their_place(server: LoopbackServer, engine: Make) -> None:
    """Nothing is sent while the limits hold it back."""
    asked = engine()
    asked.requests.hold(0.2)
    before = time.monotonic()
    assert _ask(asked) == RED
    assert time.monotonic() - before >= 0.2
    assert server.lines() == ["red"]


def test_used_tokens_count_against_the_limit(server: LoopbackServer, engine: Make) -> None:
    """13 tokens at one a second: an estimate of 5 alone would let the next go after 4."""
    asked = engine(tokens_per_minute=60)
    assert _ask(asked) == RED
    assert 6 < asked.tokens.left_s(asked.tokens.reserve(0)) <= 12
    server.behave = lambda _: completion("red", usage=None)
    asked = engine(tokens_per_minute=1)
    assert _ask(asked).text == "red"
    # 5 tokens at one a minute, less the second that may go early.
    assert 280 < asked.tokens.left_s(asked.tokens.reserve(0)) <= 299


def test_cached_tokens_and_the_price_are_reported(server: LoopbackServer, engine: Make) -> None:
    """From the response where it says, else from the price of the config."""
    details = {"cached_tokens": 40}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": details}
    _in_turn(
        server,
        completion("red", usage=usage),
        completion("red", usage=usage),
        completion("red", usage={**usage, "cost": 0.5}),
    )
    priced = {"usd_per_million_prompt_tokens": 1, "usd_per_million_completion_tokens": 10}
    done = [_ask(engine(**options)) for options in ({}, priced, priced)]
    assert {one.usage for one in done} == {Usage(100, 20, 40)}
    # (100 * 1 + 20 * 10) / 1e6
    assert [one.cost_usd for one in done] == [None, 0.0003, 0.5]
