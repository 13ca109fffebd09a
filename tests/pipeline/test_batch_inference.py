"""Batch inference: what is asked, how often, in what stream, and what it is said to cost."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from echo_hf.engines.base import Completion, Failed, Request, Text, Usage
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.pipeline.batch_inference import (
    MAX_REPEATED_CHARACTERS,
    FillStats,
    build_retry,
    fill,
    plan_requests,
)
from echo_hf.pipeline.stage_runner import run_stage
from tests.stages_for_tests import (
    MOST_TOKENS,
    EngineLostError,
    Guess,
    Scripted,
    line_of,
    posts,
    request,
    url,
)


def _known(store: Store, *lines: str) -> dict[str, Completion | None]:
    keys = compute_request_keys(Scripted().signature(), [request(line) for line in lines])
    known = store.get(keys)
    return {line: known.get(key) for line, key in zip(lines, keys, strict=True)}


def test_each_different_line_is_asked_once_and_kept(store: Store) -> None:
    engine = Scripted()
    stats = fill(Guess(), posts("red\nblue", None, "", "red"), engine, store)
    assert sorted(engine.lines()) == ["blue", "red"]
    assert (stats.requests, stats.calls, stats.repeated, stats.store_hits) == (3, 2, 1, 0)
    assert stats.failures == {}
    texts = [done.text for done in _known(store, "red", "blue").values() if done]
    assert texts == ['{"name": "red", "number": 3}', '{"name": "blue", "number": 4}']
    stats = fill(Guess(), posts("red", "red", "green"), engine, store)
    assert (stats.requests, stats.calls, stats.repeated, stats.store_hits) == (3, 1, 1, 1)
    for again in (False, True):
        stats = fill(Guess(), posts("red"), engine, store, again=again)
        assert (stats.store_hits, stats.usage, stats.cost_usd) == (1, Usage(), None)
    assert engine.streams == 2


def test_a_damaged_answer_is_asked_again_in_the_same_run_and_counted(store: Store) -> None:
    engine = Scripted()
    fill(Guess(), posts("red", "blue", "green"), engine, store)
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        query = "update answers set text = replace(text, 'red', 'rod')"
        assert connection.execute(query).rowcount == 3
    planned = plan_requests(Guess(), posts("red", "blue", "green"), engine, store)
    assert (planned.stored, planned.calls) == (2, 1)
    stats = fill(Guess(), posts("red", "blue", "green"), engine, store)
    assert (stats.calls, stats.store_hits, stats.damaged) == (1, 2, 1)
    assert ", 1 damaged since and asked again, " in str(stats)
    assert engine.lines()[-1] == "red"
    again = fill(Guess(), posts("red", "blue", "green"), engine, store)
    assert (again.calls, again.damaged) == (0, 0)
    assert "damaged" not in str(again)


# First word, and how often it is asked in a first fill, in a second, and in a second with `again`.
TRIES = {
    "red": (1, 0, 0),
    "prose red": (1, 0, 0),
    "cut red": (2, 0, 0),
    "once red": (2, 0, 0),
    "error red": (2, 2, 2),
    "short red": (2, 0, 2),
    "silent red": (2, 2, 2),
    "refuse red": (1, 0, 1),
    "off red": (2, 0, 2),
    "babble red": (2, 0, 2),
}


@pytest.mark.parametrize("again", [False, True])
def test_how_often_each_kind_is_asked(store: Store, again: bool) -> None:
    """A failure is counted by the reason of its last try, and remembered for the quarantine."""
    engine, second = Scripted(), Scripted()
    stats = fill(Guess(), posts(*TRIES), engine, store)
    assert Counter(engine.lines()) == {line: tries[0] for line, tries in TRIES.items()}
    reasons = ("engine_error", "refused", "cut", "not_answered", "off_schema", "unreadable")
    assert stats.failures == dict.fromkeys(reasons, 1)
    known = _known(store, "error red", "refuse red", "short red", "silent red").values()
    said = [(one.error, one.finish_reason) if one else None for one in known]
    assert said[:2] == [("no power for red", "error"), ("I will not.", "refusal")]
    assert said[2:] == [(said[2] and said[2][0], "length"), None]
    fill(Guess(), posts(*TRIES), second, store, again=again)
    place = 2 if again else 1
    assert Counter(second.lines()) == {
        line: one[place] for line, one in TRIES.items() if one[place]
    }


def test_the_stats_add_up_in_a_run_and_over_runs(store: Store) -> None:
    lines = ["red", "red", "cut blue", "error green", "refuse pink", "babble grey", "silent tan"]
    first = fill(Guess(), posts(*lines), Scripted(cost_usd=0.25), store)
    # One call for red and pink each, two for blue, green and grey, and two that nobody saw.
    assert (first.requests, first.store_hits, first.repeated, first.calls) == (7, 0, 1, 8)
    assert (first.usage, first.cost_usd) == (Usage(80, 24, 16), 2.0)
    assert (first.stage_usage, first.stage_cost_usd) == (Usage(80, 24, 16), 2.0)
    assert first.seconds > 0
    second = fill(Guess(), posts(*lines), Scripted(cost_usd=0.25), store)
    # Two calls for green, which failed without an answer; pink was refused.
    assert (second.calls, second.usage, second.cost_usd) == (2, Usage(20, 6, 4), 0.5)
    assert (second.stage_usage, second.stage_cost_usd) == (Usage(100, 30, 20), 2.5)
    other = fill(Guess(), posts("blue"), Scripted(), store)
    assert (other.stage_usage, other.stage_cost_usd) == (Usage(10, 3, 2), None)


class KilledError(Exception):
    """Stands for the end of a process."""


def _killed_after(calls: int) -> Callable[[FillStats], None]:
    def stop(stats: FillStats) -> None:
        if stats.calls == calls:
            raise KilledError

    return stop


@dataclass
class Moody(Scripted):
    given: set[str] = field(default_factory=set)

    def _completion(self, asked: Request) -> Completion:
        first = line_of(asked) not in self.given
        self.given.add(line_of(asked))
        return Completion("Hm.") if first else super()._completion(asked)


@pytest.mark.parametrize("calls", [1, 2, 5, 7, 11, 12])
def test_a_kill_between_two_tries_changes_nothing(store: Store, calls: int) -> None:
    lines = ["red", "blue", "green", "grey", "pink", "black"]
    engine = Moody(window=2)
    with pytest.raises(KilledError):
        fill(Guess(), posts(*lines), engine, store, progress=_killed_after(calls))
    in_flight = len(engine.asked) - calls
    fill(Guess(), posts(*lines), engine, store)
    texts = {line: known.text for line, known in _known(store, *lines).items() if known}
    assert texts == {line: json.dumps({"name": line, "number": len(line)}) for line in lines}
    assert len(engine.asked) - in_flight == 12


def test_an_unreadable_answer_gets_two_tries_over_two_runs(store: Store) -> None:
    engine = Scripted()
    with pytest.raises(KilledError):
        fill(Guess(), posts("babble red"), engine, store, progress=_killed_after(1))
    assert plan_requests(Guess(), posts("babble red"), engine, store).calls == 1
    stats = fill(Guess(), posts("babble red"), engine, store)
    assert (stats.calls, stats.failures) == (1, {"unreadable": 1})
    assert plan_requests(Guess(), posts("babble red"), engine, store).calls == 0
    assert fill(Guess(), posts("babble red"), engine, store).calls == 0


def test_second_tries_join_the_stream(store: Store) -> None:
    engine = Scripted(window=2)
    fill(Guess(), posts("grey", "once blue", *(f"shade {n}" for n in range(9))), engine, store)
    assert engine.streams == 1
    assert engine.lines()[:4] == ["grey", "once blue", "once blue", "shade 0"]


class Unplugged(Scripted):
    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        dead = Completion(None, error="connection refused", finish_reason="error")
        for number, question in enumerate(requests):
            self.asked.append(question)
            yield number, dead if number else Completion('{"colour": "red"}')


def test_a_dead_engine_is_given_up_and_single_failures_are_not(store: Store) -> None:
    engine = Unplugged(window=1)
    with pytest.raises(EngineError) as caught:
        fill(Guess(), posts("red", *[f"post {number}" for number in range(80)]), engine, store)
    assert str(caught.value) == (
        "engine 'Unplugged' gave 50 equal errors in a row and no answer, 'connection refused': "
        "fix that, the same command resumes from here"
    )
    assert (len(engine.asked), len(store)) == (1 + 50, 1)
    lines = [f"error {number}" for number in range(80)]
    stats = fill(Guess(), posts(*lines, "blue"), Scripted(window=1), store)
    assert stats.failures == {"engine_error": 80}
    assert len(store) == 2


def test_every_post_of_an_answer_is_a_source_of_it(store: Store) -> None:
    for asked in (posts("red", "red"), posts("blue"), posts("", "blue")):
        fill(Guess(), asked, Scripted(), store)
    assert store.forget([url(1)]) == 2
    assert len(store) == 0


def test_an_engine_that_breaks_down_loses_no_answer(store: Store) -> None:
    lines = [f"colour {number}" for number in range(8)] + ["raise red"]
    first = Scripted(window=3)
    with pytest.raises(EngineLostError, match="raise red"):
        fill(Guess(), posts(*lines), first, store)
    done = [line for line, known in _known(store, *lines).items() if known]
    assert len(done) == len(first.in_flight) - 1 == 6


def test_segments_flow_into_one_stream_read_no_further_than_the_engine_asks(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echo_hf.pipeline.batch_inference.SEGMENT_ROWS", 3)
    prepared: list[int] = []

    @dataclass(frozen=True)
    class Counted(Guess):
        def requests(self, table: object) -> list[list[Request]]:
            rows = super().requests(table)
            prepared.append(len(rows))
            return rows

    seen: list[int] = []
    engine, lines = Scripted(window=5), [f"colour {number}" for number in range(20)]
    stats = fill(
        Counted(), posts(*lines), engine, store, progress=lambda _: seen.append(sum(prepared))
    )
    assert (engine.streams, stats.calls) == (1, 20)
    assert engine.in_flight == [5] * 16 + [4, 3, 2, 1]
    assert sorted(engine.lines()) == sorted(lines)
    assert prepared == [3] * 6 + [2]
    assert all(shown <= done + 5 + 3 for done, shown in enumerate(seen))


def test_requests_with_equal_instructions_follow_each_other(store: Store) -> None:
    @dataclass(frozen=True)
    class TwoPrompts(Guess):
        def requests(self, table: object) -> list[list[Request]]:
            rows = super().requests(table)
            return [[request(line_of(row[0]), f"Prompt {at % 2}")] for at, row in enumerate(rows)]

    fill(TwoPrompts(), posts("a", "b", "c", "d", "e"), engine := Scripted(), store)
    assert engine.lines() == ["a", "c", "e", "b", "d"]


@dataclass
class Repeating(Scripted):
    strange: int = 0

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        yield from super().stream(requests)
        yield self.strange, Completion("{}")


@pytest.mark.parametrize("number", [0, 7])
def test_an_engine_that_miscounts_is_named(store: Store, number: int) -> None:
    with pytest.raises(EngineError, match=f"^engine 'Repeating' answered request {number}, which"):
        fill(Guess(), posts("red", "blue"), Repeating(strange=number), store)
    assert len(store) == 2


@pytest.mark.parametrize(("window", "segment"), [(1, 3), (4, 1), (3, 20)])
def test_the_plan_names_the_calls_that_are_made(
    store: Store, monkeypatch: pytest.MonkeyPatch, window: int, segment: int
) -> None:
    monkeypatch.setattr("echo_hf.pipeline.batch_inference.SEGMENT_ROWS", segment)
    rows = posts(*TRIES, "red", "", "off red")
    for made in range(2):
        engine = Scripted(window=window)
        planned = plan_requests(Guess(), rows, engine, store)
        assert engine.streams == 0
        stats = fill(Guess(), rows, engine, store)
        assert planned.calls == len(set(engine.lines())) == len(TRIES) - 8 * made
        assert planned.requests == stats.requests == len(TRIES) + 2
        assert (planned.stored, planned.repeated) == (stats.store_hits, stats.repeated)


def test_enough_is_enough(store: Store) -> None:
    """What is under way is kept; a second try counts as more."""
    engine, lines = Scripted(window=2), [f"colour {number}" for number in range(9)]
    stats = fill(Guess(), posts(*lines), engine, store, enough=lambda so_far: so_far.calls >= 3)
    assert stats.calls == len(engine.asked) == len(store) == 4
    again = fill(Guess(), posts(*lines), engine, store)
    assert (again.calls, again.store_hits) == (5, 4)
    engine = Scripted(window=1)
    fill(Guess(), posts("babble"), engine, store, enough=lambda so_far: so_far.calls >= 1)
    assert len(engine.asked) == 1


ASKED = request("red")
RAW = replace(ASKED, answer=None)


@pytest.mark.parametrize(("line", "said"), [("off red", '{"name": 5}'), ("babble red", "Hm.")])
def test_an_unreadable_answer_is_shown_with_its_fault(store: Store, line: str, said: str) -> None:
    engine = Scripted()
    fill(Guess(), posts(line), engine, store)
    first, second = engine.asked
    answer, fault = second.messages[len(first.messages) :]
    assert (answer.role, answer.parts) == ("assistant", (Text(said),))
    assert fault.role == "user"
    failure = parse(first, Completion(said), b"")
    assert isinstance(failure, Failure)
    assert failure.detail.rstrip(".") in str(fault.parts[0])
    again = build_retry(ASKED, Completion("ha" * 10_000), failure)  # shown in part
    assert again.messages[-2].parts == (Text("ha" * (MAX_REPEATED_CHARACTERS // 2)),)


@pytest.mark.parametrize(
    ("asked", "text", "reason", "expected"),
    [
        (ASKED, '{"na', Failed.CUT, replace(ASKED, max_tokens=2 * MOST_TOKENS)),
        (ASKED, None, Failed.ENGINE_ERROR, ASKED),
        # A blank answer is not shown, and a raw text has no form to be told.
        *((ASKED, blank, Failed.UNREADABLE, ASKED) for blank in (" \n", None)),
        (RAW, "\ud800", Failed.UNREADABLE, RAW),
    ],
)
def test_what_is_asked_after_a_failure(
    asked: Request, text: str | None, reason: Failed, expected: Request
) -> None:
    assert build_retry(asked, Completion(text), Failure(reason, "too long.", "0")) == expected


@dataclass(frozen=True)
class Look(Guess):
    """Guesses as well, by what images show."""

    sends_images: ClassVar[bool] = True


def test_a_stage_that_sends_images_refuses_who_reads_text_alone(store: Store) -> None:
    """Before a question is asked; who may see images is asked."""
    engine = Scripted(sees_images=False)
    for ask in (
        lambda: fill(Look(), posts("red"), engine, store),
        lambda: run_stage(Look(), posts("red"), engine=engine),
        lambda: Look(engine=engine),
    ):
        with pytest.raises(EngineError, match="stage 'guess' sends images, and 'one' reads text"):
            ask()
    assert engine.streams == 0
    assert fill(Guess(), posts("red"), engine, store).calls == 1
    assert fill(Look(), posts("blue"), Scripted(), store).calls == 1
