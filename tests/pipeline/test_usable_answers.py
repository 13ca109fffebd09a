"""A question none of whose answers can be used is asked no more, and says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from echo_hf.engines.base import Completion, Request
from echo_hf.errors import EngineError, UnusableAnswersError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import FillStats, fill
from echo_hf.pipeline.stage_runner import run_stage
from tests.stages_for_tests import Guess, Scripted, posts


def filled(store: Store, engine: Scripted, *lines: str, keep_going: bool = False) -> FillStats:
    return fill(Guess(), posts(*lines), engine, store, keep_going=keep_going)


def numbered(word: str, count: int, first: int = 0) -> list[str]:
    return [f"{word} {number}" for number in range(first, first + count)]


@pytest.mark.parametrize(
    ("word", "calls", "quoted"),
    [
        ("babble", 10, "'Hm.' (unreadable: "),
        ("off", 10, "(off_schema: name: Input should be a valid string"),
        ("refuse", 10, "'I will not.' (refused: "),
        ("short", 10, "(cut: "),
        ("error", 10, "'no power for 0' (engine_error: "),
    ],
)
def test_ten_answers_that_cannot_be_used_end_it(
    store: Store, word: str, calls: int, quoted: str
) -> None:
    """Second tries count: they may have mended what was wrong."""
    engine = Scripted(window=1)
    with pytest.raises(UnusableAnswersError) as caught:
        filled(store, engine, *numbered(word, 40))
    said = str(caught.value)
    assert said.startswith("none of 10 answers can be used, such as ")
    assert quoted in said
    assert "where a JSON object with name, number is wanted" in said
    # What failed without an answer the same command asks again.
    assert ("--again" in said, "base_url" in said) == (word != "error", word == "error")
    assert ("--keep-going" in said, "\n" in said) == (True, False)
    assert len(engine.asked) == calls


@pytest.mark.parametrize(
    "lines",
    [
        [*numbered("babble", 4), "red"],
        numbered("once", 40),  # mended by the second try of each
        numbered("cut", 40),
        ["red", *numbered("babble", 40)],
    ],
)
def test_an_answer_that_can_be_used_is_enough(store: Store, lines: list[str]) -> None:
    for window in (1, 64):
        stats = filled(store, Scripted(window=window), *lines)
        assert stats.requests == len(lines)


def test_of_calls_under_way_together_second_tries_are_waited_for(store: Store) -> None:
    """Of forty at a time the first ten answers are first tries, all of them cut."""
    assert filled(store, Scripted(window=40), *numbered("cut", 40)).failures == {}


def test_what_is_under_way_is_kept_and_may_prove_the_contrary(store: Store) -> None:
    engine = Scripted(window=16)
    lines = [*numbered("refuse", 15), "red", *numbered("refuse", 30, 15)]
    stats = filled(store, engine, *lines)
    assert (stats.calls, stats.failures) == (46, {"refused": 45})


def test_all_count_where_there_are_fewer_than_ten(store: Store) -> None:
    with pytest.raises(UnusableAnswersError, match=r"^none of 4 answers can be used"):
        filled(store, Scripted(), *numbered("babble", 2))
    with pytest.raises(UnusableAnswersError, match=r"^the only answer cannot be used"):
        filled(store, Scripted(), "refuse red")


def test_few_may_be_of_no_use_where_the_engine_answers_another_question(store: Store) -> None:
    """One refused sample ends no run; ten of them do, whatever else was answered."""
    filled(store, Scripted(), "red")
    filled(store, Scripted(), "refuse blue")
    with pytest.raises(UnusableAnswersError, match=r"^none of 10 answers can be used"):
        filled(store, Scripted(), *numbered("refuse", 10))


def test_answers_of_before_count_as_well(store: Store) -> None:
    """For a question, where one can be used, and against it where none can."""
    filled(store, Scripted(), "red")
    filled(store, Scripted(), "red", *numbered("refuse", 30))
    part = posts(*numbered("error", 15))
    whole = posts("red", *numbered("error", 15))
    fill(Guess(), part, Scripted(), store, keep_going=False, whole=whole)
    bad, engine = numbered("babble", 3), Scripted()
    filled(store, engine, *bad, keep_going=True)
    store.proven.clear()  # of another run
    asked = len(engine.asked)
    with pytest.raises(UnusableAnswersError, match=r"none of 3 answers .*'Hm\.'.*--again"):
        filled(store, engine, *bad)
    assert len(engine.asked) == asked


class Abstaining(Scripted):
    def _completion(self, _: Request) -> Completion:
        return Completion(None, "needs_model", "error")


def test_what_nobody_answered_does_not_count(store: Store) -> None:
    """Neither who abstains, nor what a budget or `offline` left unasked."""
    lines = numbered("colour", 30)
    assert filled(store, Abstaining(), *lines).failures == {"needs_model": 30}
    engine, how = Scripted(), {"store": store, "keep_going": False}
    run_stage(Guess(), posts(*lines), engine=engine, offline=True, **how)
    fill(Guess(), posts(*lines), engine, store, keep_going=False, enough=lambda _: True)
    assert engine.streams == 0


def test_whoever_keeps_going_asks_all(store: Store) -> None:
    stats = filled(store, Scripted(), *numbered("refuse", 40), keep_going=True)
    assert (stats.calls, stats.failures) == (40, {"refused": 40})


@pytest.mark.parametrize("offline", [False, True])
def test_a_kept_result_of_unusable_answers_is_no_result(
    store: Store, tmp_path: Path, offline: bool
) -> None:
    rows, engine = posts(*numbered("babble", 3), ""), Scripted()
    how = {"engine": engine, "store": store, "cache_dir": tmp_path / "cache"}
    run_stage(Guess(), rows, **how)
    asked = Counter(engine.lines())
    with pytest.raises(EngineError, match=r"^stage 'guess': none of 3 answers can be used"):
        run_stage(Guess(), rows, **how, keep_going=False, offline=offline)
    run_stage(Guess(), rows, **how, offline=offline)
    assert Counter(engine.lines()) == asked


def test_what_is_stored_is_looked_through_once(store: Store) -> None:
    """However often it is asked whether to go on."""
    prepared: list[int] = []

    @dataclass(frozen=True)
    class Counted(Guess):
        def requests(self, table: pa.Table) -> list[list[Request]]:
            prepared.append(table.num_rows)
            return super().requests(table)

    rows = posts(*numbered("refuse", 250))
    with pytest.raises(UnusableAnswersError):
        fill(Counted(), rows, Scripted(window=64), store, keep_going=False)
    assert prepared == [250, 100, 100, 50]
