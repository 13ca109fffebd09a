"""Batches of like questions: nothing is lost, and a failure is its own question's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion
from echo_hf.engines.transformers import Batches, PreparedRequest
from tests.stages_for_tests import request

TEXTS = st.lists(st.text("abx", max_size=6), max_size=14)
SIZES = st.integers(1, 5)


class Computed:
    """Something large that a batch leaves behind."""


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
        texts = [one.text for one in questions]
        self.asked.append(texts)
        if len(texts) * max(map(len, texts)) > self.room:
            raise MemoryError("no room")
        if any("x" in text for text in texts):
            raise KeyError("an x\nin the middle")
        return [Completion(text) for text in texts]

    def batches(self, size: int) -> Batches:
        return Batches(self.ask, lambda error: isinstance(error, MemoryError), self.recover, size)

    def recover(self) -> None:
        self.recovered += 1


def asked(texts: Sequence[str], limits: Sequence[int] = (16,)) -> list[tuple[int, PreparedRequest]]:
    return [
        (number, PreparedRequest(request("red", max_tokens=limits[number % len(limits)]), text, ()))
        for number, text in enumerate(texts)
    ]


@given(TEXTS, SIZES, st.integers(0, 20))
def test_every_question_is_answered_once(texts: list[str], size: int, room: int) -> None:
    answers = list(Memory(room).batches(size).answered(asked(texts)))
    assert sorted(number for number, _ in answers) == list(range(len(texts)))
    for number, completion in answers:
        text = texts[number]
        if len(text) > room:
            assert (completion.error or "").startswith("out of memory with this request alone")
        elif "x" in text:
            assert completion.error == r"KeyError: 'an x\nin the middle'"
        else:
            assert completion == Completion(text)


@given(TEXTS, SIZES)
def test_neighbours_in_length_share_a_batch(texts: list[str], size: int) -> None:
    memory = Memory()
    good = [text for text in texts if "x" not in text]
    list(memory.batches(size).answered(asked(good)))
    lengths = [len(text) for batch in memory.asked for text in batch]
    assert lengths == sorted(map(len, good), reverse=True)
    assert [len(batch) for batch in memory.asked] == [
        len(good[start : start + size]) for start in range(0, len(good), size)
    ]


@pytest.mark.parametrize(
    ("texts", "limits", "size", "room", "batches", "left"),
    [
        # A batch has one token limit.
        (["a", "b", "aa", "bb"], (8, 16), 4, 99, [2, 2], 4),
        # 8 of 3 characters do not fit into 6, nor 4; 2 do, and the size does not rise again.
        (["aaa"] * 8, (16,), 8, 6, [8, 4, 2, 2, 2, 2], 2),
        # After the batch has failed each of it is asked by itself, and the next batch is whole.
        (["aaa", "bxb", "aba", "a", "b", "a"], (16,), 3, 99, [3, 1, 1, 1, 3], 3),
    ],
)
def test_batches_that_fail_are_halved_or_taken_apart(
    texts: list[str], limits: tuple[int], size: int, room: int, batches: list[int], left: int
) -> None:
    memory = Memory(room)
    made = memory.batches(size)
    answers = dict(made.answered(asked(texts, limits)))
    expected = [None if "x" in text else text for text in texts]
    assert [answers[number].text for number in range(len(texts))] == expected
    assert [len(batch) for batch in memory.asked] == batches
    assert made.size == left


def test_the_memory_is_cleared_when_nothing_hangs_on_the_error() -> None:
    computed: WeakSet[Computed] = WeakSet()
    held: list[int] = []

    def ask(_: Sequence[PreparedRequest]) -> list[Completion]:
        something = Computed()
        computed.add(something)
        raise MemoryError(str(something))

    batches = Batches(ask, lambda _: True, lambda: held.append(len(computed)), 2)
    list(batches.answered(asked(["a", "b"])))
    assert held == [0, 0, 0]


def test_an_interruption_is_not_an_answer() -> None:

    def ask(questions: Sequence[PreparedRequest]) -> list[Completion]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Batches(ask, lambda _: False, lambda: None, 2).answered(asked(["a", "b"])))
