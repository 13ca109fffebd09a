"""Filling the store: what is asked, how often, in what stream, and what it is said to cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion, Request, Text, Usage
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.pipeline.batch_inference import FillStats, fill, plan
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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()


def _known(store: Store, *lines: str) -> dict[str, Completion | None]:
    keys = request_keys(Scripted().signature(), [request(line) for line in lines])
    known = store.get(keys)
    return {line: known.get(key) for line, key in zip(lines, keys, strict=True)}


def test_every_line_is_asked_once_and_kept(store: Store) -> None:
    """Each request of each row is answered and stored; rows without requests cost nothing."""
    engine = Scripted()
    stats = fill(Guess(), posts("red\nblue", None, "", "green"), engine, store)
    assert sorted(engine.lines()) == ["blue", "green", "red"]
    assert (stats.requests, stats.calls, stats.store_hits) == (3, 3, 0)
    assert stats.failures == {}
    texts = [done.text for done in _known(store, "red", "blue", "green").values() if done]
    assert texts == [
        '{"name": "red", "number": 3}',
        '{"name": "blue", "number": 4}',
        '{"name": "green", "number": 5}',
    ]


def test_equal_requests_are_one_call(store: Store) -> None:
    """Two rows, or two lines of one, that ask the same are answered by the same call."""
    engine = Scripted()
    stats = fill(Guess(), posts("red", "red\nred", "blue"), engine, store)
    assert sorted(engine.lines()) == ["blue", "red"]
    assert (stats.requests, stats.calls, stats.repeated, stats.store_hits) == (4, 2, 2, 0)
    stats = fill(Guess(), posts("red", "red", "green"), engine, store)
    assert (stats.requests, stats.calls, stats.repeated, stats.store_hits) == (3, 1, 1, 1)


@pytest.mark.parametrize("again", [False, True])
def test_a_second_fill_asks_nothing(store: Store, again: bool) -> None:
    """What is answered readably is not asked again, and the engine is not even started."""
    rows = posts("red\nblue", "prose green")
    fill(Guess(), rows, Scripted(), store)
    engine = Scripted()
    stats = fill(Guess(), rows, engine, store, again=again)
    assert (engine.streams, engine.asked) == (0, [])
    assert (stats.requests, stats.calls, stats.store_hits) == (3, 0, 3)
    assert (stats.usage, stats.cost_usd) == (Usage(), None)


# First word, and how often it is asked in a first fill, in a second, and in a second with `again`.
TRIES = {
    "red": (1, 0, 0),
    "prose red": (1, 0, 0),
    "cut red": (2, 0, 0),
    "once red": (2, 0, 0),
    "error red": (2, 2, 2),
    "short red": (2, 2, 2),
    "silent red": (2, 2, 2),
    "refuse red": (1, 1, 1),
    "off red": (2, 0, 2),
    "babble red": (2, 0, 2),
}


@pytest.mark.parametrize("line", TRIES)
@pytest.mark.parametrize("again", [False, True])
def test_how_often_each_kind_is_asked(store: Store, line: str, again: bool) -> None:
    """At most twice a fill; refusals once; what cannot be read again only when told to."""
    engine = Scripted()
    fill(Guess(), posts(line), engine, store)
    first = len(engine.asked)
    fill(Guess(), posts(line), engine, store, again=again)
    assert (first, len(engine.asked) - first) == (TRIES[line][0], TRIES[line][2 if again else 1])


def test_a_cut_answer_is_asked_again_with_double_room(store: Store) -> None:
    """The second answer stands under the key of the first question, so that it is found."""
    engine = Scripted()
    fill(Guess(), posts("cut red"), engine, store)
    assert [asked.max_tokens for asked in engine.asked] == [MOST_TOKENS, 2 * MOST_TOKENS]
    known = _known(store, "cut red")["cut red"]
    assert known is not None
    assert known.text == '{"name": "red", "number": 3}'
    assert len(store) == 1


def test_what_is_not_cut_is_asked_again_as_it_was(store: Store) -> None:
    """An error is no reason for more room."""
    engine = Scripted()
    fill(Guess(), posts("once red"), engine, store)
    assert [asked.max_tokens for asked in engine.asked] == [MOST_TOKENS, MOST_TOKENS]


@pytest.mark.parametrize(("line", "said"), [("off red", '{"name": 5}'), ("babble red", "Hm.")])
def test_an_unreadable_answer_is_shown_with_its_fault(store: Store, line: str, said: str) -> None:
    """The second question is the first, the bad answer, and what was wrong with it."""
    engine = Scripted()
    fill(Guess(), posts(line), engine, store)
    first, second = engine.asked
    assert second.messages[: len(first.messages)] == first.messages
    answer, fault = second.messages[len(first.messages) :]
    assert (answer.role, answer.parts) == ("assistant", (Text(said),))
    assert fault.role == "user"
    failure = parse(first, Completion(said), b"")
    assert isinstance(failure, Failure)
    assert isinstance(fault.parts[0], Text)
    assert failure.detail.rstrip(".") in fault.parts[0].text


def test_a_second_try_after_a_kill_shows_the_fault_as_well(store: Store) -> None:
    """What the killed run was told is read from the store."""
    engine = Scripted()
    with pytest.raises(KilledError):
        fill(Guess(), posts("babble red"), engine, store, progress=_killed_after(1))
    fill(Guess(), posts("babble red"), engine, store)
    assert [message.role for message in engine.asked[1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


def test_failures_are_counted_by_the_reason_of_the_last_try(store: Store) -> None:
    """Only calls without a usable answer in the end count, each once."""
    lines = [*TRIES, "error blue", "refuse blue"]
    stats = fill(Guess(), posts(*lines), Scripted(), store)
    assert stats.failures == {
        "engine_error": 2,
        "refused": 2,
        "cut": 1,
        "not_answered": 1,
        "off_schema": 1,
        "unreadable": 1,
    }


def test_failures_are_remembered_for_the_quarantine(store: Store) -> None:
    """What went wrong last is known, a request that was never reported is not."""
    fill(Guess(), posts("error red", "refuse red", "short red", "silent red"), Scripted(), store)
    known = _known(store, "error red", "refuse red", "short red", "silent red")
    said = [(one.error, one.finish_reason) if one else None for one in known.values()]
    assert said == [("no power for red", "error"), (None, "refusal"), (None, "length"), None]


def test_the_stats_add_up(store: Store) -> None:
    """Tokens and prices of all calls, second tries included; calls are those that came back."""
    lines = ["red", "cut blue", "error green", "refuse pink", "silent grey", "red"]
    engine = Scripted(cost_usd=0.25)
    stats = fill(Guess(), posts(*lines), engine, store)
    assert len(engine.asked) == 1 + 2 + 2 + 1 + 2
    assert (stats.requests, stats.store_hits, stats.repeated, stats.calls) == (6, 0, 1, 6)
    assert stats.usage == Usage(60, 18, 12)
    assert stats.cost_usd == 1.5
    assert stats.seconds > 0


def test_an_unknown_price_is_not_nothing(store: Store) -> None:
    """An engine that names no price leaves the cost null, one that is free makes it 0."""
    assert fill(Guess(), posts("red"), Scripted(), store).cost_usd is None
    assert fill(Guess(), posts("blue"), Scripted(cost_usd=0.0), store).cost_usd == 0.0


def test_the_stage_adds_up_over_runs(store: Store) -> None:
    """What earlier runs paid for these rows is reported apart: failed and cut calls included."""
    lines = ["red", "red", "cut blue", "error green", "refuse pink", "babble grey"]
    first = fill(Guess(), posts(*lines), Scripted(cost_usd=0.25), store)
    # One call for red and pink each, two for blue, green and grey.
    assert (first.calls, first.usage, first.cost_usd) == (8, Usage(80, 24, 16), 2.0)
    assert (first.stage_usage, first.stage_cost_usd) == (Usage(80, 24, 16), 2.0)
    second = fill(Guess(), posts(*lines), Scripted(cost_usd=0.25), store)
    assert (second.calls, second.usage, second.cost_usd) == (3, Usage(30, 9, 6), 0.75)
    assert (second.stage_usage, second.stage_cost_usd) == (Usage(110, 33, 22), 2.75)
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
    """Gives no JSON the first time it is asked something, whatever process asks it."""

    given: set[str] = field(default_factory=set)

    def _completion(self, asked: Request) -> Completion:
        first = line_of(asked) not in self.given
        self.given.add(line_of(asked))
        return Completion("Hm.") if first else super()._completion(asked)


@pytest.mark.parametrize("calls", range(1, 13))
def test_a_kill_between_two_tries_changes_nothing(store: Store, calls: int) -> None:
    """Wherever a run ends, the next one makes the calls that are left and no others."""
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
    """One before the kill and one after it; then it stays unreadable."""
    engine = Scripted()
    with pytest.raises(KilledError):
        fill(Guess(), posts("babble red"), engine, store, progress=_killed_after(1))
    assert plan(Guess(), posts("babble red"), engine, store).calls == 1
    stats = fill(Guess(), posts("babble red"), engine, store)
    assert (stats.calls, stats.failures) == (1, {"unreadable": 1})
    assert plan(Guess(), posts("babble red"), engine, store).calls == 0
    assert fill(Guess(), posts("babble red"), engine, store).calls == 0


def test_second_tries_join_the_stream(store: Store) -> None:
    """A failed call is made again while the rest is still to come, not after the last."""
    engine = Scripted(window=2)
    lines = ["once red", *[f"colour {number}" for number in range(9)]]
    fill(Guess(), posts(*lines), engine, store)
    # Latest first: the first request is answered when nothing else is left to take.
    assert (engine.streams, engine.lines()[-1]) == (2, "once red")
    engine = Scripted(window=2)
    lines = ["grey", "once blue", *[f"shade {number}" for number in range(9)]]
    fill(Guess(), posts(*lines), engine, store)
    assert engine.streams == 1
    assert engine.lines()[:4] == ["grey", "once blue", "once blue", "shade 0"]


class Unplugged(Scripted):
    """An engine that gives one answer and then loses its server."""

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """The same error for all but the first."""
        dead = Completion(None, error="connection refused", finish_reason="error")
        for number, question in enumerate(requests):
            self.asked.append(question)
            yield number, dead if number else Completion('{"colour": "red"}')


def test_a_dead_engine_is_given_up(store: Store) -> None:
    """After 50 equal errors in a row one line shows the error; what was stored stays."""
    engine = Unplugged(window=1)
    with pytest.raises(EngineError) as caught:
        fill(Guess(), posts("red", *[f"post {number}" for number in range(80)]), engine, store)
    assert str(caught.value) == (
        "engine 'Unplugged' gave 50 equal errors in a row and no answer, 'connection refused': "
        "fix that, the same command resumes from here"
    )
    assert len(engine.asked) == 1 + 50
    assert len(store) == 1


def test_requests_that_fail_one_by_one_do_not_stop_the_rest(store: Store) -> None:
    """Errors that differ are about the requests, not about the engine."""
    lines = [f"error {number}" for number in range(80)]
    stats = fill(Guess(), posts(*lines, "red"), Scripted(window=1), store)
    assert stats.failures == {"engine_error": 80}
    assert len(store) == 1


def test_every_post_of_an_answer_is_a_source_of_it(store: Store) -> None:
    """Posts with equal words share an answer, which goes when any of them is forgotten."""
    for asked in (posts("red", "red"), posts("blue"), posts("", "blue")):
        fill(Guess(), asked, Scripted(), store)
    assert store.forget([url(1)]) == 2
    assert len(store) == 0


def test_progress_is_told_after_each_call(store: Store) -> None:
    """Once a call, with the numbers so far."""
    seen: list[FillStats] = []
    lines = [f"colour {number}" for number in range(5)]
    fill(Guess(), posts(*lines), Scripted(), store, progress=lambda s: seen.append(deepcopy(s)))
    assert [stats.calls for stats in seen] == [1, 2, 3, 4, 5]
    assert [stats.usage.prompt for stats in seen] == [10, 20, 30, 40, 50]
    assert seen == sorted(seen, key=lambda stats: stats.seconds)


def test_an_answer_is_durable_before_the_next_is_looked_at(store: Store) -> None:
    """When progress is told of a call, its answer is in the store already."""
    counts: list[int] = []
    rows = posts(*[f"colour {number}" for number in range(6)])
    fill(Guess(), rows, Scripted(), store, progress=lambda _: counts.append(len(store)))
    assert counts == [1, 2, 3, 4, 5, 6]


def test_an_engine_that_breaks_down_loses_no_answer(store: Store) -> None:
    """Its error passes through; what it answered before stays, and is not asked again."""
    lines = [f"colour {number}" for number in range(8)] + ["raise red"]
    first = Scripted(window=3)
    with pytest.raises(EngineLostError, match="raise red"):
        fill(Guess(), posts(*lines), first, store)
    done = [line for line, known in _known(store, *lines).items() if known]
    assert len(done) == len(first.in_flight) - 1 == 6
    second = Scripted()
    fill(Guess(), posts(*lines[:-1]), second, store)
    assert sorted(second.lines()) == sorted(set(lines[:-1]) - set(done))


def test_segments_flow_into_one_stream_without_draining(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's window stays full across segments, up to the last requests of all."""
    monkeypatch.setattr("echo_hf.pipeline.batch_inference.SEGMENT", 3)
    engine = Scripted(window=5)
    lines = [f"colour {number}" for number in range(20)]
    stats = fill(Guess(), posts(*lines), engine, store)
    assert engine.streams == 1
    assert engine.in_flight == [5] * 16 + [4, 3, 2, 1]
    assert sorted(engine.lines()) == sorted(lines)
    assert stats.calls == 20


