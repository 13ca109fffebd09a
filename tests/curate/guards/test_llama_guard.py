"""What Llama Guard says, and what others say in its place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import Hazard, in_order
from echo_hf.curate.guards import LLAMA_GUARD, SafetyAnswer, read_words
from echo_hf.pipeline.answers import RawText

VERDICTS = {
    "safe": [],
    "\n\nsafe": [],
    " Safe \n": [],
    "SAFE": [],
    "unsafe\nS9,S2": ["S2", "S9"],
    "\n\nunsafe\nS9,S2": ["S2", "S9"],
    "unsafe\r\nS1": ["S1"],
    "unsafe\nS1\nS2": ["S1", "S2"],
    "unsafe\ns4, s12": ["S4", "S12"],
    "UNSAFE S14": ["S14"],
    "unsafe\n" + ",".join(f"S{n}" for n in range(1, 15)): [f"S{n}" for n in range(1, 15)],
    "unsafe\nS2,S2": ["S2"],
    "unsafe": ["unknown"],
    "unsafe\n": ["unknown"],
    "unsafe\nS99": ["unknown"],
    "unsafe\nS15,S3": ["S3", "unknown"],
    "unsafe\nO3": ["unknown"],
    "unsafe\nS0": ["unknown"],
    "unsafe\nS01": ["unknown"],
}
NO_VERDICTS = [
    "",
    " \n",
    "safe\nS1",
    "safe unsafe",
    "safe, I think",
    "safe.",
    "unsafe\nS9, because of the bomb",
    "unsafe\nviolence",
    "unsafe\nS9S2",
    "unsafe\n,S9",
    "unsafe\nS9,",
    "unsafeS9",
    "un safe",
    "not unsafe",
    "S9",
    "User: safe",
    "I cannot help with that.",
    '{"hazards": []}',
    "ſafe",
    "ｓａｆｅ",
    "unsafe\nS９",
    "unsafe\nS1234",
    "safe\x00",
    "saf\u200be",
    "unsafe\n" + "S1 " * 10_000 + "!",
    " " * 100_000 + "!",
]


@pytest.mark.parametrize("text", VERDICTS, ids=repr)
def test_verdicts_by_hand(text: str) -> None:
    made = read_words(text)
    assert made is not None
    assert in_order(made.hazards) == VERDICTS[text]


@pytest.mark.parametrize("text", NO_VERDICTS, ids=lambda text: repr(text[:30]))
def test_all_else_is_no_verdict(text: str) -> None:
    assert read_words(text) is None


@given(st.text() | st.lists(st.sampled_from(["safe", "unsafe", "S1", "S99", ",", "\n", " ", "x"])))
def test_any_text_is_read(said: str | list[str]) -> None:
    text = said if isinstance(said, str) else "".join(said)
    made = read_words(text)

    if made is not None:
        word = "unsafe" if made.hazards else "safe"
        assert re.match(r"\s*(\w+)", text.lower())[1] == word  # type: ignore[index]
        assert bool(made.strange) is (Hazard.UNKNOWN in made.hazards)


def test_only_a_raw_text_is_an_answer() -> None:
    assert LLAMA_GUARD.read(RawText("safe")) == read_words("safe")
    assert LLAMA_GUARD.read(SafetyAnswer(hazards=[])) is None


def test_it_has_room_for_every_code() -> None:
    assert LLAMA_GUARD.max_tokens >= 3 * 14 + 4
    assert (LLAMA_GUARD.prompt, LLAMA_GUARD.answer) == (None, None)
