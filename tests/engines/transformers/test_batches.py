"""Batches of like questions: nothing is lost, and a failure is its own question's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion
from echo_hf.engines.transformers import Batches, failure, pools
from echo_hf.engines.transformers_model import PreparedRequest
from echo_hf.errors import ImageError
from tests.stages_for_tests import request

TEXTS = st.lists(st.text("abx", max_size=6), max_size=14)
SIZES = st.integers(1, 5)


class Computed:
    """Something large that a batch leaves behind."""


class BadRowError(Exception):
    """Raised by a batch with a bad question in it."""


@dataclass
class Memory:
    """Answers with a question's own text, as far as the memory goes.

    Attributes:
        room: Most characters in a batch: its number of questions times its longest text.
        asked: Every batch that was tried.
        recovered: How often the memory was cleared.
    """

    room: float = float("inf")
    asked: list[list[str]] = field(default_factory=list)
    recovered: int = 0

    def ask(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        """Answers a batch; it fails as a whole, for a lack of memory first."""
        texts = [one.text for one in questions]
        self.asked.append(texts)
        if len(texts) * max(map(len, texts)) > self.room:
            raise MemoryError("no room")
        if any("x" in text for text in texts):
            raise BadRowError("an x\nin the middle")
        return [Completion(text) for text in texts]

    def batches(self, size: int) -> Batches:
        """Batches that are answered here."""
        return Batches(self.ask, self.is_too_large, self.recover, size)

    def is_too_large(self, error: BaseException) -> bool:
        """Only a lack of memory."""
        return isinstance(error, MemoryError)

    def recover(self) -> None:
        """Counts."""
        self.recovered += 1


def _asked(
    texts: Sequence[str], limits: Sequence[int] = (16,)
) -> list[tuple[int, PreparedRequest]]:
    return [
        (number, PreparedRequest(request("red", max_tokens=limits[number % len(limits)]), text, ()))
        for number, text in enumerate(texts)
    ]


@given(TEXTS, SIZES, st.integers(0, 20))
def test_every_question_is_answered_once(texts: list[str], size: int, room: int) -> None:
    """With its own text, or with its own failure: alone too long for the memory, or bad."""
    memory = Memory(room)
    answers = list(memory.batches(size).answered(_asked(texts)))
    assert sorted(number for number, _ in answers) == list(range(len(texts)))
    for number, completion in answers:
        text = texts[number]
        if len(text) > room:
            assert completion.error is not None
            assert completion.error.startswith("out of memory with this request alone")
        elif "x" in text:
            assert completion.error == "BadRowError: an x in the middle"
        else:
            assert completion == Completion(text)


@given(TEXTS, SIZES)
def test_neighbours_in_length_share_a_batch(texts: list[str], size: int) -> None:
    """The longest come first, so that what fits at the beginning fits to the end."""
    memory = Memory()
    good = [text for text in texts if "x" not in text]
    list(memory.batches(size).answered(_asked(good)))
    lengths = [len(text) for batch in memory.asked for text in batch]
    assert lengths == sorted(map(len, good), reverse=True)
    assert [len(batch) for batch in memory.asked] == [
        len(good[start : start + size]) for start in range(0, len(good), size)
    ]


def test_questions_of_different_kinds_are_asked_apart() -> None:
    """A batch has one token limit."""
    memory = Memory()
    list(memory.batches(4).answered(_asked(["a", "b", "aa", "bb"], limits=[8, 16])))
    assert sorted(map(sorted, memory.asked)) == [["a", "aa"], ["b", "bb"]]


def test_out_of_memory_halves_the_batch_for_good() -> None:
    """8 of 3 characters do not fit into 6, nor 4; 2 do, and the size does not rise again."""
    memory = Memory(room=6)
    batches = memory.batches(8)
    answers = dict(batches.answered(_asked(["aaa"] * 8)))
    assert all(answers[number] == Completion("aaa") for number in range(8))
    assert [len(batch) for batch in memory.asked] == [8, 4, 2, 2, 2, 2]
    assert (batches.size, memory.recovered) == (2, 2)
    list(batches.answered(_asked(["a"] * 3)))
    assert [len(batch) for batch in memory.asked[6:]] == [2, 1]


def test_a_question_that_does_not_fit_alone_fails_alone() -> None:
    """The others are answered, one by one if need be."""
    memory = Memory(room=4)
    answers = dict(memory.batches(2).answered(_asked(["a", "aaaaa", "aa"])))
    assert [answers[number].text for number in range(3)] == ["a", None, "aa"]
    assert answers[1].finish_reason == "error"


def test_a_bad_question_fails_alone() -> None:
    """After the batch has failed each of it is asked by itself, and the next batch is whole."""
    memory = Memory()
    answers = dict(memory.batches(3).answered(_asked(["aaa", "bxb", "aba", "a", "b", "a"])))
    assert [answers[number].text for number in range(6)] == ["aaa", None, "aba", "a", "b", "a"]
    assert [len(batch) for batch in memory.asked] == [3, 1, 1, 1, 3]


def test_answers_come_batch_by_batch() -> None:
    """The first can be kept before the second batch is asked."""
    memory = Memory()
    answers = memory.batches(2).answered(_asked(["aaa", "aa", "a"]))
    assert [next(answers)[0], next(answers)[0]] == [0, 1]
    assert memory.asked == [["aaa", "aa"]]


def test_the_memory_is_cleared_when_nothing_hangs_on_the_error() -> None:
    """What the failed batch had computed is gone by then."""
    computed: WeakSet[Computed] = WeakSet()
    held: list[int] = []

    def ask(_: Sequence[PreparedRequest]) -> list[Completion]:
        something = Computed()
        computed.add(something)
        raise MemoryError(str(something))

    batches = Batches(ask, lambda _: True, lambda: held.append(len(computed)), 2)
    list(batches.answered(_asked(["a", "b"])))
    assert held == [0, 0, 0]


def test_an_interruption_is_not_an_answer() -> None:
    """Whoever stops the program is not held up by the next batch."""

    def ask(questions: Sequence[PreparedRequest]) -> list[Completion]:
        raise KeyboardInterrupt

    batches = Batches(ask, lambda _: False, lambda: None, 2)
    with pytest.raises(KeyboardInterrupt):
        list(batches.answered(_asked(["a", "b"])))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ImageError("image 'a' is torn"), "image 'a' is torn"),
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (KeyError("a"), "KeyError: 'a'"),
        (RuntimeError("o" * 999), ("RuntimeError: " + "o" * 999)[:300]),
    ],
)
def test_an_error_is_an_answer_of_one_line(error: Exception, said: str) -> None:
    """Ours as they are, others with their kind; no longer than a line of a table."""
    assert failure(error) == Completion(None, said, "error")


@given(st.lists(st.integers()), SIZES)
def test_pools_hold_everything_in_order(items: list[int], size: int) -> None:
    """Each as long as asked for, the last one excepted."""
    cut = list(pools(items, size))
    assert [item for pool in cut for item in pool] == items
    assert all(len(pool) == size for pool in cut[:-1])
    assert all(cut)


def test_a_pool_is_taken_when_it_is_needed() -> None:
    """Requests that depend on earlier answers can still be added."""
    taken: list[int] = []
    stream = pools((taken.append(number) or number for number in range(6)), 2)
    assert next(stream) == [0, 1]
    assert taken == [0, 1]


def test_a_request_stays_what_it_was() -> None:
    """Questions are not equal by value: two of the same request are two."""
    one = PreparedRequest(request("red"), "a", ())
    assert one != replace(one)
