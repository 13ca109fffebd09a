"""Batches of like questions: nothing is lost, and a failure is its own question's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion
from echo_hf.engines.transformers import BatchQueue, PreparedRequest
from tests.stages_for_tests import request


class Computed:
    """Something large that a batch leaves behind."""


@dataclass
class Memory:
    """Answers with a question's own text, as far as the memory goes.

    Attributes:
        room: Most characters in a batch: its number of questions times its longest text.
        asked: Every batch that was tried.
        held: What still refers to what was computed, each time the memory is cleared.
    """

    room: float = float("inf")
    asked: list[list[str]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    computed: WeakSet[Computed] = field(default_factory=WeakSet)

    def ask(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        texts = [one.text for one in questions]
        self.computed.add(something := Computed())
        self.asked.append(texts)
        if len(texts) * max(map(len, texts)) > self.room:
            raise MemoryError(f"no room for {something}")
        if any("x" in text for text in texts):
            raise KeyError("an x\nin the middle")
        if "stop" in texts:
            raise KeyboardInterrupt
        return [Completion(text) for text in texts]

    def batches(self, size: int) -> BatchQueue:
        is_full = lambda error: isinstance(error, MemoryError)  # noqa: E731
        return BatchQueue(self.ask, is_full, lambda: self.held.append(len(self.computed)), size)


def asked(texts: Sequence[str], limits: Sequence[int] = (16,)) -> list[tuple[int, PreparedRequest]]:
    return [
        (number, PreparedRequest(request("red", max_tokens=limits[number % len(limits)]), text, ()))
        for number, text in enumerate(texts)
    ]


@given(st.lists(st.text("abx", max_size=6), max_size=14), st.integers(1, 5), st.integers(0, 20))
def test_every_question_is_answered_once(texts: list[str], size: int, room: int) -> None:
    memory = Memory(room)
    answers = list(memory.batches(size).answer_pool(asked(texts)))
    assert sorted(number for number, _ in answers) == list(range(len(texts)))
    assert not any(memory.held)  # the memory is cleared when nothing hangs on the error
    for number, completion in answers:
        text = texts[number]
        if len(text) > room:
            assert (completion.error or "").startswith("out of memory with this request alone")
        elif "x" in text:
            assert completion.error == r"KeyError: 'an x\nin the middle'"
        else:
            assert completion == Completion(text)


@pytest.mark.parametrize(
    ("texts", "limits", "size", "room", "batches", "left"),
    [
        # A batch has one token limit.
        (["a", "b", "aa", "bb"], (8, 16), 4, 99, [2, 2], 4),
        # 8 of 3 characters do not fit into 6, nor 4; 2 do, and the size does not rise again.
        (["aaa"] * 8, (16,), 8, 6, [8, 4, 2, 2, 2, 2], 2),
        # One that fails is looked for; the next batch is whole.
        (["aaa", "bxb", "aba", "a", "b", "a"], (16,), 3, 99, [3, 1, 1, 3, 1], 3),
    ],
)
def test_batches_that_fail_are_halved(
    texts: list[str], limits: tuple[int], size: int, room: int, batches: list[int], left: int
) -> None:
    memory = Memory(room)
    made = memory.batches(size)
    answers = dict(made.answer_pool(asked(texts, limits)))
    assert [answers[n].text for n in range(len(texts))] == [
        t if "x" not in t else None for t in texts
    ]
    assert ([len(batch) for batch in memory.asked], made.size) == (batches, left)


def test_neighbours_in_length_share_a_batch_and_an_interruption_is_no_answer() -> None:
    memory = Memory()
    list(memory.batches(2).answer_pool(asked(["a", "aaaa", "aa", "aaa", ""])))
    assert memory.asked == [["aaaa", "aaa"], ["aa", "a"], [""]]
    with pytest.raises(KeyboardInterrupt):
        list(memory.batches(2).answer_pool(asked(["stop"])))
