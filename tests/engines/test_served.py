"""The models that a server names, against a real one on loopback, which may be hostile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from echo_hf.engines import served
from echo_hf.engines.served import list_served_models
from echo_hf.errors import EngineError
from tests.engines.openai.loopback_server import (
    SILENCE,
    Answer,
    LoopbackServer,
    closed_port,
    running,
)
from tests.errors_for_tests import said_by


@pytest.fixture(autouse=True)
def _without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with running() as loopback:
        yield loopback


def listing(*names: Any) -> Answer:
    return Answer({"object": "list", "data": [{"id": name} for name in names]})


def test_names_come_in_the_order_of_the_server(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behave = lambda _: listing("b", "a", "b")
    assert list_served_models(server.url) == list_served_models(f"{server.url}/") == ["b", "a"]
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    list_served_models(server.url)
    first, _, last = server.asked
    assert (first.path, first.headers.get("authorization")) == ("/v1/models", None)
    assert last.headers["authorization"] == "Bearer a-key"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(b"", status=404), "status 404"),
        (Answer(b"", status=302, headers={"Location": "http://127.0.0.1:1/"}), "status 302"),
        (Answer(b"<html>"), "lists no models"),
        (Answer([]), "lists no models"),
        (Answer({"data": [{}]}), "lists no models"),
        (listing(), "it names none"),
        (listing(7), "it names none"),
        (listing("two\nlines"), "it names none"),
        (Answer(b"[" * 100_000), "lists no models"),
        (Answer(json.dumps({"data": "x" * 5_000_000}).encode()), "does not end"),
        (Answer(b"{" * 1000, trickles=True), "does not end"),
        (Answer(b"{" * 100, cut_after=0), "/v1/models'"),
        (Answer(b"{" * 100, cut_after=9), "/v1/models'"),
        (SILENCE, "no server answers"),
    ],
)
def test_what_lists_no_models_is_one_line(
    server: LoopbackServer, answer: Answer, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "MAX_WAIT_SECONDS", 0.3)
    server.behave = lambda _: answer
    said = said_by(EngineError, list_served_models, server.url)
    assert why in said
    assert "ends in /v1" in said


def test_nobody_there_and_no_address_are_one_line() -> None:
    assert "no server answers at" in said_by(EngineError, list_served_models, closed_port())
    for address in ("qwen", "ftp://127.0.0.1/v1", "http://127.0.0.1/v1?key=x"):
        assert "expected an address such as" in said_by(EngineError, list_served_models, address)