def test_rows_are_read_no_further_than_the_engine_asks(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory stays bounded: a segment is prepared when the one before it has been taken."""
    monkeypatch.setattr("echo_hf.pipeline.batch_inference.SEGMENT", 2)
    prepared: list[int] = []

    @dataclass(frozen=True)
    class Counted(Guess):
        """Says how many rows it was shown."""

        def requests(self, table: object) -> list[list[Request]]:
            """The same requests."""
            rows = super().requests(table)
            prepared.append(len(rows))
            return rows

    seen: list[int] = []
    rows = posts(*[f"colour {number}" for number in range(10)])
    fill(Counted(), rows, Scripted(window=2), store, progress=lambda _: seen.append(sum(prepared)))
    assert prepared == [2] * 5
    assert seen[0] == 2
    assert all(shown <= done + 4 for done, shown in enumerate(seen))


def test_equal_requests_of_two_segments_are_one_call(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is still on its way is not sent again by a later segment."""
    monkeypatch.setattr("echo_hf.pipeline.batch_inference.SEGMENT", 2)
    engine = Scripted(window=100)
    stats = fill(Guess(), posts(*["red", "blue"] * 4), engine, store)
    assert sorted(engine.lines()) == ["blue", "red"]
    assert (stats.requests, stats.calls, stats.repeated) == (8, 2, 6)


def test_requests_with_equal_instructions_follow_each_other(store: Store) -> None:
    """Inside a segment the planner's order holds, so that prefixes are shared."""

    @dataclass(frozen=True)
    class TwoPrompts(Guess):
        """Asks every second row with other instructions."""

        def requests(self, table: object) -> list[list[Request]]:
            """Requests with alternating instructions."""
            rows = super().requests(table)
            return [
                [request(line_of(one), f"Prompt {at % 2}") for one in row]
                for at, row in enumerate(rows)
            ]

    engine = Scripted()
    fill(TwoPrompts(), posts("a", "b", "c", "d", "e"), engine, store)
    assert engine.lines() == ["a", "c", "e", "b", "d"]


def test_an_engine_whose_answers_are_not_kept_is_asked_nothing(store: Store) -> None:
    """Asking it again is as cheap as reading: nothing is stored."""
    engine = Scripted(stored=False)
    stats = fill(Guess(), posts("red"), engine, store)
    assert (engine.streams, stats.requests, len(store)) == (0, 0, 0)


@dataclass
class Repeating(Scripted):
    """An engine that breaks the contract: it reports a number it was not given, or gave back."""

    strange: int = 0

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Answers as it should, then once more."""
        yield from super().stream(requests)
        yield self.strange, Completion("{}")


@pytest.mark.parametrize("number", [0, 7])
def test_an_engine_that_miscounts_is_named(store: Store, number: int) -> None:
    """One line says so, and the answers it gave stay."""
    with pytest.raises(EngineError, match=f"^engine 'Repeating' answered request {number}, which"):
        fill(Guess(), posts("red", "blue"), Repeating(strange=number), store)
    assert len(store) == 2


def test_no_rows_start_no_engine(store: Store) -> None:
    """An empty dataset, or one that needs no model, asks nothing."""
    engine = Scripted()
    for rows in (posts(), posts("", None)):
        assert fill(Guess(), rows, engine, store).requests == 0
    assert engine.streams == 0


WORDS = st.sampled_from(list(TRIES))


@given(st.lists(WORDS, max_size=8), st.integers(1, 4), st.integers(1, 4))
def test_the_plan_names_the_calls_that_are_made(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], window: int, segment: int
) -> None:
    """Planned calls are the first tries that `fill` makes, in an empty store and in a used one."""
    store = Store(tmp_path_factory.mktemp("plan") / "answers.sqlite")
    rows = posts(*lines)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("echo_hf.pipeline.batch_inference.SEGMENT", segment)
        for _ in range(2):
            engine = Scripted(window=window)
            planned = plan(Guess(), rows, engine, store)
            assert engine.streams == 0
            stats = fill(Guess(), rows, engine, store)
            tries = Counter(engine.lines())
            assert planned.calls == len(tries)
            assert planned.requests == stats.requests == len(lines)
            assert (planned.stored, planned.repeated) == (stats.store_hits, stats.repeated)
            assert max(tries.values(), default=0) <= 2
    store.close()


def test_a_plan_for_an_engine_that_needs_no_model_is_free(store: Store) -> None:
    """Nothing is asked of a model, so nothing is planned."""
    planned = plan(Guess(), posts("red"), Scripted(stored=False), store)
    assert (planned.requests, planned.calls, planned.prompt_tokens) == (1, 0, 0)


def test_a_plan_counts_prompts_and_not_answers(store: Store) -> None:
    """Four Latin characters a token, over the requests that are still to be made."""
    fill(Guess(), posts("blue"), Scripted(), store)
    planned = plan(Guess(), posts("red", "blue"), Scripted(), store)
    # "Name a color." is 14 characters, "red" is 3: 4 + 1 tokens.
    assert (planned.requests, planned.stored, planned.prompt_tokens) == (2, 1, 5)


@dataclass
class Priced(Scripted):
    """An engine that says what it takes."""

    usd_per_million_prompt_tokens: float = 4.0


def test_a_plan_has_the_price_of_its_engine(store: Store) -> None:
    """An engine that names no price leaves it open."""
    assert plan(Guess(), posts("red"), Scripted(), store).cost_usd is None
    assert plan(Guess(), posts("red"), Priced(), store).cost_usd == 5 * 4.0 / 1e6


def test_enough_is_enough(store: Store) -> None:
    """Nothing more is asked then; what is under way is waited for and kept, the rest later."""
    engine, lines = Scripted(window=2), [f"colour {number}" for number in range(9)]
    stats = fill(Guess(), posts(*lines), engine, store, enough=lambda so_far: so_far.calls >= 3)
    assert stats.calls == len(engine.asked) == len(store) == 4
    again = fill(Guess(), posts(*lines), engine, store)
    assert (again.calls, again.store_hits) == (5, 4)


def test_a_second_try_counts_as_more(store: Store) -> None:
    """An answer that cannot be read is not asked about again once there is enough."""
    engine = Scripted(window=1)
    fill(Guess(), posts("babble"), engine, store, enough=lambda so_far: so_far.calls >= 1)
    assert len(engine.asked) == 1


def test_the_same_question_once_more_is_another(store: Store) -> None:
    """A repetition has a key of its own, and the first one has that of a single question."""
    once = request("red")
    asked = [once, replace(once, repeat=1), replace(once, repeat=2), replace(once, repeat=0)]
    first, second, third, again = request_keys(Scripted().signature(), asked)
    assert len({first, second, third}) == 3
    assert first == again
