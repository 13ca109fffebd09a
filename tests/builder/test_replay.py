"""The engine that stands for another one: known by its signature, and never asked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from echo_hf.builder.replay import ReplayEngine
from echo_hf.engines.base import Engine
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.pipeline.batch_inference import MOST_ERRORS, fill
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Failed
from tests.stages_for_tests import Guess, Scripted, posts, request

RECORDED = {"kind": "scripted", "model": "one"}


def test_its_keys_are_those_of_the_engine_it_stands_for() -> None:
    """The same requests have the same keys, and those of another model have others."""
    asked = [request("a red kite"), request("a blue kite")]
    engine = ReplayEngine(RECORDED)
    assert isinstance(engine, Engine)
    assert request_keys(engine.signature(), asked) == request_keys(Scripted().signature(), asked)
    others = request_keys(Scripted("two").signature(), asked)
    assert set(others).isdisjoint(request_keys(engine.signature(), asked))


def test_every_request_is_told_that_there_is_no_answer() -> None:
    """A value for each, in order, with its own reason; nothing is raised."""
    asked = [request(f"line {number}") for number in range(3)]
    with ReplayEngine(RECORDED) as engine:
        told = dict(engine.stream(asked))
    assert list(told) == [0, 1, 2]
    for number, completion in told.items():
        failure = parse(asked[number], completion, b"\1")
        assert isinstance(failure, Failure)
        assert failure.reason is Failed.NOT_ANSWERED


def test_stages_read_what_the_other_engine_answered(tmp_path: Path) -> None:
    """Rows that it answered are equal; the others wait, however many they are."""
    answered = posts("a red kite", "a blue\na green kite")
    more = posts("a red kite", "a blue\na green kite", *(f"no {n}" for n in range(MOST_ERRORS + 9)))
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        first = run_stage(Guess(), answered, engine=Scripted(), store=store)
        engine = ReplayEngine(RECORDED)
        second = run_stage(Guess(), more, engine=engine, store=store)
        stats = fill(Guess(), more, engine, store)
    assert second.dataset.to_list() == first.dataset.to_list()
    assert second.stats.quarantined == {"not_answered": MOST_ERRORS + 9}
    assert stats.failures == {"not_answered": MOST_ERRORS + 9}
