"""Recorded answers come into a store as far as a stage asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from echo_hf.builder.replay import ReplayEngine, import_answers
from echo_hf.engines.base import Completion, Usage
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.batch_inference import FillStats, fill
from echo_hf.pipeline.stage_runner import run_stage
from tests.stages_for_tests import Guess, Scripted, posts, request, url

ENGINE = ReplayEngine(Scripted().signature())
RED, BLUE = '{"name": "red", "number": 3}', '{"name": "blue", "number": 4}'


class Recorded(dict[bytes, Completion]):
    """Answers by the line of a question."""

    def __init__(self, **answers: Completion) -> None:
        super().__init__({key_of(line): answer for line, answer in answers.items()})
        self.wanted: list[bytes] = []

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:  # type: ignore[override]
        """Those of these keys."""
        self.wanted += keys
        return {key: self[key] for key in keys if key in self}


def key_of(line: str) -> bytes:
    """Key of the question that a post of this one line becomes."""
    (key,) = request_keys(ENGINE.signature(), [request(line)])
    return key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with closing(Store(tmp_path / "answers.sqlite")) as opened:
        yield opened


def test_what_is_asked_for_is_taken_and_nothing_else(store: Store) -> None:
    """An answer to a question that no row holds stays where it is."""
    recorded = Recorded(red=Completion(RED, usage=Usage(5, 6, 7)), blue=Completion(BLUE))
    stats = import_answers(Guess(), posts("red", "green", "red"), ENGINE, store, recorded)
    assert (stats.requests, stats.store_hits, stats.repeated, stats.calls) == (3, 1, 1, 0)
    assert len(store) == 1
    assert store.get([key_of("red"), key_of("blue")]) == {
        key_of("red"): Completion(RED, usage=Usage(5, 6, 7))
    }
    assert set(recorded.wanted) == {key_of("red"), key_of("green")}


def test_what_is_there_stays(store: Store) -> None:
    """Neither text nor tokens change, and what is there is not looked up."""
    store.put(key_of("red"), request("red"), Completion(RED), ENGINE.signature())
    recorded = Recorded(red=Completion(BLUE, usage=Usage(9, 9, 9)))
    stats = import_answers(Guess(), posts("red"), ENGINE, store, recorded)
    assert store.get([key_of("red")]) == {key_of("red"): Completion(RED)}
    assert (stats.store_hits, recorded.wanted) == (1, [])


def test_a_failure_is_kept_once_and_gives_way_to_an_answer(store: Store) -> None:
    """Recalled again its tokens are the same; a recorded answer takes its place."""
    refused = Completion(None, None, "refusal", Usage(5, 0, 0))
    for _ in range(2):
        stats = import_answers(Guess(), posts("red"), ENGINE, store, Recorded(red=refused))
        assert (stats.requests, stats.store_hits) == (1, 0)
        assert store.get([key_of("red")]) == {key_of("red"): refused}
    import_answers(Guess(), posts("red"), ENGINE, store, Recorded(red=Completion(RED)))
    assert store.get([key_of("red")])[key_of("red")].text == RED


def test_the_rows_are_those_of_the_engine(store: Store, tmp_path: Path) -> None:
    """Of an answered, a refused and an unreadable question, and one that was never asked."""
    dataset = posts("red", "refuse red", "babble red")
    with closing(Store(tmp_path / "first.sqlite")) as first:
        expected = run_stage(Guess(), dataset, engine=Scripted(), store=first)
        keys = [key_of(line) for line in ("red", "refuse red", "babble red")]
        recorded = Recorded()
        recorded.update(first.get(keys))
    import_answers(Guess(), dataset, ENGINE, store, recorded)
    found = run_stage(Guess(), dataset, engine=ENGINE, store=store, offline=True)
    assert found.dataset.to_list() == expected.dataset.to_list()
    assert found.quarantine.to_list() == expected.quarantine.to_list()
    assert len(expected.quarantine) == 2


def test_answers_belong_to_the_posts_that_ask_here(store: Store) -> None:
    """Two posts with one question: whoever forgets either of them forgets the answer."""
    import_answers(Guess(), posts("red", "red"), ENGINE, store, Recorded(red=Completion(RED)))
    assert store.forget([url(1)]) == 1
    assert len(store) == 0


def test_an_engine_that_comes_later_asks_only_what_is_missing(store: Store) -> None:
    """Recalled answers are settled, unreadable ones too: they had their two tries."""
    recorded = Recorded(red=Completion(RED), babble=Completion("Hm."))
    dataset = posts("red", "babble", "green")
    import_answers(Guess(), dataset, ENGINE, store, recorded)
    engine = Scripted()
    stats = fill(Guess(), dataset, engine, store)
    assert engine.lines() == ["green"]
    assert (stats.calls, stats.store_hits) == (1, 2)


def test_no_rows_ask_nothing(store: Store) -> None:
    """An empty table is no mistake."""
    stats = import_answers(Guess(), posts(), ENGINE, store, Recorded())
    assert (stats.requests, stats.store_hits) == (0, 0)
    assert isinstance(stats, FillStats)
